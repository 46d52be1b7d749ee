"""Runs on real Ray clusters of their own: side by side, killed, cancelled, and what is left."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import pytest

from factory.control import local, local_cluster
from factory.control.local import LocalBackend
from factory.control.processes import members
from factory.control.sessions import SOCKET_ROOT, Session, Sessions
from factory.errors import RunFailed
from factory.namespace import Namespace
from factory.settings import Settings
from factory.spec import CodeIdentity, Launch, RunSpec

DRIVER = """
import os, signal, sys, time
from dagster_pipes import open_dagster_pipes
from factory.training.messages import NamespaceMessageWriter

def phase(pipes, name):
    pipes.report_custom_message({"kind": "phase", "name": name, "detail": "", "seconds": 1.0})

def end(*_):
    raise SystemExit(143)

signal.signal(signal.SIGTERM, end)
with open_dagster_pipes(message_writer=NamespaceMessageWriter(interval_seconds=0.0)) as pipes:
    import ray
    ray.init(address=os.environ["RAY_ADDRESS"])

    @ray.remote(num_cpus=1)
    class Worker:
        def where(self):
            print("a word from a worker", flush=True)
            return os.getpid(), os.environ["FACTORY_SESSION"], ray.util.get_node_ip_address()

        def node(self):
            return len(ray.nodes()), ray.cluster_resources()["CPU"]

    workers = [Worker.remote() for _ in range(2)]
    print("workers", ray.get([w.where.remote() for w in workers]))
    print("cluster", ray.get(workers[0].node.remote()))
    phase(pipes, "workers")
    how = sys.argv[1]
    if how == "waits":
        try:
            time.sleep(600)
        finally:
            phase(pipes, "checkpoint")
    elif how == "ignores":
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        time.sleep(600)
    elif how == "dies":
        time.sleep(1)  # until the message is out
        os.kill(os.getpid(), signal.SIGKILL)
"""

OWNER = '''
"""A process as Dagster has it: it runs a job whose one op runs a driver on the local backend."""
import json, sys
from pathlib import Path
import dagster as dg
from factory.control.instance import ensure
from factory.control.local import LocalBackend
from factory.control.pipes import FactoryPipesClient
from factory.namespace import Namespace
from factory.settings import Settings
from factory.spec import Launch

driver, how, launch = sys.argv[1], sys.argv[2], Launch.model_validate_json(sys.argv[3])
settings = Settings.from_environment()

@dg.op
def train(context):
    run = Namespace(settings.root).open_run(launch.classification, launch.run_id)
    backend = LocalBackend(settings, driver=(sys.executable, driver, how))
    FactoryPipesClient(settings, backend, grace_seconds=10).run(
        context=context, launch=launch, run_directory=run
    )

@dg.job(executor_def=dg.in_process_executor)
def job():
    train()

with ensure(settings) as instance:
    result = job.execute_in_process(instance=instance, raise_on_error=False)
    print("RESULT", json.dumps([event.message for event in result.get_step_failure_events()]))
sys.exit(0 if result.success else 1)
'''


def launch_of(run_id: str, workers: int = 2) -> Launch:
    return Launch(
        run_id=run_id,
        attempt=1,
        classification="public",
        spec=RunSpec(recipe="debug.pretrain", mix="smoke", workers=workers),
        profile="cpu",
        datasets={},
        image=None,
        code=CodeIdentity(commit=None, tree="t", lock="l"),
    )


@dataclass
class Factory:
    """Starts owners, and knows what they leave."""

    settings: Settings
    folder: Path

    def owner(self, run_id: str, how: str) -> subprocess.Popen[str]:
        driver = self.folder / "driver.py"
        driver.write_text(DRIVER)
        owner = self.folder / "owner.py"
        owner.write_text(OWNER)
        launch = launch_of(run_id).model_dump_json()
        with (self.folder / f"{run_id}.out").open("wb") as output:
            return subprocess.Popen(
                [sys.executable, str(owner), str(driver), how, launch],
                env={**os.environ, **self.settings.environment()},
                stdout=output,
                stderr=subprocess.STDOUT,
                text=True,
            )

    def said(self, run_id: str) -> str:
        return (self.folder / f"{run_id}.out").read_text()

    @property
    def sessions(self) -> Sessions:
        return Sessions(self.settings.state)

    def session(self, run_id: str) -> Session:
        [session] = [s for s in self.sessions.all() if s.run_id == run_id]
        return session

    def wait_for_workers(self, run_id: str) -> Session:
        """Until the run's Ray workers are there; its session."""
        deadline = time.monotonic() + 120
        while "workers (1.0 s)" not in self.said(run_id):
            assert time.monotonic() < deadline, self.said(run_id)
            time.sleep(0.1)
        session = self.session(run_id)
        assert len(members(session.id, session.directory)) > 6
        return session

    def assert_nothing_left(self, session: Session) -> None:
        assert members(session.id, session.directory) == []
        assert not session.directory.exists()
        assert session not in self.sessions.all()


@pytest.fixture
def factory(settings: Settings, tmp_path: Path) -> Iterator[Factory]:
    made = Factory(settings, tmp_path)
    yield made
    for session in made.sessions.all():
        made.sessions.close(session)


@pytest.mark.slow
def test_two_runs_at_once_have_clusters_of_their_own(factory: Factory) -> None:
    owners = {run_id: factory.owner(run_id, "ends") for run_id in ("run-1", "run-2")}
    for run_id, owner in owners.items():
        assert owner.wait(180) == 0, factory.said(run_id)
    seen: set[str] = set()
    for run_id in owners:
        log = (
            factory.settings.root / "public" / "runs" / run_id / "logs" / "driver.log"
        ).read_text()
        assert "a word from a worker" in log
        assert f"cluster (1, {float(max(2, os.cpu_count() or 1))})" in log
        [workers] = [line for line in log.splitlines() if line.startswith("workers")]
        assert "127.0.0.2" in workers
        seen.add(workers.split("'")[1])
    assert len(seen) == 2
    assert factory.sessions.all() == []
    for session_id in seen:
        assert not (SOCKET_ROOT / f"fy-{session_id}").exists()
        assert members(session_id, SOCKET_ROOT / f"fy-{session_id}") == []


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_to_dagster_stops_the_run_gracefully(
    factory: Factory, number: signal.Signals
) -> None:
    owner = factory.owner("run-1", "waits")
    session = factory.wait_for_workers("run-1")
    owner.send_signal(number)
    assert owner.wait(60) != 0
    assert "checkpoint (1.0 s)" in factory.said("run-1")
    factory.assert_nothing_left(session)


@pytest.mark.slow
def test_a_driver_that_is_killed_leaves_nothing_and_is_explained(factory: Factory) -> None:
    owner = factory.owner("run-1", "dies")
    session = factory.wait_for_workers("run-1")
    assert owner.wait(60) == 1
    said = factory.said("run-1")
    assert "was ended by SIGKILL" in said
    assert "a word from a worker" in said.partition("The last lines of")[2]
    factory.assert_nothing_left(session)
    kept = factory.settings.root / "public" / "runs" / "run-1" / "logs" / "ray"
    assert [path for path in kept.iterdir() if path.name.startswith("gcs_server")]


@pytest.mark.slow
def test_when_dagster_is_killed_the_cluster_ends_itself(factory: Factory) -> None:
    owner = factory.owner("run-1", "ignores")
    session = factory.wait_for_workers("run-1")
    owner.kill()
    owner.wait()
    deadline = time.monotonic() + 20
    while session.directory.exists() or members(session.id, session.directory):
        assert time.monotonic() < deadline
        time.sleep(0.2)
    factory.assert_nothing_left(session)


@pytest.mark.slow
def test_the_next_start_ends_what_was_left_when_its_holder_was_killed_too(
    factory: Factory,
) -> None:
    """Killed together with the process that would have noticed, as the kernel does for memory."""
    owner = factory.owner("run-1", "ignores")
    session = factory.wait_for_workers("run-1")
    [holder] = [
        process
        for process in members(session.id, session.directory)
        if local_cluster.head.__name__ in process.command
    ]
    os.kill(holder.pid, signal.SIGSTOP)  # so that it cannot notice between the two
    owner.kill()
    owner.wait()
    os.kill(holder.pid, signal.SIGKILL)
    assert members(session.id, session.directory) != []
    run = Namespace(factory.settings.root).open_run("public", "run-2")
    cluster = LocalBackend(factory.settings).start(launch_of("run-2"), run)
    try:
        factory.assert_nothing_left(session)
        assert [s.run_id for s in factory.sessions.all()] == ["run-2"]
    finally:
        cluster.stop(0.0)
    assert factory.sessions.all() == []


@pytest.mark.slow
def test_a_cluster_that_dies_under_a_run_fails_it(factory: Factory) -> None:
    owner = factory.owner("run-1", "ignores")
    session = factory.wait_for_workers("run-1")
    [server] = [p for p in members(session.id, session.directory) if "/gcs_server " in p.command]
    server.send(signal.SIGKILL)
    assert owner.wait(60) == 1
    said = factory.said("run-1")
    assert "Ray ended while the run was going on" in said
    assert "gcs_server of Ray died" in said
    factory.assert_nothing_left(session)


@pytest.mark.slow
def test_ray_that_cannot_start_is_explained(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(local_cluster, "OBJECT_STORE_BYTES", 1)  # Ray wants 75 MB
    run = Namespace(settings.root).open_run("public", "run-1")
    backend = LocalBackend(settings, driver=(sys.executable, "-c", "import time; time.sleep(600)"))
    cluster = backend.start(launch_of("run-1"), run)
    try:
        cluster.submit({})
        deadline = time.monotonic() + 60
        while not (state := cluster.poll()).ended:
            assert time.monotonic() < deadline
            time.sleep(0.1)
        assert "Ray could not start: its process ended with exit code 1, saying: ValueError" in (
            state.reason
        )
        assert str(run.path / "logs" / "ray.log") in state.reason
    finally:
        cluster.stop(0.0)
    assert Sessions(settings.state).all() == []


def test_a_cluster_can_be_stopped_at_once_and_again(settings: Settings) -> None:
    run = Namespace(settings.root).open_run("public", "run-1")
    cluster = LocalBackend(settings).start(launch_of("run-1"), run)
    [session] = Sessions(settings.state).all()
    assert session.owner.pid == os.getpid()
    cluster.stop(5.0)
    cluster.stop(5.0)
    assert members(session.id, session.directory) == []
    assert not session.directory.exists()
    assert Sessions(settings.state).all() == []


def test_what_is_missing_before_a_start_is_named(
    settings: Settings, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    from factory.namespace import RunDirectory

    backend = LocalBackend(settings)
    with pytest.raises(RunFailed, match="open the run first"):
        backend.start(launch_of("run-1"), RunDirectory("public", "run-1", settings.root))
    run = Namespace(settings.root).open_run("public", "run-1")
    monkeypatch.setattr(local, "LEAST_FREE_BYTES", 2**60)
    with pytest.raises(RunFailed, match="Make room"):
        backend.start(launch_of("run-1"), run)
    monkeypatch.undo()
    monkeypatch.setattr(local_cluster.sys, "executable", "/no/python")
    with pytest.raises(RunFailed, match="/no/python cannot be started"):
        backend.start(launch_of("run-1"), run)
    assert Sessions(settings.state).all() == []


def test_a_port_is_nobody_elses_until_it_is_used() -> None:
    with ThreadPoolExecutor(16) as pool:
        held = list(pool.map(lambda _: local_cluster._hold_port(), range(200)))
    try:
        ports = {each.getsockname()[1] for each in held}
        assert len(ports) == 200
        with local_cluster.socket.socket() as other, pytest.raises(OSError, match="in use"):
            other.bind((local_cluster.ADDRESS, next(iter(ports))))
        server = local_cluster.socket.socket()
        server.setsockopt(local_cluster.socket.SOL_SOCKET, local_cluster.socket.SO_REUSEADDR, 1)
        server.bind(("", next(iter(ports))))  # as Ray's server does
        server.listen()
        server.close()
    finally:
        for each in held:
            each.close()


def test_the_driver_gets_what_it_needs_and_no_more(settings: Settings) -> None:
    code = "import json, os; print(json.dumps([dict(os.environ), os.getcwd()]))"
    backend = LocalBackend(settings, driver=(sys.executable, "-c", code))
    run = Namespace(settings.root).open_run("public", "run-1")
    cluster = backend.start(launch_of("run-1"), run)
    try:
        [session] = Sessions(settings.state).all()
        cluster.submit({"DAGSTER_PIPES_CONTEXT": "c"})
        deadline = time.monotonic() + 30
        while not (state := cluster.poll()).ended:
            assert time.monotonic() < deadline
            time.sleep(0.05)
        assert state.phase == "succeeded"
        environment, directory = json.loads(cluster.read_log().read(0, 2**20))
        assert environment["FACTORY_ROOT"] == str(settings.root)
        assert environment["DAGSTER_PIPES_CONTEXT"] == "c"
        assert environment["FACTORY_SESSION"] == session.id
        assert environment["RAY_AUTH_MODE"] == "token"
        assert environment["RAY_ADDRESS"].startswith("127.0.0.2:")
        assert environment["TMPDIR"] == directory == str(session.directory / "tmp")
    finally:
        cluster.stop(0.0)
