"""Processes and files of local sessions: what is found, what is ended, what is left alone."""

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from factory.control.processes import MARKER, Process, end_all, members
from factory.control.sessions import Session, Sessions
from factory.errors import RunFailed
from factory.namespace.owner import Owner, this_process

OWNER = """
import sys, time
from pathlib import Path
from factory.control.sessions import Sessions
session = Sessions(Path(sys.argv[1]), socket_root=Path(sys.argv[2])).open("run-1")
print(session.id, flush=True)
time.sleep(600)
"""
STUBBORN = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); time.sleep(600)"


def start(
    code: str, *arguments: object, session: Session | None = None, output: Path | None = None
) -> subprocess.Popen[str]:
    """A process in a process group of its own, as Ray's workers are."""
    with contextlib.ExitStack() as stack:
        return subprocess.Popen(
            [sys.executable, "-c", code, *map(str, arguments)],
            env={**os.environ, **({MARKER: session.id} if session else {})},
            stdout=stack.enter_context(output.open("wb")) if output else subprocess.PIPE,
            text=True,
            start_new_session=True,
        )


@pytest.fixture
def sessions(tmp_path: Path) -> Sessions:
    return Sessions(tmp_path / "state", socket_root=tmp_path)


@pytest.fixture
def bystander() -> Iterator[subprocess.Popen[str]]:
    process = start(STUBBORN)
    yield process
    assert process.poll() is None, "a process of nobody's session was ended"
    process.kill()
    process.communicate()


def owned_by_another(sessions: Sessions, tmp_path: Path) -> tuple[subprocess.Popen[str], Session]:
    owner = start(OWNER, tmp_path / "state", tmp_path)
    assert owner.stdout is not None
    session_id = owner.stdout.readline().strip()
    [session] = [s for s in sessions.all() if s.id == session_id]
    return owner, session


def kill(process: subprocess.Popen[str]) -> None:
    process.kill()
    process.communicate()


def test_a_directory_is_for_its_owner_only(sessions: Sessions) -> None:
    session = sessions.open("run-1")
    assert session.directory.stat().st_mode & 0o777 == 0o700
    assert sessions.all() == [session]
    assert sessions.close(session) == []
    assert not session.directory.exists()
    assert sessions.all() == []


def test_every_process_of_a_session_is_ended(
    sessions: Sessions, bystander: subprocess.Popen[str]
) -> None:
    session = sessions.open("run-1")
    inherits = (
        "import subprocess, sys; subprocess.Popen([sys.executable, '-c', sys.argv[1]]).wait()"
    )
    forgets = (
        "import subprocess, sys; print('on', flush=True);"
        "command = [sys.executable, '-c', sys.argv[1]];"
        "subprocess.Popen(command, env={}, start_new_session=True).wait()"
    )
    started = [
        start(STUBBORN, session=session),
        start(inherits, STUBBORN, session=session),
        start(forgets, STUBBORN, session=session),
        start(STUBBORN, output=session.directory / "worker.out"),  # only its output tells
    ]
    time.sleep(1.0)
    found = members(session.id, session.directory)
    assert len(found) == 6
    assert sessions.close(session) == []
    assert members(session.id, session.directory) == []
    assert [process.wait(5) for process in started] == [-signal.SIGKILL] * 4
    for process in started:
        process.communicate()


def test_this_process_and_those_it_descends_from_are_spared(sessions: Sessions) -> None:
    """A sweep that runs inside of a session does not end itself."""
    session = sessions.open("run-1")
    code = (
        "import os, sys; from pathlib import Path; from factory.control.processes import end_all;"
        "print(end_all(sys.argv[1], Path(sys.argv[2])), flush=True)"
    )
    process = start(code, session.id, session.directory, session=session)
    out, _ = process.communicate(timeout=30)
    assert (process.returncode, out) == (0, "[]\n")


def test_a_pid_that_is_used_again_gets_no_signal() -> None:
    process = start(STUBBORN)
    Process(process.pid, parent=1, start_ticks=1, command="another").send(signal.SIGKILL)
    time.sleep(0.2)
    assert process.poll() is None
    kill(process)


def test_a_sweep_ends_what_a_killed_owner_left(
    sessions: Sessions, tmp_path: Path, bystander: subprocess.Popen[str]
) -> None:
    owner, session = owned_by_another(sessions, tmp_path)
    left = start(STUBBORN, session=session)
    assert sessions.sweep() == []
    kill(owner)
    assert sessions.sweep() == [session]
    assert left.wait(5) == -signal.SIGKILL
    left.communicate()
    assert not session.directory.exists()
    assert sessions.all() == []
    assert sessions.sweep() == []


def test_a_sweep_leaves_living_owners_alone_even_a_stopped_one(
    sessions: Sessions, tmp_path: Path
) -> None:
    owner, session = owned_by_another(sessions, tmp_path)
    mine = sessions.open("run-2")
    worker = start(STUBBORN, session=session)
    os.kill(owner.pid, signal.SIGSTOP)
    assert sessions.sweep() == []
    assert worker.poll() is None
    assert session.directory.exists()
    assert mine.directory.exists()
    kill(owner)
    assert sessions.sweep() == [session]
    worker.communicate()


def replaced(sessions: Sessions, tmp_path: Path, **changes: object) -> Session:
    """A session whose record names another owner."""
    session = sessions.open("run-1")
    owner = Owner.model_validate({**this_process().model_dump(), **changes})
    changed = session.model_copy(update={"owner": owner})
    record = tmp_path / "state" / "sessions" / f"{session.id}.json"
    record.write_text(changed.model_dump_json())
    return changed


def test_a_pid_that_is_used_again_is_not_the_owner(sessions: Sessions, tmp_path: Path) -> None:
    session = replaced(sessions, tmp_path, start_ticks=1)  # this pid, another process
    assert sessions.sweep() == [session]


def test_an_owner_of_an_earlier_boot_is_gone(sessions: Sessions, tmp_path: Path) -> None:
    session = replaced(sessions, tmp_path, boot_id="an earlier one")
    assert sessions.sweep() == [session]


@pytest.mark.parametrize(
    "changes",
    [
        {"pid_namespace": "pid:[1]", "pid": 2**22 + 1},
        {"host": "elsewhere", "boot_id": "its own", "pid": 2**22 + 1},
    ],
)
def test_an_owner_that_cannot_be_seen_is_left_alone(
    sessions: Sessions, tmp_path: Path, changes: dict[str, object]
) -> None:
    """Another container of this machine, or another machine on the same home directory."""
    replaced(sessions, tmp_path, **changes)
    assert sessions.sweep() == []


def test_a_record_nobody_can_read_is_named_and_harms_nothing(
    sessions: Sessions, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    precious = tmp_path / "precious"
    precious.mkdir()
    session = replaced(sessions, tmp_path, start_ticks=1)
    records = tmp_path / "state" / "sessions"
    evil = session.model_dump(mode="json") | {"directory": str(precious)}
    (records / "aaaa.json").write_text(
        Session.model_construct(**evil).model_dump_json(warnings=False)
    )
    (records / "bbbb.json").write_text("{")
    assert sessions.sweep() == [session]
    assert precious.exists()
    assert "aaaa.json" in caplog.text
    assert "bbbb.json" in caplog.text


def test_a_place_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    sessions = Sessions(tmp_path / "state", socket_root=tmp_path / "missing")
    with pytest.raises(RunFailed, match="missing"):
        sessions.open("run-1")
    assert sessions.all() == []
    (tmp_path / "file").write_text("")
    with pytest.raises(RunFailed, match="needs to write in"):
        Sessions(tmp_path / "file", socket_root=tmp_path).open("run-1")


def test_what_cannot_be_ended_stays_on_record(
    sessions: Sessions, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = sessions.open("run-1")
    immortal = Process(1, parent=0, start_ticks=1, command="uninterruptible")
    monkeypatch.setattr("factory.control.sessions.end_all", lambda *_: [immortal])
    assert sessions.close(session) == [immortal]
    assert sessions.all() == [session]


def test_looking_for_processes_is_quick(sessions: Sessions) -> None:
    session = sessions.open("run-1")
    began = time.monotonic()
    assert end_all(session.id, session.directory) == []
    assert time.monotonic() - began < 1.0
    sessions.close(session)
