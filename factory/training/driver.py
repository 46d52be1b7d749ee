"""The driver: the process that a launch starts. It opens Pipes, starts the workers, watches them.

It imports neither torch nor Bridge, so that a person sees it alive at once. The ranks are in
`workers`, what they do in `train`. What it says is in `factory.reports`.
"""

import json
import signal
import sys
import time
from collections.abc import Sequence
from datetime import UTC, datetime
from types import FrameType
from typing import Any

import yaml
from dagster_pipes import PipesContext, open_dagster_pipes

from factory.data.mix import blend
from factory.discovery import check_overrides, mixes, recipe_names
from factory.errors import FactoryError, RunFailed, SpecError
from factory.keys import parse
from factory.namespace import Namespace
from factory.reports import Phase, RunRecord, StepLine
from factory.settings import Settings, ray_address
from factory.spec import Launch
from factory.training import profiles, workers
from factory.training.follow import Tail
from factory.training.messages import NamespaceMessageWriter
from factory.training.train import BLEND_FILE, MONITOR, Job
from factory.training.workers import Failure, Prepared

DONE, FAILED, REFUSED, ENDED = 0, 1, 3, 143
"""Exit codes: done; training failed; the launch cannot be run; ended by a signal."""

POLL_SECONDS = 0.25


class Ended(BaseException):
    """The driver was told to stop."""


class Ending:
    """Whether the driver was told to stop. Ray's calls break if a signal handler raises in them."""

    def __init__(self) -> None:
        self.told = False

    def listen(self) -> None:
        """Take SIGTERM as that word. To be called again when Ray has taken the signal."""
        signal.signal(signal.SIGTERM, self._hear)

    def check(self) -> None:
        """Stop here if so."""
        if self.told:
            raise Ended

    def _hear(self, signum: int, frame: FrameType | None) -> None:
        self.told = True


def main() -> int:
    """Run the launch that Pipes carries; returns the exit code."""
    ending = Ending()
    ending.listen()
    try:
        with open_dagster_pipes(message_writer=NamespaceMessageWriter()) as pipes:
            launch = Launch.model_validate(_launch(pipes))
            Driver(launch, pipes, Settings.from_environment(), ending).run(ray_address())
    except SpecError as refusal:
        sys.stdout.write(f"refused: {refusal}\n")
        return REFUSED
    except FactoryError as failure:
        sys.stdout.write(f"failed: {failure}\n")
        return FAILED
    except Ended:
        return ENDED
    return DONE


class Driver:
    """One launch, from an empty cluster to a checkpoint."""

    def __init__(
        self, launch: Launch, pipes: PipesContext, settings: Settings, ending: Ending
    ) -> None:
        self.launch = launch
        self.ending = ending
        self.pipes = pipes
        self.settings = settings
        self.started = time.time()
        self.namespace = Namespace(settings.root)
        self.run_directory = self.namespace.open_run(launch.classification, launch.run_id)
        self.job = Job(launch, self.run_directory, settings.state, self.started)
        monitor = self.run_directory.directory(MONITOR)
        self.tails = (Tail(monitor / "phases.jsonl"), Tail(monitor / "steps.jsonl"))

    def run(self, address: str) -> None:
        """Do it all.

        Raises:
            SpecError: the launch cannot be run.
            RunFailed: a worker failed; the message is about the first one that did.
        """
        self.say("driver", f"attempt {self.launch.attempt} of run {self.launch.run_id}")
        self._check()
        self._write_blend()
        workers.connect(address, self.ending.check)
        self.ending.listen()
        self.say("cluster", address)
        with workers.started(self.launch, self.ending.check) as ranks:
            self.say("workers", f"{len(ranks)} starting")
            prepared: list[Prepared] = self._all([rank.build.remote(self.job) for rank in ranks])
            self._write_record(prepared)
            self.say("build", f"{self.launch.spec.recipe} on the {self.launch.profile} profile")
            master = prepared[0].address
            port = self._get(ranks[0].free_port.remote())
            self._all([rank.train.remote(self.job, master, port) for rank in ranks])
        self._relay()
        self.say("done")

    def say(self, name: str, detail: str = "") -> None:
        """Report a phase to Dagster and to the log."""
        self._report(Phase(name=name, detail=detail, seconds=time.time() - self.started))

    def _check(self) -> None:
        spec = self.launch.spec
        if spec.recipe not in recipe_names():
            raise SpecError(f"No recipe {spec.recipe!r}. Known: {', '.join(recipe_names())}.")
        if spec.mix not in mixes():
            raise SpecError(f"No mix {spec.mix!r}. Known: {', '.join(mixes())}.")
        check_overrides(spec.recipe, spec.overrides)
        profiles.refuse_overrides(spec.overrides, self.launch.profile)

    def _write_blend(self) -> None:
        """The mix with the versions that the launch pins, for every rank to read."""
        paths = {
            key: self.namespace.version(parse(key), version).path
            for key, version in self.launch.datasets.items()
        }
        content = yaml.safe_dump(blend(mixes()[self.launch.spec.mix], "train", paths)).encode()
        written = self.run_directory.path / BLEND_FILE
        if not written.exists():
            self.run_directory.create(BLEND_FILE, content)
        elif written.read_bytes() != content:
            raise SpecError(
                f"Run {self.launch.run_id} was started with other data: {written} differs. "
                "A run keeps its datasets; launch a new one."
            )

    def _write_record(self, prepared: Sequence[Prepared]) -> None:
        first = prepared[0]
        record = RunRecord(
            launch=self.launch,
            started_at=datetime.fromtimestamp(self.started, UTC).isoformat(),
            python=first.python,
            packages=dict(first.packages),
            nodes=sorted({one.node for one in prepared}),
            world_size=len(prepared),
            config_sha256=first.config_sha256,
        )
        attempt = self.launch.attempt
        name = "record.json" if attempt == 1 else f"record.{attempt}.json"
        self.run_directory.create(name, record.model_dump_json(indent=2).encode())

    def _get(self, reference: Any) -> Any:
        return self._all([reference])[0]

    def _all(self, references: Sequence[Any]) -> list[Any]:
        """Every result in order, relaying what the ranks write meanwhile."""
        import ray

        waiting = list(references)
        failures: list[Failure] = []
        give_up = float("inf")
        while waiting and time.monotonic() < give_up:
            ready, waiting = ray.wait(waiting, timeout=POLL_SECONDS)
            self.ending.check()
            self._relay()
            for reference in ready:
                if (failure := _failure(reference, references.index(reference))) is not None:
                    failures.append(failure)
                    give_up = min(give_up, time.monotonic() + workers.GRACE_SECONDS)
        if failures:
            raise _explained(failures)
        return ray.get(list(references))

    def _relay(self) -> None:
        for tail, kind in zip(self.tails, (Phase, StepLine), strict=True):
            for line in tail.lines():
                self._report(kind.model_validate_json(line))

    def _report(self, message: Phase | StepLine) -> None:
        self.pipes.report_custom_message(message.model_dump())
        sys.stdout.write(_readable(message) + "\n")
        sys.stdout.flush()


def _failure(reference: Any, rank: int) -> Failure | None:
    import ray
    from ray.exceptions import RayError

    try:
        result = ray.get(reference)
    except RayError as error:
        summary = str(error).strip().splitlines()[0]
        return Failure(rank=rank, at=0.0, refused=False, summary=summary, details=str(error))
    return result if isinstance(result, Failure) else None


def _explained(failures: Sequence[Failure]) -> Exception:
    """The first failure with its traceback; the others, which follow from it, in a line each."""
    first, *others = sorted(failures, key=lambda failure: failure.at)
    if first.refused:
        return SpecError(first.summary)
    died = "its process died" if not first.at else first.summary
    lines = [f"Rank {first.rank} failed first: {died}", first.details.rstrip()]
    lines += [f"Then rank {other.rank}: {other.summary}" for other in others]
    return RunFailed("\n".join(lines))


def _readable(message: Phase | StepLine) -> str:
    if isinstance(message, Phase):
        return f"[{message.seconds:6.1f} s] {message.name} {message.detail}".rstrip()
    rate = "" if message.learning_rate is None else f"  lr {message.learning_rate:.2e}"
    norm = "" if message.grad_norm is None else f"  grad norm {message.grad_norm:.2f}"
    return (
        f"step {message.step}/{message.of}  loss {message.loss:.4f}{rate}{norm}"
        f"  {message.tokens:,} tokens  {message.seconds:.1f} s"
    )


def _launch(pipes: PipesContext) -> Any:
    given = pipes.get_extra("launch")
    return json.loads(given) if isinstance(given, str) else given
