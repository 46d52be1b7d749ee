"""The lock by itself: one holder at a time, whoever dies, wherever it ran."""

import json
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from factory.errors import NamespaceError
from factory.namespace.lock import Lock, LockTimes
from factory.namespace.owner import Owner, read_owner, this_process

QUICK = LockTimes(wait_seconds=0.3, lease_seconds=1.0, heartbeat_seconds=0.1)
PATIENT = LockTimes(wait_seconds=30, lease_seconds=1.0, heartbeat_seconds=0.1)

HOLD = """
import sys, time
from pathlib import Path
from factory.namespace.lock import Lock, LockTimes
times = LockTimes(wait_seconds=30, lease_seconds=1.0, heartbeat_seconds=float(sys.argv[2]))
with Lock(Path(sys.argv[1]), "Test", times).hold():
    print("held", flush=True)
    time.sleep(600)
"""

CONTEND = """
import os, random, sys, time
from pathlib import Path
from factory.namespace.lock import Lock, LockTimes
place, log, rounds, seed = Path(sys.argv[1]), sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
chance = random.Random(seed)
out = os.open(log, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
times = LockTimes(wait_seconds=60, lease_seconds=5, heartbeat_seconds=1)
for _ in range(rounds):
    with Lock(place, "Test", times).hold():
        os.write(out, f"+{os.getpid()}\\n".encode())
        time.sleep(chance.uniform(0, 0.004))
        if chance.random() < 0.05:
            os.write(out, f"x{os.getpid()}\\n".encode())
            os.kill(os.getpid(), 9)
        os.write(out, f"-{os.getpid()}\\n".encode())
"""


@pytest.fixture
def place(tmp_path: Path) -> Path:
    return tmp_path / ".writing"


def holder(place: Path, *prefix: str, heartbeat: float = 0.1) -> subprocess.Popen[str]:
    """A process that holds the lock; `prefix` is a command to run it under."""
    process = subprocess.Popen(
        [*prefix, sys.executable, "-c", HOLD, str(place), str(heartbeat)],
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    with process.stdout as out:
        assert out.readline() == "held\n"
    return process


def elsewhere(place: Path, heartbeat: float = 0.1) -> subprocess.Popen[str]:
    """A holder whose pid says nothing here: its own pid namespace, as a container has."""
    command = ["unshare", "--pid", "--fork", "--kill-child", "--mount-proc"]
    if os.geteuid() != 0 or subprocess.run([*command, "true"], check=False).returncode:
        pytest.skip("a pid namespace of its own needs root and unshare")
    return holder(place, *command, heartbeat=heartbeat)


def end(process: subprocess.Popen[str]) -> None:
    process.kill()
    process.wait()


def test_taken_and_given_up(place) -> None:
    with Lock(place, "Writing x", QUICK).hold() as held:
        assert read_owner(held.file) == this_process()
        held.confirm()
    assert list(place.parent.iterdir()) == []


def test_given_up_when_the_body_fails(place) -> None:
    with pytest.raises(KeyError), Lock(place, "Writing x", QUICK).hold():
        raise KeyError
    assert list(place.parent.iterdir()) == []


def test_the_later_one_waits_then_names_the_owner(place) -> None:
    process = holder(place)
    try:
        start = time.monotonic()
        with (
            pytest.raises(NamespaceError) as refusal,
            Lock(place, "Writing public/x", QUICK).hold(),
        ):
            pass
        assert time.monotonic() - start >= 0.3
        message = str(refusal.value)
        assert message.startswith(f"Writing public/x has to wait for process {process.pid} on ")
        assert "waited 0.3 s" in message
        assert [path.name for path in place.parent.iterdir()] == [".writing"]
    finally:
        end(process)


def test_two_threads_of_one_process(place) -> None:
    order: list[str] = []

    def second() -> None:
        with Lock(place, "Test", PATIENT).hold():
            order.append("second")

    with Lock(place, "Test", PATIENT).hold():
        thread = threading.Thread(target=second)
        thread.start()
        time.sleep(0.2)
        order.append("first")
    thread.join()
    assert order == ["first", "second"]


def test_a_dead_owner_on_this_machine_is_noticed_at_once(place) -> None:
    process = holder(place)
    process.send_signal(signal.SIGKILL)
    process.wait()

    start = time.monotonic()
    with Lock(place, "Test", LockTimes()).hold():
        assert time.monotonic() - start < 20, "far below the lease of 120 s"


def test_a_killed_owner_that_nobody_reaped_is_dead(place) -> None:
    process = holder(place)
    process.send_signal(signal.SIGKILL)
    os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)  # it stays a zombie

    with Lock(place, "Test", QUICK).hold():
        pass
    process.wait()


def test_a_pid_used_again_is_another_owner(place) -> None:
    place.mkdir()
    again = this_process().model_copy(update={"start_ticks": 1})
    (place / "token").write_text(again.model_dump_json())

    with Lock(place, "Test", QUICK).hold():
        pass


def test_an_owner_that_hangs_on_this_machine_keeps_its_lock(place) -> None:
    process = holder(place)
    try:
        process.send_signal(signal.SIGSTOP)
        time.sleep(1.2)
        with pytest.raises(NamespaceError, match=r"last heartbeat [1-9]\d* s ago"):
            _take(place, QUICK)
    finally:
        end(process)


@pytest.mark.slow
def test_an_owner_elsewhere_keeps_the_lock_while_it_gives_signs_of_life(place) -> None:
    process = elsewhere(place)
    try:
        time.sleep(3.5)
        with pytest.raises(NamespaceError, match="has to wait for process 1 on"):
            _take(place, LockTimes(wait_seconds=0.3, lease_seconds=3))
    finally:
        end(process)


def test_a_dead_owner_elsewhere_is_replaced_after_the_lease(place) -> None:
    process = elsewhere(place)
    end(process)

    _take(place, PATIENT)


def test_an_owner_that_lost_its_lease_cannot_publish(place) -> None:
    process = elsewhere(place, heartbeat=600)
    try:
        _take(place, PATIENT)
    finally:
        end(process)

    with Lock(place, "Writing public/x", QUICK).hold() as held:
        held.file.unlink()  # what a breaker does
        with pytest.raises(NamespaceError, match="this process lost its lock"):
            held.confirm()
        with Lock(place, "Writing public/x", QUICK).hold() as other:
            held.release()
            other.confirm()


@pytest.mark.parametrize("content", [b"", b'{"host": "h', b"\xff"])
def test_an_owner_file_cut_off_by_a_crash_counts_by_its_age(place, content) -> None:
    place.mkdir()
    (place / "token").write_bytes(content)
    with pytest.raises(NamespaceError, match="an unreadable owner"):
        _take(place, QUICK)

    os.utime(place / "token", (time.time() - 2, time.time() - 2))
    _take(place, QUICK)


def test_an_empty_lock_directory_is_free(place) -> None:
    place.mkdir()
    _take(place, QUICK)


def test_a_waiter_whose_preparation_is_swept_prepares_again(place) -> None:
    with Lock(place, "Test", PATIENT).hold():
        thread = threading.Thread(target=_take, args=(place, PATIENT))
        thread.start()
        for _ in range(20):
            for path in place.parent.glob(".writing-*"):
                (path / path.name.removeprefix(".writing-")).unlink(missing_ok=True)
            time.sleep(0.01)
    thread.join(timeout=5)
    assert not thread.is_alive()


def test_a_forked_child_does_not_release_its_parents_lock(place) -> None:
    with Lock(place, "Test", QUICK).hold() as held:
        held.pid += 1  # as the child sees it
        held.release()
        held.confirm()
        held.pid -= 1


def test_many_breakers_and_killed_holders_never_overlap(place, tmp_path) -> None:
    """A dead owner's lock lies there; eight processes want it, and one in twenty holders dies."""
    end(holder(place))
    log = tmp_path / "log"
    contenders = [
        subprocess.Popen(
            [sys.executable, "-c", CONTEND, str(place), str(log), "12", str(seed)],
            stderr=subprocess.DEVNULL,
        )
        for seed in range(8)
    ]
    codes = [process.wait() for process in contenders]

    assert set(codes) <= {0, -9}
    inside: str | None = None
    for line in log.read_text().splitlines():
        sign, pid = line[0], line[1:]
        if sign == "+":
            assert inside is None, "two held the lock"
            inside = pid
        else:
            assert inside == pid
            inside = None
    assert inside is None
    entered = log.read_text().count("+")
    assert entered == 12 * codes.count(0) + sum(
        log.read_text().count(f"+{process.pid}\n")
        for process, code in zip(contenders, codes, strict=True)
        if code
    )
    assert -9 in codes


def test_owners_are_told_apart() -> None:
    me = this_process()
    assert me.is_visible()
    assert not me.is_gone()
    assert str(me) == f"process {os.getpid()} on {me.host}"
    assert Owner.model_validate(json.loads(me.model_dump_json())) == me
    for other in ({"boot_id": "other"}, {"pid_namespace": "pid:[1]"}, {"start_ticks": None}):
        stranger = me.model_copy(update={**other, "pid": 2**22 + 1})
        assert not stranger.is_visible()
        assert not stranger.is_gone()
    assert me.model_copy(update={"pid": 2**22 + 1}).is_gone()


def _take(place: Path, times: LockTimes) -> None:
    with Lock(place, "Test", times).hold():
        pass
