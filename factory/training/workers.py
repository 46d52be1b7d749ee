"""Workers: Ray actors that form one torch process group. One process for each rank.

The only module of the training plane that sets environment variables. What a rank does is in
`train`; who watches the ranks is the driver.
"""

import logging
import os
import socket
import time
import traceback
import warnings
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

from factory.errors import RunFailed, SpecError
from factory.namespace import Damage
from factory.namespace.checkpoints import Checkpoint
from factory.spec import Launch, RunSpec

if TYPE_CHECKING:
    from factory.training.train import Job

type Check = Callable[[], None]
"""Raises where the run has been told to stop."""

CPUS_PER_RANK = 0.25
"""A share for scheduling, not a limit: four ranks fit on a laptop that shows one core."""

CONNECT_SECONDS = 180.0
PLACE_SECONDS = 180.0
GRACE_SECONDS = 2.0
"""After the first failure: time for others to report theirs, so that the origin can be told."""


@dataclass(frozen=True)
class Failure:
    """How one rank failed."""

    rank: int
    at: float
    """When, as `time.time()`; 0 where the process died without a word."""

    refused: bool
    """The launch itself is at fault, not the training."""

    summary: str
    details: str


@dataclass(frozen=True)
class Prepared:
    """A rank that has built its configuration."""

    node: str
    address: str
    python: str
    packages: Mapping[str, str]
    config_sha256: str | None


class Rank:
    """One training process. Its methods return a `Failure` instead of raising: Ray loses detail."""

    def __init__(self, launch: Launch, rank: int, local_rank: int, ranks_here: int) -> None:
        self.rank = rank
        os.environ.update(_environment(launch, rank, local_rank))
        self.launch = launch
        self.ranks_here = ranks_here
        self.config: Any = None
        self._imported = self._guarded(self._preload)

    def __repr__(self) -> str:
        return f"rank {self.rank}"  # Ray puts it before every line that this process prints

    def verify(self, checkpoint: Checkpoint, names: Sequence[str]) -> list[Damage] | Failure:
        """How those files of a checkpoint differ from what they were."""
        return self._guarded(lambda: checkpoint.damage(names))

    def build(self, job: "Job") -> Prepared | Failure:
        """Build the configuration; rank 0 writes it down."""
        if isinstance(self._imported, Failure):
            return self._imported
        return self._guarded(lambda: self._build(job))

    def redistribute(self, job: "Job") -> Failure | None:
        """Make the states of the data anew, for as many data-parallel ranks as there are now."""
        from factory.training.train import redistributed

        return self._guarded(lambda: redistributed(job, self.config))

    def train(self, job: "Job", address: str, port: int) -> bool | Failure:
        """Train to the end, with rank 0 at that address; whether it was told to stop before."""
        from factory.training.train import train

        os.environ.update(MASTER_ADDR=address, MASTER_PORT=str(port))
        return self._guarded(lambda: train(job, self.config, rank=self.rank))

    def free_port(self) -> int:
        """A port that nobody on this rank's machine listens on just now."""
        with socket.socket() as probe:
            probe.bind(("", 0))
            return probe.getsockname()[1]

    def _preload(self) -> None:
        from factory.training.train import preload

        # What third parties say while they are imported is the same in every run.
        warnings.simplefilter("ignore")
        logging.disable(logging.WARNING)
        try:
            preload(self.launch)
        finally:
            logging.disable(logging.NOTSET)

    def _build(self, job: "Job") -> Prepared:
        import platform
        from importlib.metadata import version

        import torch
        from ray.util import get_node_ip_address

        from factory.training.train import build, write_config

        if self.launch.profile == "cpu":
            torch.set_num_threads(_threads(os.cpu_count() or 1, self.ranks_here))
        self.config = build(job)
        digest = write_config(self.config, job.run, self.launch.attempt) if not self.rank else None
        return Prepared(
            node=socket.gethostname(),
            address=cast("Callable[[], str]", get_node_ip_address)(),
            python=platform.python_version(),
            packages={name: version(name) for name in PACKAGES},
            config_sha256=digest,
        )

    def _guarded[T](self, work: Callable[[], T]) -> T | Failure:
        try:
            return work()
        except BaseException as error:
            return Failure(
                rank=self.rank,
                at=time.time(),
                refused=isinstance(error, SpecError),
                summary=str(error) if isinstance(error, SpecError) else repr(error),
                details=traceback.format_exc(),
            )


PACKAGES = (
    "megatron-bridge",
    "megatron-core",
    "megatron-energon",
    "ray",
    "torch",
    "transformers",
)
"""Whose versions decide numbers."""


def connect(address: str, check: Check) -> None:
    """Connect this process to the cluster, which may still be starting.

    Raises:
        RunFailed: it did not answer in time.
    """
    os.environ.update(RAY_DEDUP_LOGS="0", RAY_COLOR_PREFIX="0")
    import ray

    deadline = time.monotonic() + CONNECT_SECONDS
    while True:
        check()
        try:
            _knock(address)
            ray.init(address=address, log_to_driver=True, configure_logging=False)
        except Exception as error:
            ray.shutdown()
            if time.monotonic() > deadline:
                raise RunFailed(
                    f"The Ray cluster at {address} did not answer within {CONNECT_SECONDS:.0f} s: "
                    f"{error}"
                ) from error
            time.sleep(0.1)
        else:
            return


def _knock(address: str) -> None:
    """Fail at once while nobody listens: Ray itself takes seconds to notice."""
    host, _, port = address.rpartition(":")
    if host and port.isdecimal() and "/" not in host:
        socket.create_connection((host, int(port)), timeout=5).close()


@contextmanager
def started(launch: Launch, check: Check) -> Generator[Sequence[Any]]:
    """One actor for each rank, importing already; all of them are ended on the way out.

    Raises:
        RunFailed: the cluster has no room for them.
    """
    import ray
    from ray.util.placement_group import placement_group, remove_placement_group
    from ray.util.scheduling_strategies import PlacementGroupSchedulingStrategy

    spec = launch.spec
    per_worker = max(1, spec.gpus_per_worker)
    nodes = cast("list[dict[str, Any]]", ray.nodes())
    apart = _apart(spec, nodes, ray.get_runtime_context().get_node_id())
    strategy = "STRICT_SPREAD" if apart else "PACK"
    group = placement_group(_bundles(spec), strategy=strategy)
    actors: list[Any] = []
    try:
        deadline = time.monotonic() + PLACE_SECONDS
        while not group.wait(1):
            check()
            if time.monotonic() > deadline:
                raise RunFailed(
                    f"The cluster has no room for {spec.ranks} ranks: asked for {_bundles(spec)}, "
                    f"it has {ray.cluster_resources()}."
                )
        for rank in range(spec.ranks):
            bundle, local_rank = divmod(rank, per_worker)
            actor = ray.remote(Rank).options(
                num_cpus=CPUS_PER_RANK,
                num_gpus=1 if spec.gpus_per_worker else 0,
                scheduling_strategy=PlacementGroupSchedulingStrategy(
                    group, placement_group_bundle_index=bundle
                ),
            )
            here = per_worker if apart else spec.ranks
            actors.append(actor.remote(launch, rank, local_rank, here))
        yield actors
    finally:
        for actor in actors:
            ray.kill(actor)
        remove_placement_group(group)


def _bundles(spec: RunSpec) -> list[dict[str, float]]:
    """What each worker needs. A worker with GPUs is one bundle, so it lies on one node."""
    gpus = spec.gpus_per_worker
    one = {"CPU": CPUS_PER_RANK * max(1, gpus), **({"GPU": float(gpus)} if gpus else {})}
    return [one] * spec.workers


def _apart(spec: RunSpec, nodes: Sequence[Mapping[str, Any]], here: str) -> bool:
    """Whether each worker is a node of its own; else the ranks lie side by side, on a laptop.

    Without GPUs the driver's node says which: a head that takes no ranks has workers beside it.
    """
    (mine,) = (node for node in nodes if node["NodeID"] == here)
    return bool(spec.gpus_per_worker) or not mine["Resources"].get("CPU")


def _threads(cores: int, ranks_here: int) -> int:
    """Threads of each rank: half of its cores, since more than there are slow each other down."""
    return max(1, cores // (2 * ranks_here))


def _environment(launch: Launch, rank: int, local_rank: int) -> dict[str, str]:
    common = {
        "RANK": str(rank),
        "WORLD_SIZE": str(launch.spec.ranks),
        "LOCAL_RANK": str(local_rank),
        "HF_HUB_OFFLINE": "1",
        "TOKENIZERS_PARALLELISM": "false",
    }
    # No compiler on a laptop, and no threads that wait for each other by spinning: with other work
    # on the machine that made a step ten times as long.
    laptop = {"TORCHDYNAMO_DISABLE": "1", "OMP_WAIT_POLICY": "PASSIVE"}
    return common | (laptop if launch.profile == "cpu" else {}) | launch.rank_environment
