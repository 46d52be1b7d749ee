"""Training runs without Ray, from a server that imports once and forks a driver for each.

A run through Ray takes a minute and more, nearly all of it imports. Here a driver is a fork of a
process that has imported everything: it claims its attempt, chooses the checkpoint and forks its
ranks as `factory.training.driver` starts Ray's; what a rank does is `factory.training.train`
unchanged. As with Ray, ranks die with their driver, and a rank that dies takes the others along.

`python -m tests.training.forks` is the server. `Forks` talks to it.
"""

import contextlib
import ctypes
import json
import os
import signal
import socket
import subprocess
import sys
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from factory.errors import Superseded
from factory.namespace import Namespace, RunDirectory
from factory.namespace.attempts import Attempt
from factory.settings import CHECKOUT, Settings
from factory.spec import Launch

_PR_SET_PDEATHSIG = 1
FAILED = 1


@dataclass
class Fork:
    """A driver that the server has forked."""

    launch: Launch
    pid: int
    log: Path
    run: RunDirectory
    server: "Forks"

    @property
    def output(self) -> str:
        return self.log.read_text(errors="replace") if self.log.exists() else ""

    @property
    def driver(self) -> int:
        return self.pid

    def ranks(self) -> list[int]:
        """Pids of the ranks that were forked so far."""
        notes = self.log.with_suffix(".ranks")
        return [int(line) for line in notes.read_text().split()] if notes.exists() else []

    def wait(self, seconds: float = 300) -> int:
        """The exit code; negative for a signal. What is left of its processes is ended."""
        code = self.server.wait(self.pid, seconds)
        deadline = time.monotonic() + 20
        while any(_lives(pid) for pid in self.ranks()):  # they follow by themselves
            assert time.monotonic() < deadline, f"ranks of {self.launch.run_id} live on"
            time.sleep(0.01)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.pid, signal.SIGKILL)  # Megatron's helper for saving stays behind
        return code

    def until(self, condition: Callable[[], bool], seconds: float = 300) -> bool:
        """Whether the condition came true before the driver ended."""
        deadline = time.monotonic() + seconds
        while not condition():
            if self.server.ended(self.pid):
                return condition()
            assert time.monotonic() < deadline, self.output
            time.sleep(0.001)
        return True


class Forks:
    """The server, as its client sees it."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self._codes: dict[int, int] = {}
        self.process = subprocess.Popen(
            [sys.executable, "-m", "tests.training.forks"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=CHECKOUT,
            env={
                **os.environ,
                **settings.environment(),
                "TORCHDYNAMO_DISABLE": "1",
                "OMP_WAIT_POLICY": "PASSIVE",
                "OMP_NUM_THREADS": "1",
                "HF_HUB_OFFLINE": "1",
                "TOKENIZERS_PARALLELISM": "false",
                "PYTHONFAULTHANDLER": "1",
            },
        )
        assert self._read()["ready"]

    def start(self, launch: Launch) -> Fork:
        """Fork a driver."""
        run = self.run_of(launch)
        logs = self.settings.state / "logs"
        logs.mkdir(parents=True, exist_ok=True)
        log = logs / f"{launch.run_id}.{len(list(logs.glob(f'{launch.run_id}.*.log')))}.log"
        request = {"launch": launch.model_dump(mode="json"), "log": str(log)}
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps(request) + "\n")
        self.process.stdin.flush()
        while "started" not in (answer := self._read()):
            self._codes[answer["ended"]] = answer["code"]
        return Fork(launch, answer["started"], log, run, self)

    def run_of(self, launch: Launch) -> RunDirectory:
        return Namespace(self.settings.root).open_run(launch.classification, launch.run_id)

    def ended(self, pid: int) -> bool:
        """Whether a driver is gone."""
        return pid in self._codes or not _lives(pid)

    def wait(self, pid: int, seconds: float) -> int:
        deadline = time.monotonic() + seconds
        while not self.ended(pid):
            assert time.monotonic() < deadline, f"driver {pid} is still there"
            time.sleep(0.01)
        while pid not in self._codes:
            answer = self._read()
            self._codes[answer["ended"]] = answer["code"]
        return self._codes[pid]

    def close(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.close()
        self.process.wait(30)
        assert self.process.stdout is not None
        self.process.stdout.close()

    def _read(self) -> dict[str, Any]:
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        assert line, f"the fork server has ended: {self.process.wait(10)}"
        return json.loads(line)


def _lives(pid: int) -> bool:
    with contextlib.suppress(FileNotFoundError, ProcessLookupError):
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    return False


def serve(requests: IO[str]) -> None:
    """Import everything, then fork a driver for each line."""
    out = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)
    children: set[int] = set()

    def reap(*_: object) -> None:
        for pid in list(children):
            done, status = os.waitpid(pid, os.WNOHANG)
            if done:
                children.discard(pid)
                out.write(json.dumps({"ended": pid, "code": os.waitstatus_to_exitcode(status)}))
                out.write("\n")

    _import()
    out.write(json.dumps({"ready": True}) + "\n")
    signal.signal(signal.SIGCHLD, reap)
    while line := requests.readline():
        request = json.loads(line)
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGCHLD})
        pid = _forked(lambda: _drive(request), Path(request["log"]))  # noqa: B023
        children.add(pid)
        out.write(json.dumps({"started": pid}) + "\n")
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGCHLD})
    for pid in children:
        os.kill(pid, signal.SIGKILL)


def _import() -> None:
    from factory.training.cpu import stand_ins
    from factory.training.train import SLOW_IMPORTS

    warnings.simplefilter("ignore")
    with stand_ins():
        for name in (*SLOW_IMPORTS, "megatron.bridge.recipes.gpt.vanilla_gpt"):
            __import__(name)


def _forked(body: Callable[[], int], log: Path) -> int:
    """Run `body` in a child that ends with its parent and prints to `log`; its pid."""
    parent = os.getpid()
    pid = os.fork()
    if pid:
        return pid
    code = FAILED
    try:
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() == parent:
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGCHLD})
            descriptor = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o666)
            for standard in (1, 2):
                os.dup2(descriptor, standard)
            code = body()
    except BaseException:
        import traceback

        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def _drive(request: dict[str, Any]) -> int:
    """What the driver does, with ranks that are forks. Told to stop, it asks them to save."""
    from factory.training.driver import DONE
    from factory.training.reading import write_lock
    from factory.training.resume.start import nothing_left
    from factory.training.resume.watch import SUPERSEDED

    os.setsid()
    settings = Settings.from_environment()
    launch = Launch.model_validate(request["launch"])
    namespace = Namespace(settings.root)
    run = namespace.open_run(launch.classification, launch.run_id)
    attempt = Attempt(run, launch.attempt)
    try:
        attempt.claim()
    except Superseded as replaced:
        sys.stdout.write(f"{replaced}\n")
        return SUPERSEDED
    signal.signal(signal.SIGTERM, lambda *_: attempt.stop())
    write_lock(namespace, launch, run)
    job = _job(launch, attempt, settings)
    if job.start is not None and nothing_left(job.start, launch.spec):
        return DONE
    log = Path(request["log"])
    if launch.redistribute:
        moving = _forked(lambda: _redistribute(job), log)
        if os.waitpid(moving, 0)[1]:
            return FAILED
    port = _free_port()
    ranks: dict[int, int] = {}
    with log.with_suffix(".ranks").open("w") as notes:
        for rank in range(launch.spec.ranks):
            ranks[_forked(lambda: _train(job, rank, port), log)] = rank  # noqa: B023
        notes.write("\n".join(map(str, ranks)))
    return _waited(ranks)


def _job(launch: Launch, attempt: Attempt, settings: Settings) -> Any:
    from factory.training.resume.start import Start, choose
    from factory.training.train import Job

    start = None
    if launch.attempt > 1:
        chosen = choose(attempt, lambda one: one.damage(), print)
        if chosen is not None:
            start = Start(chosen, fresh_data=launch.fresh_data, redistributed=launch.redistribute)
    return Job(launch, attempt, settings.state, time.time(), start)


def _waited(ranks: dict[int, int]) -> int:
    """The exit code of a driver with these ranks; the first that fails takes the others along.

    It looks again and again: a signal that comes just before a wait without an end is only heard
    after it.
    """
    from factory.training.driver import DONE, PREEMPTED

    codes: dict[int, int] = {}
    while len(codes) < len(ranks):
        pid, status = os.waitpid(-1, os.WNOHANG)
        if not pid:
            time.sleep(0.01)
            continue
        codes[pid] = os.waitstatus_to_exitcode(status)
        if codes[pid] not in (DONE, PREEMPTED):
            sys.stdout.write(f"rank {ranks[pid]} ended with {codes[pid]}\n")
            for other in ranks.keys() - codes.keys():
                os.kill(other, signal.SIGKILL)
    return max(codes.values()) if min(codes.values()) >= 0 else FAILED


def _redistribute(job: Any) -> int:
    from factory.training.train import build, redistributed

    redistributed(job, build(job))
    return 0


def _train(job: Any, rank: int, port: int) -> int:
    from factory.training.driver import DONE, PREEMPTED
    from factory.training.train import build, train

    os.environ.update(
        RANK=str(rank),
        WORLD_SIZE=str(job.launch.spec.ranks),
        LOCAL_RANK=str(rank),
        MASTER_ADDR="127.0.0.1",
        MASTER_PORT=str(port),
    )
    import torch

    torch.set_num_threads(1)
    return PREEMPTED if train(job, build(job), rank=rank) else DONE


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


if __name__ == "__main__":
    serve(sys.stdin)
