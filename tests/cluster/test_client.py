"""A run on a real API server with KubeRay: pods are played, the driver and all else is real."""

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import dagster as dg
import pytest

from factory.control.abandoned import end_abandoned_runs
from factory.control.adoption import left_alone
from factory.control.instance import ensure
from factory.control.kube.chain import ADOPTS
from factory.settings import CHECKOUT, Settings
from tests.cluster import nodes
from tests.cluster.access import Account
from tests.cluster.control_plane import ControlPlane
from tests.cluster.dashboard import dashboard
from tests.cluster.hurried import hurried
from tests.cluster.launching import OPEN, Launcher, Outcome, until
from tests.cluster.played_cluster import played_cluster
from tests.cluster.stage import PORT, Stage, an_address, staged
from tests.control.kube.submissions import IMAGE

pytestmark = pytest.mark.cluster


@pytest.fixture(autouse=True)
def fast() -> Iterator[None]:
    with hurried():
        yield


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dg.DagsterInstance]:
    folder = tmp_path_factory.mktemp("home")
    settings = Settings.from_environment(
        {"DAGSTER_HOME": str(folder), "FACTORY_STATE": str(folder)}
    )
    with ensure(settings) as instance:
        yield instance


@pytest.fixture
def settings(tmp_path: Path, home: dg.DagsterInstance) -> Settings:
    (tmp_path / "namespace").mkdir()
    return Settings.from_environment(
        {
            "FACTORY_ROOT": str(tmp_path / "namespace"),
            "FACTORY_STATE": str(tmp_path / "state"),
            "DAGSTER_HOME": home.root_directory,
        }
    )


@pytest.fixture
def stage(west: ControlPlane, training: str, settings: Settings) -> Iterator[Stage]:
    with (
        an_address() as address,
        dashboard(address, port=PORT) as told,
    ):
        told.stopping = set()
        with staged(Stage(west.admin, training, "", told, settings.root)) as made:
            yield made


@pytest.fixture
def launcher(
    account: Account,
    home: dg.DagsterInstance,
    settings: Settings,
    tmp_path: Path,
    gpu_nodes: list[str],
) -> Launcher:
    return Launcher(settings, home, played_cluster(account, tmp_path / "token"), IMAGE)


def check_nothing_left(stage: Stage) -> None:
    assert stage.rayjobs() == []
    assert stage.pods() == []
    secrets = stage.admin.items(f"/api/v1/namespaces/{stage.namespace}/secrets")
    assert [one for one in secrets if one["type"] == "Opaque"] == []


def said(launcher: Launcher) -> str:
    """What the page of the run that goes on says."""
    (run,) = launcher.instance.get_runs(
        dg.RunsFilter(statuses=[dg.DagsterRunStatus.STARTED]), limit=1
    )
    return "\n".join(one.message for one in launcher.instance.all_logs(run.run_id))


class Launched:
    """A launch that goes on while the test does something to it."""

    def __init__(self, launcher: Launcher) -> None:
        self._outcomes: list[Outcome] = []
        self._thread = threading.Thread(target=lambda: self._outcomes.append(launcher.launch()))
        self._thread.start()

    def outcome(self) -> Outcome:
        self._thread.join(120)
        assert self._outcomes, "the run does not end"
        return self._outcomes[0]


WELL = """
with opened as pipes:
    print("a line", flush=True)
    pipes.report_custom_message({**step, "step": 9})
"""

WAITS = """
with opened as pipes:
    print("begun", flush=True)
    while not os.path.exists(os.environ["FACTORY_ROOT"] + "/go"): time.sleep(0.05)
    pipes.report_custom_message({**step, "step": 9})
"""

CLAIMS = """
with opened as pipes:
    root, attempt = os.environ["FACTORY_ROOT"], pipes.get_extra("launch")["attempt"]
    if os.path.exists(f"{root}/claimed-{attempt}"): os._exit(4)
    open(f"{root}/claimed-{attempt}", "w").close()
    while not os.path.exists(f"{root}/go"): time.sleep(0.05)
"""
"""Like the real one, it is kept out of an attempt that has had a driver."""


def test_a_run_that_does_well(stage: Stage, launcher: Launcher) -> None:
    stage.code = OPEN + WELL
    outcome = launcher.launch()
    assert outcome.result.success, outcome.lines
    assert any(line.startswith("step 9/9") for line in outcome.lines)
    assert outcome.driver_log == "a line\n"
    assert len(stage.drivers) == 1
    check_nothing_left(stage)


def test_a_driver_that_fails_says_why(stage: Stage, launcher: Launcher) -> None:
    stage.code = OPEN + "with opened: print('last words', flush=True); sys.exit(7)"
    outcome = launcher.launch()
    assert not outcome.result.success
    assert "exit code 7" in outcome.error
    assert "last words" in outcome.error
    check_nothing_left(stage)


def test_an_image_that_cannot_be_pulled(stage: Stage, launcher: Launcher) -> None:
    def play(stage: Stage, pod: dict[str, Any]) -> bool:
        if pod["spec"].get("nodeName"):
            nodes.wait(stage.admin, pod, "ErrImagePull", "manifest unknown")
        return True

    stage.play = play
    outcome = launcher.launch()
    assert "its image cannot be pulled" in outcome.error
    assert "manifest unknown" in outcome.error
    check_nothing_left(stage)


def cancel(launcher: Launcher) -> None:
    (run,) = launcher.instance.get_runs(
        dg.RunsFilter(statuses=[dg.DagsterRunStatus.STARTED]), limit=1
    )
    launcher.instance.report_run_canceling(run)


@pytest.mark.parametrize("when", ["queued", "starting", "running"])
def test_cancelled_at_any_moment_it_leaves_nothing(
    stage: Stage, launcher: Launcher, when: str
) -> None:
    stage.code = OPEN + WAITS
    moments: dict[str, Callable[[], Any]] = {
        "queued": stage.rayjobs,
        "starting": lambda: len(stage.pods()) == 2,
        "running": lambda: stage.drivers and list(stage.root.rglob("000001.jsonl")),
    }
    if when != "running":
        stage.play = lambda _stage, _pod: True  # no pod ever runs
    launched = Launched(launcher)
    until(moments[when])
    cancel(launcher)
    outcome = launched.outcome()
    run = launcher.instance.get_run_by_id(outcome.result.run_id)
    assert run is not None
    assert run.status == dg.DagsterRunStatus.CANCELED
    if when == "running":
        assert stage.told.stopped
        assert stage.driver().poll() == 75  # it was told, and ended in order
    check_nothing_left(stage)


def test_a_head_that_is_lost_is_answered_with_another_attempt(
    stage: Stage, launcher: Launcher
) -> None:
    stage.code = OPEN + CLAIMS
    launched = Launched(launcher)
    until(lambda: list(stage.root.rglob("000001.jsonl")))
    until(lambda: "its driver runs on" in said(launcher))
    (stage.root / "go").write_text("")
    head = next(iter(stage.heads.values()))
    os.kill(stage.driver().pid, signal.SIGSTOP)
    stage.admin.delete(nodes.path_of(head))
    outcome = launched.outcome()
    assert outcome.result.success, outcome.lines
    assert any("Attempt 2 waits in the queue" in line for line in outcome.lines)
    check_nothing_left(stage)


def test_a_rayjob_that_somebody_deletes(stage: Stage, launcher: Launcher) -> None:
    stage.code = OPEN + WAITS
    launched = Launched(launcher)
    until(lambda: stage.drivers)
    time.sleep(1)
    path = f"/apis/ray.io/v1/namespaces/{stage.namespace}/rayjobs"
    stage.admin.delete(f"{path}/{stage.rayjobs()[0]['metadata']['name']}")
    outcome = launched.outcome()
    assert "its RayJob is gone, deleted by somebody else" in outcome.error
    check_nothing_left(stage)


def test_an_api_server_that_is_killed_ends_nothing(
    west: ControlPlane, stage: Stage, launcher: Launcher
) -> None:
    stage.code = OPEN + WAITS
    launched = Launched(launcher)
    until(lambda: list(stage.root.rglob("000001.jsonl")))
    west.server.restart()
    west.wait_until_ready()
    (stage.root / "go").write_text("")
    outcome = launched.outcome()
    assert outcome.result.success, outcome.error
    assert len(stage.drivers) == 1
    check_nothing_left(stage)


MOMENTS: dict[str, Callable[[Stage], Any]] = {
    "made": Stage.rayjobs,
    "starting": lambda stage: len(stage.pods()) == 2,
    "running": lambda stage: list(stage.root.rglob("000001.jsonl")),
}


@pytest.mark.parametrize("when", MOMENTS)
def test_a_run_whose_process_is_killed_is_adopted_and_not_doubled(
    stage: Stage, launcher: Launcher, when: str
) -> None:
    stage.code = OPEN + WAITS
    command = [sys.executable, "-m", "tests.cluster.launching", launcher.as_argument()]
    killed = subprocess.Popen(command, cwd=CHECKOUT)
    until(lambda: MOMENTS[when](stage))
    killed.kill()
    killed.wait()
    end_abandoned_runs(launcher.instance)
    [alone] = left_alone(launcher.instance)
    (stage.root / "go").write_text("")

    outcome = launcher.launch(tags={ADOPTS: alone.run_id})

    assert outcome.result.success, outcome.error
    assert outcome.run.run_id == alone.run_id
    assert len(stage.drivers) == 1
    assert outcome.driver_log == "begun\n"
    assert left_alone(launcher.instance) == []
    check_nothing_left(stage)


def test_what_did_well_while_nobody_followed_is_still_told(
    stage: Stage, launcher: Launcher
) -> None:
    """The RayJob may be gone by then, and what it said is in the namespace."""
    stage.code = OPEN + WAITS
    command = [sys.executable, "-m", "tests.cluster.launching", launcher.as_argument()]
    killed = subprocess.Popen(command, cwd=CHECKOUT)
    until(lambda: list(stage.root.rglob("000001.jsonl")))
    killed.kill()
    killed.wait()
    (stage.root / "go").write_text("")
    until(lambda: stage.driver().poll() == 0)
    end_abandoned_runs(launcher.instance)
    [alone] = left_alone(launcher.instance)
    outcome = launcher.launch(tags={ADOPTS: alone.run_id})
    assert outcome.result.success, outcome.error
    assert any(line.startswith("step 9/9") for line in outcome.lines)
    check_nothing_left(stage)


@pytest.mark.parametrize("deployment", ["laptop", "prod"])
def test_a_process_that_is_told_to_end_leaves_the_run_to_another_where_a_service_has_it(
    stage: Stage, launcher: Launcher, deployment: str
) -> None:
    stage.code = OPEN + WAITS
    launcher.settings = launcher.settings.model_copy(update={"deployment": deployment})
    command = [sys.executable, "-m", "tests.cluster.launching", launcher.as_argument()]
    moved = subprocess.Popen(command, cwd=CHECKOUT)
    until(lambda: list(stage.root.rglob("000001.jsonl")))
    until(lambda: "its driver runs on" in said(launcher))
    moved.terminate()
    moved.wait(60)
    if deployment == "laptop":  # it is the run that somebody wants to end
        assert stage.driver().poll() == 75
        assert left_alone(launcher.instance) == []
        return check_nothing_left(stage)
    assert stage.driver().poll() is None
    end_abandoned_runs(launcher.instance)
    [alone] = left_alone(launcher.instance)
    (stage.root / "go").write_text("")
    outcome = launcher.launch(tags={ADOPTS: alone.run_id})
    assert outcome.result.success, outcome.error
    assert len(stage.drivers) == 1
    return check_nothing_left(stage)
