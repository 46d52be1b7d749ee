"""The client against drivers that end in every way. Real processes and messages, without Ray.

With Ray: `test_local`.
"""

import contextlib
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

import dagster as dg
import pytest

from factory.control import follower, pipes
from factory.control.answers import Ended
from factory.control.backend import Phase, RunCluster, State
from factory.control.clocks import Clock
from factory.control.instance import ensure
from factory.control.logs import FileSource
from factory.control.messages import NamespaceMessageReader
from factory.control.pipes import FactoryPipesClient
from factory.control.uninterrupted import stop
from factory.control.verdict import PREEMPTED
from factory.errors import RunFailed
from factory.keys import Classification
from factory.namespace import Namespace, RunDirectory
from factory.settings import Settings
from factory.spec import CodeIdentity, Launch, RunSpec

OPEN = """
import os, signal, sys, time
from dagster_pipes import open_dagster_pipes
from factory.training.messages import NamespaceMessageWriter
opened = open_dagster_pipes(message_writer=NamespaceMessageWriter(interval_seconds=0.0))
step = {"kind": "step", "of": 3, "loss": 2.0, "grad_norm": 1.0, "learning_rate": 1e-4,
        "tokens": 100, "seconds": 0.1}
"""


@dataclass
class PlainCluster:
    """A driver as a process of its own, without a cluster."""

    code: str
    log: Path
    wait_seconds: float = 0.0
    opens: bool = False
    """Whether it runs only once the driver has opened, however long that takes."""
    process: subprocess.Popen[bytes] | None = None
    began: float = field(default_factory=time.monotonic)
    stops: list[float] = field(default_factory=list)
    taken_up: bool = False
    left: bool = False
    fails: Exception | None = None
    """What `submit` raises, where the run that is there cannot be taken up."""
    ends_as: Phase | None = None
    """What it says of a driver that has ended, whatever its exit code."""
    stays: bool = False
    """Whether something is left of it when it is stopped."""

    def submit(self, environment: Mapping[str, str]) -> None:
        if self.fails is not None:
            raise self.fails
        with self.log.open("ab") as output:
            self.process = subprocess.Popen(
                [sys.executable, "-c", OPEN + self.code],
                env={**os.environ, **environment},
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    def poll(self) -> State:
        if time.monotonic() - self.began < self.wait_seconds:
            return State(phase="queued", reason="2 of 2 places are taken")
        assert self.process is not None
        code = self.process.poll()
        if code is None and self.opens and not list(self.log.parents[1].rglob("000001.jsonl")):
            return State(phase="starting", reason="its driver starts")
        if code is None:
            return State(phase="running", reason="running")
        if code is not None and self.ends_as:
            return State(phase=self.ends_as, reason="its place was taken")
        if code == PREEMPTED:
            return State(phase="evicted", reason="it was told to stop", exit_code=code)
        return State(phase="failed" if code else "succeeded", exit_code=code)

    def read_log(self) -> FileSource:
        return FileSource(self.log)

    def facts(self) -> Mapping[str, str]:
        return {"cluster": "plain"}

    def leave(self) -> None:
        self.left = True
        self.process = None

    def stop(self, grace_seconds: float) -> None:
        self.stops.append(grace_seconds)
        if self.process is not None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self.process.pid, signal.SIGTERM)
            try:
                self.process.wait(grace_seconds)
            except subprocess.TimeoutExpired:
                os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait(10)
        if self.stays:
            raise RunFailed("RayJob run-1 was deleted, but is still there")


@dataclass
class Outcome:
    result: dg.ExecuteInProcessResult
    lines: list[str]
    run: RunDirectory
    cluster: PlainCluster
    messages: list[object]

    @property
    def error(self) -> str:
        [failed] = self.result.get_step_failure_events()
        error = failed.step_failure_data.error
        assert error is not None
        while error.cause is not None:
            error = error.cause
        return error.message


@dataclass
class Runner:
    """Executes a Dagster job whose one op runs a driver."""

    settings: Settings
    instance: dg.DagsterInstance
    classification: Classification = "public"
    wait_seconds: float = 0.0
    opens: bool = False
    spec: RunSpec = field(default_factory=lambda: RunSpec(recipe="debug.pretrain", mix="smoke"))
    grace_seconds: float = 10.0
    cluster: PlainCluster | None = None
    taken_up: bool = False
    fails: Exception | None = None
    ends_as: Phase | None = None
    stays: bool = False
    resumed: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """What a resumption says of its launch."""
    has_spent: Mapping[Clock, float] = field(default_factory=dict[Clock, float])

    @property
    def root(self) -> None:
        return None

    def adopted(self, spec: RunSpec) -> None:
        return

    def next_attempt(self) -> int:
        return 1

    def spent(self) -> dict[Clock, float]:
        return dict(self.has_spent)

    def history(self) -> list[Ended]:
        return []

    def shown(self, attempt: int) -> dict[str, int]:
        return {}

    def start(self, launch: Launch, run_directory: RunDirectory) -> RunCluster:
        assert self.cluster is not None
        return self.cluster

    def run(self, code: str) -> Outcome:
        messages: list[object] = []
        directories: list[RunDirectory] = []

        @dg.op
        def train(context: dg.OpExecutionContext) -> None:
            launch = launch_of(context.run_id, self.classification, self.spec)
            launch = launch.model_copy(update=dict(self.resumed))
            run = Namespace(self.settings.root).open_run(self.classification, context.run_id)
            directories.append(run)
            self.cluster = PlainCluster(
                code, run.directory("logs") / "driver.log", self.wait_seconds, self.opens
            )
            self.cluster.taken_up, self.cluster.fails = self.taken_up, self.fails
            self.cluster.ends_as, self.cluster.stays = self.ends_as, self.stays
            client = FactoryPipesClient(
                self.settings, self, grace_seconds=self.grace_seconds, poll_seconds=0.02
            )
            done = client.run(context=context, launch=launch, run_directory=run)
            messages.extend(done.get_custom_messages())

        @dg.job(executor_def=dg.in_process_executor)
        def job() -> None:
            train()

        result = job.execute_in_process(instance=self.instance, raise_on_error=False)
        lines = [event.user_message for event in self.instance.all_logs(result.run_id)]
        assert self.cluster is not None
        assert self.cluster.process is None or self.cluster.process.poll() is not None
        return Outcome(result, lines, directories[0], self.cluster, messages)


def launch_of(run_id: str, classification: Classification, spec: RunSpec) -> Launch:
    return Launch(
        run_id=run_id,
        attempt=1,
        classification=classification,
        spec=spec,
        profile="cpu",
        datasets={},
        image=None,
        code=CodeIdentity(commit=None, tree="t", lock="l"),
    )


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dg.DagsterInstance]:
    """One Dagster instance for all of this module: making one takes seconds."""
    folder = tmp_path_factory.mktemp("home")
    settings = Settings.from_environment(
        {"DAGSTER_HOME": str(folder), "FACTORY_STATE": str(folder)}
    )
    with ensure(settings) as instance:
        yield instance


@pytest.fixture
def runner(settings: Settings, home: dg.DagsterInstance) -> Runner:
    return Runner(settings, home)


def test_a_run_that_does_well(runner: Runner, capfd: pytest.CaptureFixture[str]) -> None:
    outcome = runner.run(
        """
with opened as pipes:
    print("launch of", pipes.get_extra("launch")["run_id"])
    pipes.report_custom_message({"kind": "phase", "name": "cluster", "seconds": 1.5})
    pipes.report_custom_message({**step, "step": 3})
    pipes.log.info("a word")
"""
    )
    assert outcome.result.success
    assert "cluster (1.5 s)" in outcome.lines
    assert any(line.startswith("step 3/3, loss 2.0000, grad norm 1.000") for line in outcome.lines)
    assert "a word" in outcome.lines
    assert len(outcome.messages) == 2
    assert not [e for e in outcome.result.all_events if e.is_step_materialization]


def test_what_the_driver_prints_is_the_steps_output(runner: Runner) -> None:
    outcome = runner.run("print('printed line')\nwith opened as pipes: pass")
    [captured] = [e for e in outcome.result.all_events if e.event_type_value == "LOGS_CAPTURED"]
    data = cast("Any", captured.event_specific_data)
    key = [outcome.result.run_id, "compute_logs", data.file_key]
    log = runner.instance.compute_log_manager.get_log_data(key).stdout
    assert log is not None
    assert b"printed line\n" in log
    assert "printed line" not in "".join(outcome.lines)


def test_an_exception_comes_first_then_the_end_of_the_log(runner: Runner) -> None:
    outcome = runner.run(
        """
with opened as pipes:
    for i in range(100): print("line", i, flush=True)
    raise ValueError("learning rate is negative")
"""
    )
    first, second, *rest = outcome.error.splitlines()
    assert "ValueError: learning rate is negative" in first
    assert second == "The driver ended with exit code 1."
    assert "The last lines of" in rest[0]
    assert "  line 99" in rest
    assert "  line 10" not in rest
    assert len(rest) == 41


@pytest.mark.parametrize(
    ("code", "said"),
    [
        ("os._exit(0)", "exit code 0 but never closed its messages"),
        ("pipes.close(); os._exit(7)", "ended with exit code 7, although it had closed"),
        (
            "os.kill(os.getpid(), signal.SIGKILL)",
            "ended by SIGKILL (by a person, or for want of memory) before",
        ),
        ("os.kill(os.getpid(), signal.SIGSEGV)", "ended by SIGSEGV before it closed"),
        ("os._exit(3)", "ended with exit code 3: it refused the launch"),
    ],
)
def test_a_driver_that_only_seems_to_do_well_fails(
    runner: Runner, monkeypatch: pytest.MonkeyPatch, code: str, said: str
) -> None:
    monkeypatch.setattr(follower, "LATE_CLOSE_SECONDS", 0.3)
    outcome = runner.run(f"with opened as pipes:\n    print('last words', flush=True)\n    {code}")
    assert not outcome.result.success
    assert said in outcome.error
    assert "  last words" in outcome.error


@pytest.mark.parametrize("well", [True, False])
def test_a_driver_that_hangs_after_its_last_word_is_judged_by_that(
    runner: Runner, monkeypatch: pytest.MonkeyPatch, well: bool
) -> None:
    monkeypatch.setattr(follower, "CLOSED_SECONDS", 0.5)
    work = "pass" if well else "raise ValueError('bad row')"
    code = f"""
import contextlib
with contextlib.suppress(ValueError):
    with opened as pipes:
        {work}
time.sleep(600)
"""
    outcome = runner.run(code)
    assert outcome.result.success is well
    assert any("its driver has closed, and" in line for line in outcome.lines)
    if not well:
        assert "bad row" in outcome.error


def test_a_driver_that_never_opens_fails(runner: Runner) -> None:
    assert "It printed nothing" in runner.run("sys.exit(0)").error
    missing = runner.run("import no_such_module")
    assert "No module named 'no_such_module'" in missing.error


def test_of_a_private_run_nothing_that_it_said_reaches_dagster(runner: Runner) -> None:
    runner.classification = "private"
    outcome = runner.run(
        """
with opened as pipes:
    print("patient Quillfeather", flush=True)
    pipes.log.info("patient Quillfeather")
    raise ValueError("patient Quillfeather")
"""
    )
    assert not outcome.result.success
    assert "ValueError was raised in the driver" in outcome.error
    log = outcome.run.path / "logs" / "driver.log"
    assert str(log) in outcome.error
    assert "patient Quillfeather" in log.read_text()
    home = Path(runner.instance.root_directory)
    stored = [p for p in home.rglob("*") if p.is_file() and b"Quillfeather" in p.read_bytes()]
    assert stored == []
    assert "Quillfeather" not in "".join(outcome.lines)


def test_waiting_has_its_own_limit(runner: Runner) -> None:
    runner.wait_seconds = 60
    runner.spec = runner.spec.model_copy(update={"queue_limit_hours": 0.5 / 3600})
    outcome = runner.run("time.sleep(600)")
    assert "waited longer than queue_limit_hours" in outcome.error
    assert "2 of 2 places are taken" in outcome.error


def test_time_in_the_queue_does_not_count_as_running(runner: Runner) -> None:
    runner.wait_seconds = 1.0
    runner.has_spent = {"queue": 3000.0}
    runner.spec = runner.spec.model_copy(update={"run_limit_hours": 0.5})
    assert runner.run("with opened: pass").result.success


def test_a_run_over_its_limit_is_stopped_gracefully(runner: Runner) -> None:
    runner.opens = True
    runner.spec = runner.spec.model_copy(update={"run_limit_hours": 0.5 / 3600})
    outcome = runner.run(
        """
def end(*_): raise SystemExit(0)
signal.signal(signal.SIGTERM, end)
with opened as pipes:
    try: time.sleep(600)
    finally: pipes.report_custom_message({"kind": "phase", "name": "checkpoint", "seconds": 2})
"""
    )
    assert "it ran longer than run_limit_hours" in outcome.error
    assert "checkpoint (2.0 s)" in outcome.lines  # said after it was asked to stop


def test_a_driver_that_will_not_stop_is_killed(runner: Runner) -> None:
    runner.spec = runner.spec.model_copy(update={"run_limit_hours": 1.0 / 3600})
    runner.grace_seconds = 0.5
    began = time.monotonic()
    outcome = runner.run("signal.signal(signal.SIGTERM, signal.SIG_IGN)\ntime.sleep(600)")
    assert "run_limit_hours" in outcome.error
    assert time.monotonic() - began < 30


def test_cancelling_in_the_ui_stops_a_run_that_gets_no_signal(
    runner: Runner, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(follower, "CANCEL_POLL_SECONDS", 0.2)

    def cancel() -> None:
        while not (
            runs := runner.instance.get_runs(dg.RunsFilter(statuses=[dg.DagsterRunStatus.STARTED]))
        ):
            time.sleep(0.05)
        time.sleep(0.5)
        runner.instance.report_run_canceling(runs[0])

    canceller = threading.Thread(target=cancel)
    canceller.start()
    outcome = runner.run("time.sleep(600)")
    canceller.join()
    assert not outcome.result.success
    assert outcome.cluster.stops[0] == runner.grace_seconds
    run = runner.instance.get_run_by_id(outcome.result.run_id)
    assert run is not None
    assert run.status == dg.DagsterRunStatus.CANCELED


class Interrupted:
    """A cluster that is slow to stop, and is told to hurry by a signal to this process."""

    def __init__(self) -> None:
        self.ended = threading.Event()
        self.stops: list[float] = []

    def stop(self, grace_seconds: float) -> None:
        self.stops.append(grace_seconds)
        if grace_seconds:
            time.sleep(0.1)
            os.kill(os.getpid(), signal.SIGINT)
            self.ended.wait(60)
        self.ended.set()


def test_an_interrupt_does_not_cut_a_teardown_short_but_ends_its_grace() -> None:
    for _ in range(10):
        cluster = Interrupted()
        with pytest.raises(KeyboardInterrupt):
            stop(cluster, 30.0)  # type: ignore[arg-type]
        assert cluster.ended.is_set()
        assert cluster.stops == [30.0, 0.0]


def test_an_interrupt_that_something_was_left_by_says_so() -> None:
    class Stuck(Interrupted):
        def stop(self, grace_seconds: float) -> None:
            super().stop(grace_seconds)
            raise RunFailed("process 1 is left")

    with pytest.raises(KeyboardInterrupt) as caught:
        stop(Stuck(), 30.0)  # type: ignore[arg-type]
    assert str(caught.value.__cause__) == "process 1 is left"


def test_a_failed_teardown_is_not_silent() -> None:
    class Stuck:
        def stop(self, grace_seconds: float) -> None:
            raise RunFailed("process 1 is left")

    with pytest.raises(RunFailed, match="process 1 is left"):
        stop(Stuck(), 0.0)  # type: ignore[arg-type]


PREEMPTED_ONCE = """
with opened as pipes:
    attempt = pipes.get_extra("launch")["attempt"]
    print("attempt", attempt, flush=True)
    pipes.report_custom_message({"kind": "phase", "name": f"driver {attempt}", "seconds": 1.0})
    if attempt == 1: sys.exit(75)
"""


def test_a_preempted_run_goes_on_as_its_next_attempt(runner: Runner) -> None:
    outcome = runner.run(PREEMPTED_ONCE)
    assert outcome.result.success
    assert "driver 1 (1.0 s)" in outcome.lines
    assert "driver 2 (1.0 s)" in outcome.lines
    [warned] = [line for line in outcome.lines if "Attempt 2 waits" in line]
    assert warned.startswith("Attempt 1: it was told to stop. Attempt 2 waits in the queue")
    assert "There is none: it begins again." in warned
    assert (outcome.run.path / "logs" / "driver.log").read_text() == "attempt 1\nattempt 2\n"
    assert (outcome.run.path / "messages" / "attempt-2" / "000001.jsonl").is_file()


def test_a_run_that_is_preempted_again_and_again_is_given_up(runner: Runner) -> None:
    outcome = runner.run("with opened: pass\nsys.exit(75)")
    assert not outcome.result.success
    assert "lost its place 3 times with no new checkpoint between" in outcome.error
    assert "factory resume" in outcome.error


@pytest.mark.parametrize("phase", ["evicted", "lost"])
def test_a_place_that_is_taken_once_the_driver_is_done_takes_nothing(
    runner: Runner, phase: Phase
) -> None:
    """Between its last word and its cluster's."""
    runner.ends_as = phase
    outcome = runner.run("with opened: print('trained', flush=True)")
    assert outcome.result.success
    assert (outcome.run.path / "logs" / "driver.log").read_text() == "trained\n"


def test_a_place_that_is_taken_before_is_lost(runner: Runner) -> None:
    runner.ends_as = "evicted"
    outcome = runner.run("with opened: raise RuntimeError('told to stop')")
    assert "lost its place 3 times" in outcome.error


def test_what_is_left_of_a_cluster_takes_nothing_from_a_run(runner: Runner) -> None:
    runner.stays = True
    outcome = runner.run("with opened as pipes: pipes.log.info('all is done')")
    assert outcome.result.success
    assert "all is done" in outcome.lines
    assert "RayJob run-1 was deleted, but is still there" in outcome.lines


def test_the_last_words_are_shown_also_where_something_is_left(runner: Runner) -> None:
    runner.stays = True
    runner.spec = runner.spec.model_copy(update={"run_limit_hours": 0.5 / 3600})
    outcome = runner.run(
        """
import signal
def told(*_): raise RuntimeError("told to stop")
signal.signal(signal.SIGTERM, told)
with opened as pipes:
    try: time.sleep(600)
    finally: pipes.log.info("saved on the way out")
"""
    )
    assert "it ran longer than run_limit_hours" in outcome.error
    assert "saved on the way out" in outcome.lines


CHECKPOINT = """
import hashlib
from pathlib import Path
from factory.namespace import RunDirectory
from factory.namespace.checkpoints import Marker, checkpoint_path, complete
with opened as pipes:
    launch = pipes.get_extra("launch")
    attempt = launch["attempt"]
    run = RunDirectory("public", launch["run_id"], Path(os.environ["FACTORY_ROOT"]))
    checkpoint_path(run, attempt).mkdir(parents=True)
    marker = Marker(step=attempt, attempt=attempt, identity={}, files={})
    complete(checkpoint_path(run, attempt), marker)
if attempt < 5: sys.exit(75)
"""


def test_as_long_as_it_gets_on_it_may_be_preempted(
    runner: Runner, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FACTORY_ROOT", str(runner.settings.root))
    outcome = runner.run(CHECKPOINT)
    assert outcome.result.success
    assert sum("waits in the queue and goes on" in line for line in outcome.lines) == 4
    assert any("That is of step 4." in line for line in outcome.lines)


SAYS_ITS_DATA = """
with opened as pipes:
    launch = pipes.get_extra("launch")
    print(launch["attempt"], launch["fresh_data"], launch["redistribute"], flush=True)
if launch["attempt"] == 2: sys.exit(75)
opened = contextlib.nullcontext(pipes)
"""


def test_data_that_begin_again_do_so_until_the_first_checkpoint(
    runner: Runner, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FACTORY_ROOT", str(runner.settings.root))
    runner.resumed = {"attempt": 2, "fresh_data": True, "redistribute": True}
    outcome = runner.run("import contextlib" + SAYS_ITS_DATA + CHECKPOINT.replace("< 5", "< 4"))
    assert outcome.result.success
    assert (outcome.run.path / "logs" / "driver.log").read_text().splitlines() == [
        "2 True True",
        "3 True True",
        "4 False False",
    ]


def test_the_time_of_all_attempts_counts_against_the_limit(
    runner: Runner, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FACTORY_ROOT", str(runner.settings.root))
    runner.spec = runner.spec.model_copy(update={"run_limit_hours": 2.5 / 3600})
    code = CHECKPOINT.replace("if attempt < 5", "time.sleep(1.2)\nif attempt < 5")
    outcome = runner.run(code)
    assert "it ran longer than run_limit_hours" in outcome.error


def test_a_driver_that_does_not_hold_the_run_is_explained(runner: Runner) -> None:
    outcome = runner.run("print('Attempt 1 has a driver already'); sys.exit(4)")
    assert "exit code 4: another driver holds the run" in outcome.error
    assert "  Attempt 1 has a driver already" in outcome.error


@pytest.mark.parametrize("taken_up", [True, False])
def test_a_run_that_cannot_be_taken_up_is_left_and_one_that_is_new_is_stopped(
    runner: Runner, taken_up: bool
) -> None:
    runner.taken_up, runner.fails = taken_up, FileNotFoundError("a file of its pods is gone")
    outcome = runner.run("")
    assert not outcome.result.success
    assert "a file of its pods is gone" in outcome.error
    assert outcome.cluster.left is taken_up


def test_a_run_that_is_taken_up_is_left_where_its_messages_cannot_be_read(
    runner: Runner, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before anything is asked of its cluster."""

    def unreadable(*_: object) -> None:
        raise PermissionError("its messages")

    monkeypatch.setattr(NamespaceMessageReader, "read_messages", unreadable)
    runner.taken_up = True
    assert runner.run("").cluster.left


def test_a_limit_ends_also_a_run_that_is_taken_up(runner: Runner) -> None:
    runner.taken_up = True
    runner.spec = runner.spec.model_copy(update={"run_limit_hours": 0.5 / 3600})
    outcome = runner.run("time.sleep(600)")
    assert "it ran longer than run_limit_hours" in outcome.error
    assert not outcome.cluster.left


def test_a_run_that_was_cancelled_is_stopped_also_where_it_cannot_be_taken_up(
    runner: Runner, monkeypatch: pytest.MonkeyPatch
) -> None:
    def cancelled(_: object) -> bool:
        return True

    monkeypatch.setattr(pipes, "is_cancelled", cancelled)
    runner.taken_up, runner.fails = True, FileNotFoundError("a file of its pods is gone")
    assert not runner.run("").cluster.left
