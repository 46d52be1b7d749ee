"""Runs of the real driver on real Ray clusters, over a dataset made of generated text."""

import contextlib
import importlib
import json
import os
import random
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from dagster_pipes import PipesContextData, encode_param

from factory.data import Loss, Sample, energon
from factory.keys import Key, public
from factory.namespace import Namespace, Provenance, RunDirectory, Version
from factory.reports import MESSAGES_DIRECTORY_PARAM
from factory.settings import CHECKOUT, Settings
from factory.spec import CodeIdentity, Launch, RunSpec
from factory.training.train import SLOW_IMPORTS
from tests.shards import content_id, write_shards

KEY = public("text/plos/energon/train")
WORDS = (
    *("the", "patient", "was", "given", "a", "dose", "of", "aspirin", "after", "the", "onset"),
    *("symptoms", "and", "trial", "showed", "that", "survival", "in", "both", "groups", "risk"),
)


def documents(count: int, words: int = 2_000, seed: int = 7) -> list[Sample]:
    """Text that a byte model learns quickly."""
    chance = random.Random(seed)
    return [
        Sample.document(
            id=f"article-{number}",
            title=f"Article {number}",
            sections=[("Results", " ".join(chance.choices(WORDS, k=words)))],
            license="CC-BY-4.0",
        )
        for number in range(count)
    ]


def publish(namespace: Namespace, samples: list[Sample], key: Key = KEY) -> Version:
    """The samples as the current version of a dataset's training split."""
    writing = namespace.write(
        key,
        inputs=[],
        input_id=f"test-{len(samples)}",
        provenance=Provenance(run_id="test", identity="test", image=None),
        source=key.classification,
        parameters={},
        code="test",
        checks=[],
        licenses=["CC-BY-4.0"],
    )
    with writing as staging:
        contents = write_shards(staging.path, samples)
        energon.write_loss(staging.path, Loss())
        energon.prepare(staging.path, 1, _silent)
        staging.describe(content_id=content_id(contents), rows=len(samples), columns={}, facts={})
    namespace.promote(staging.version)
    return staging.version


def _silent(_: str) -> None:
    return None


@pytest.fixture(scope="session")
def bridge() -> Iterator[None]:
    """Megatron-Bridge, imported once; dozens of its own dependencies warn while they load."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from factory.training.cpu import device, layers, placeholder

        with contextlib.ExitStack() as stack:
            stack.enter_context(placeholder.where_missing())
            for name in (*SLOW_IMPORTS, "megatron.bridge.recipes.gpt.vanilla_gpt"):
                importlib.import_module(name)
            for context in (device.redirected(), layers.replaced()):
                with context:
                    pass
            kept = stack.pop_all()
    with kept:
        yield


@dataclass(frozen=True)
class Site:
    """A namespace with data in it, and a machine's own state."""

    settings: Settings
    version: Version

    @property
    def namespace(self) -> Namespace:
        return Namespace(self.settings.root)

    def launch(self, run_id: str, attempt: int = 1, **spec: Any) -> Launch:
        return Launch(
            run_id=run_id,
            attempt=attempt,
            classification="public",
            spec=RunSpec(recipe="debug.pretrain", mix="smoke", **spec),
            profile="cpu",
            datasets={KEY.path: self.version.id},
            image=None,
            code=CodeIdentity(commit=None, tree="test", lock="test"),
        )


@pytest.fixture(scope="session")
def site(tmp_path_factory: pytest.TempPathFactory) -> Site:
    base = tmp_path_factory.mktemp("site")
    (base / "namespace").mkdir()
    settings = Settings.from_environment(
        {"FACTORY_ROOT": str(base / "namespace"), "FACTORY_STATE": str(base / "state")}
    )
    return Site(settings, publish(Namespace(settings.root), documents(12)))


@contextlib.contextmanager
def ray_cluster() -> Iterator[str]:
    """A Ray cluster of its own, without a dashboard; its address."""
    folder = tempfile.mkdtemp(prefix="ray-", dir="/tmp")
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    command = [Path(sys.executable).parent / "ray", "start", "--head", "--block", f"--port={port}"]
    command += ["--node-ip-address=127.0.0.1", "--include-dashboard=false", "--num-cpus=1"]
    command += ["--object-store-memory=100000000", f"--temp-dir={folder}", "--disable-usage-stats"]
    process = subprocess.Popen(
        command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True
    )
    try:
        yield f"127.0.0.1:{port}"
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(scope="session")
def cluster() -> Iterator[str]:
    with ray_cluster() as address:
        yield address


@pytest.fixture(scope="session")
def clusters() -> Callable[[], contextlib.AbstractContextManager[str]]:
    """Another cluster, beside the one of `cluster`."""
    return ray_cluster


@dataclass
class Drive:
    """A driver that runs."""

    launch: Launch
    address: str
    process: subprocess.Popen[bytes]
    messages: Path
    log: Path

    @property
    def directory(self) -> Path:
        return self.messages.parent

    @property
    def run(self) -> RunDirectory:
        return RunDirectory("public", self.launch.run_id, self.directory.parents[2])

    @property
    def output(self) -> str:
        return self.log.read_text()

    def wait(self, seconds: float = 400) -> tuple[int, str]:
        code = self.process.wait(seconds)
        return code, self.output

    def rows(self) -> list[dict[str, Any]]:
        """Every Pipes message, in order."""
        chunks = sorted(self.messages.glob("[0-9]*.jsonl"))
        return [json.loads(line) for chunk in chunks for line in chunk.read_text().splitlines()]

    def said(self, kind: str) -> list[dict[str, Any]]:
        """The custom messages of a kind, in order."""
        custom = (row["params"] for row in self.rows() if row["method"] == "report_custom_message")
        return [params["payload"] for params in custom if params["payload"]["kind"] == kind]

    def pid(self, rank: int) -> int:
        """The process of a rank, as Ray names it in the log."""
        found = re.search(rf"\(rank {rank} pid=(\d+)\)", self.output)
        assert found, self.output
        return int(found[1])

    def until(self, condition: Callable[[], bool], seconds: float = 300) -> None:
        deadline = time.monotonic() + seconds
        while not condition():
            assert self.process.poll() is None, self.output
            assert time.monotonic() < deadline, f"the run did not get that far\n{self.output}"
            time.sleep(0.1)


def pipes_environment(launch: Launch, messages: Path) -> dict[str, str]:
    """What Pipes hands to a driver."""
    context = {
        **dict.fromkeys(PipesContextData.__annotations__),
        "run_id": launch.run_id,
        "retry_number": 0,
        "extras": {"launch": launch.model_dump(mode="json")},
    }
    return {
        "DAGSTER_PIPES_CONTEXT": encode_param({"data": context}),
        "DAGSTER_PIPES_MESSAGES": encode_param({MESSAGES_DIRECTORY_PARAM: str(messages)}),
    }


def start(site: Site, launch: Launch, address: str) -> Drive:
    """Start the driver as the control plane does."""
    run = site.namespace.open_run(launch.classification, launch.run_id)
    messages = run.directory("messages")
    environment = {
        **os.environ,
        **site.settings.environment(),
        "RAY_ADDRESS": address,
        "PYTHONUNBUFFERED": "1",
        **pipes_environment(launch, messages),
    }
    logs = site.settings.state / "logs"
    logs.mkdir(parents=True, exist_ok=True)
    log = logs / f"{launch.run_id}.{len(list(logs.glob(f'{launch.run_id}.*.log')))}.log"
    with log.open("wb") as file:
        process = subprocess.Popen(
            [sys.executable, "-m", "factory.training"],
            stdout=file,
            stderr=subprocess.STDOUT,
            env=environment,
            cwd=CHECKOUT,
            start_new_session=True,
        )
    return Drive(launch, address, process, messages, log)


@pytest.fixture(scope="session")
def drive(site: Site, cluster: str) -> Iterator[Callable[..., Drive]]:
    """Starts a driver; none of them outlives the tests."""
    started: list[Drive] = []

    def begin(run_id: str, attempt: int = 1, address: str = cluster, **spec: Any) -> Drive:
        started.append(start(site, site.launch(run_id, attempt, **spec), address))
        return started[-1]

    yield begin
    for run in started:
        if run.process.poll() is None:
            os.killpg(run.process.pid, signal.SIGKILL)
            run.process.wait()
