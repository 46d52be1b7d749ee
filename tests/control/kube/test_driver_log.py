"""The copy of a driver's log through every fault that a connection, a head and a pod can have."""

import json
import os
import random
import threading
import time
import tracemalloc
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from factory.control.kube.dashboard import Dashboard
from factory.control.kube.driver_log import DriverLog, Waits
from factory.control.kube.log_copy import LogCopy
from factory.control.logs import LineReader
from factory.errors import ClusterOutOfReach, NamespaceError
from factory.namespace import Namespace, RunDirectory
from tests.cluster.api import eventually
from tests.cluster.dashboard_log import ServedLog, every_cut, lines_of
from tests.control.kube.dashboards import JOB, Proxied, proxied

QUICK = Waits(first_seconds=0.01, longest_seconds=0.05)
PATIENCE = 60.0
"""Of a test on a machine that does much else."""

NAME = "logs/driver.log"
NEW_HEAD = "b" * 56


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("factory.control.kube.following.IDLE_SECONDS", 0.02)


@pytest.fixture
def head(tmp_path: Path) -> Iterator[Proxied]:
    with proxied(tmp_path) as made:
        yield made


@pytest.fixture
def run(tmp_path: Path) -> RunDirectory:
    (tmp_path / "namespace").mkdir()
    return Namespace(tmp_path / "namespace").open_run("public", "run-1")


@contextmanager
def following(
    head: Proxied, run: RunDirectory, connect: Callable[[], Dashboard | None] | None = None
) -> Iterator[DriverLog]:
    log = DriverLog(run, connect or (lambda: head.client), lambda: JOB, waits=QUICK)
    log.start()
    try:
        yield log
    finally:
        log.close()


def copied(run: RunDirectory) -> bytes:
    return (run.path / NAME).read_bytes()


def replace_head(head: Proxied, data: bytes) -> None:
    """KubeRay made another: its driver's log is another file, on another node."""
    head.job.log.ended = True
    head.job.log = ServedLog(data)
    head.job.node_id = NEW_HEAD


def test_what_is_written_arrives_at_once_and_as_it_is(head: Proxied, run: RunDirectory) -> None:
    with following(head, run) as log:
        lines = LineReader(log)
        assert lines.read() == []
        head.job.log.data = b"first\nsec"
        assert [line.text for line in eventually(lines.read, PATIENCE)] == ["first"]
        head.job.log.data += b"ond\r\n\xff\x00\x80 no text\n"
        texts = [line.text for line in eventually(lines.read, PATIENCE)]
        assert texts == ["second", "\\xff\x00\\x80 no text"]
        assert log.finish(PATIENCE)
        assert copied(run) == head.job.log.data
        assert len(head.job.log.served) == 2  # one to follow, one to finish


def test_a_connection_that_drops_at_any_byte_loses_and_doubles_nothing(
    head: Proxied, run: RunDirectory
) -> None:
    data = head.job.log.data = lines_of(20_000)
    head.job.log.cuts = [1, 7, 0, *every_cut(len(data), 12)]
    with following(head, run) as log:
        assert eventually(lambda: not head.job.log.cuts and log.problem == "", PATIENCE)
        assert log.finish(PATIENCE)
    assert copied(run) == data


def test_a_log_that_grows_while_connections_drop(head: Proxied, run: RunDirectory) -> None:
    pieces = [random.Random(at).randbytes(at * 37 % 5_000) for at in range(120)]
    head.job.log.cuts = every_cut(sum(map(len, pieces)), 9)
    with following(head, run) as log:
        for piece in pieces:
            head.job.log.data += piece
            time.sleep(0.005)
        assert log.finish(PATIENCE)
    assert copied(run) == b"".join(pieces)


def test_a_final_fetch_that_is_cut_off_is_tried_again(head: Proxied, run: RunDirectory) -> None:
    head.job.log.data = lines_of(3_000)
    log = DriverLog(run, lambda: head.client, lambda: JOB, waits=QUICK)
    head.job.log.cuts = [10, 1_000, 70_000]
    assert log.finish(PATIENCE)
    assert copied(run) == head.job.log.data


def test_no_head_and_no_driver_yet_is_no_problem(head: Proxied, run: RunDirectory) -> None:
    there: list[Dashboard] = []
    head.job.node_id = ""
    head.job.log.data = b"hello\n"
    with following(head, run, lambda: there[0] if there else None) as log:
        time.sleep(0.05)
        there.append(head.client)
        time.sleep(0.05)
        assert log.problem == ""
        assert copied(run) == b""
        head.job.node_id = "a" * 56
        assert eventually(lambda: copied(run) == b"hello\n", PATIENCE)


def test_a_head_that_is_gone_is_not_complete_and_keeps_what_it_sent(
    head: Proxied, run: RunDirectory
) -> None:
    head.job.log.data = b"whole\nhalf a li"
    with following(head, run) as log:
        assert eventually(lambda: copied(run) == head.job.log.data, PATIENCE)
        head.job.log.ended = True
        head.told.jobs.clear()
        begun = time.monotonic()
        assert not log.finish(0.3)
        assert time.monotonic() - begun < PATIENCE / 2
        lines = list(LineReader(log).finish())
    assert [line.text for block in lines for line in block] == ["whole", "half a li"]


@pytest.mark.parametrize("second", [b"fresh\n", b"one\ntwo\nthree\nfour\n", b"one\n", b""])
def test_a_new_head_begins_a_part_of_its_own(
    head: Proxied, run: RunDirectory, second: bytes
) -> None:
    """Also where the driver says again what it said, or the start of it."""
    first = head.job.log.data = b"one\ntwo\nthr"
    with following(head, run) as log:
        assert eventually(lambda: copied(run) == first, PATIENCE)
        replace_head(head, second)
        assert log.finish(PATIENCE)
    marker = f"\n=== another head begins here: job {JOB} on Ray's node {NEW_HEAD} ===\n"
    assert copied(run) == first + marker.encode() + second


@pytest.mark.parametrize("kept", [0, 1, 5_000, 20_011])
def test_a_control_plane_that_starts_again_goes_on_where_the_copy_ends(
    head: Proxied, run: RunDirectory, kept: int
) -> None:
    data = head.job.log.data = lines_of(2_000)
    log = DriverLog(run, lambda: head.client, lambda: JOB, waits=QUICK)
    assert log.finish(PATIENCE)
    os.truncate(run.path / NAME, kept)  # killed before it had more
    with following(head, run) as log:
        assert eventually(lambda: copied(run) == data, PATIENCE)
        assert log.finish(PATIENCE)
    assert copied(run) == data


def test_a_new_head_while_the_control_plane_was_away(head: Proxied, run: RunDirectory) -> None:
    first = head.job.log.data = b"the same\nfirst lines\n"
    assert DriverLog(run, lambda: head.client, lambda: JOB).finish(PATIENCE)
    replace_head(head, first)
    assert DriverLog(run, lambda: head.client, lambda: JOB).finish(PATIENCE)
    assert copied(run).count(first) == 2
    assert DriverLog(run, lambda: head.client, lambda: JOB).finish(PATIENCE)
    assert copied(run).count(first) == 2


def test_a_copy_that_says_something_else_is_kept_and_all_of_the_log_follows(
    head: Proxied, run: RunDirectory
) -> None:
    """Pods may write in the directory, and an older attempt may have written there."""
    head.job.log.data = lines_of(3_000)
    there = head.job.log.data[:70_000] + b"something else"
    run.directory("logs")
    (run.path / NAME).write_bytes(there)
    assert DriverLog(run, lambda: head.client, lambda: JOB).finish(PATIENCE)
    marker = b"\n=== the log is another one than above, and all of it follows ===\n"
    assert copied(run) == there + marker + head.job.log.data
    assert DriverLog(run, lambda: head.client, lambda: JOB).finish(PATIENCE)
    assert copied(run) == there + marker + head.job.log.data


@pytest.mark.parametrize(
    "parts",
    [
        b"\xff\xfe",
        b'{"at": -1, "owner": "x"}\n',
        b'{"at": 10000000, "owner": "x"}\n',
        b'[1]\n{"at": "0", "owner": 3}\n',
        b'{"at": 0, "ow',
        b"x" * (2 << 20),
    ],
)
def test_parts_that_make_no_sense_are_passed_over(
    head: Proxied, run: RunDirectory, parts: bytes
) -> None:
    run.directory("logs")
    head.job.log.data = b"one\ntwo\n"
    (run.path / NAME).write_bytes(b"one\n")
    (run.path / f"{NAME}.parts").write_bytes(parts)
    assert DriverLog(run, lambda: head.client, lambda: JOB).finish(PATIENCE)
    assert copied(run) == b"one\ntwo\n"


def test_a_line_of_five_million_bytes(head: Proxied, run: RunDirectory) -> None:
    head.job.log.data = b"before\n" + b"a" * 5_000_000 + b"\nafter\n"
    head.job.log.cuts = [2_000_000]
    with following(head, run) as log:
        assert eventually(lambda: copied(run) == head.job.log.data, PATIENCE)
        text = "".join(
            line.text + ("\n" if line.ends else "")
            for block in LineReader(log).finish()
            for line in block
        )
    assert text.encode() == head.job.log.data


def test_a_log_of_any_size_takes_little_memory(head: Proxied, run: RunDirectory) -> None:
    head.job.log.data = os.urandom(1 << 20) * 40
    head.job.log.cuts = [25 << 20]
    log = DriverLog(run, lambda: head.client, lambda: JOB, waits=QUICK)
    tracemalloc.start()
    try:
        assert log.finish(PATIENCE)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 8 << 20
    assert copied(run) == head.job.log.data


@pytest.mark.parametrize("what", ["link", "folder link", "pipe", "folder"])
def test_what_a_pod_put_in_its_place_is_not_written(
    run: RunDirectory, tmp_path: Path, what: str
) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    secret = elsewhere / "driver.log"
    secret.write_bytes(b"of another run\n")
    path = run.path / NAME
    if what != "folder link":
        run.directory("logs")
    match what:
        case "link":
            path.symlink_to(secret)
        case "folder link":
            path.parent.symlink_to(elsewhere)
        case "pipe":
            os.mkfifo(path)
        case _:
            path.mkdir()
    with pytest.raises(NamespaceError, match="is a link"):
        LogCopy(run, NAME)
    assert secret.read_bytes() == b"of another run\n"


def test_a_link_that_a_pod_makes_later_is_neither_written_nor_shown(
    head: Proxied, run: RunDirectory, tmp_path: Path
) -> None:
    secret = tmp_path / "secret"
    secret.write_bytes(b"private\n")
    head.job.log.data = b"one\n"
    with following(head, run) as log:
        lines = LineReader(log)
        assert [line.text for line in eventually(lines.read, PATIENCE)] == ["one"]
        (run.path / NAME).unlink()
        (run.path / NAME).symlink_to(secret)
        head.job.log.data += b"two\n"
        assert [line.text for line in eventually(lines.read, PATIENCE)] == ["two"]
    assert secret.read_bytes() == b"private\n"


def test_a_full_disk_is_a_problem_that_passes(
    head: Proxied, run: RunDirectory, monkeypatch: pytest.MonkeyPatch
) -> None:
    real, full = os.write, threading.Event()
    full.set()

    def write(file: int, data: bytes) -> int:
        if full.is_set() and len(data) > 100:
            real(file, data[:50])
            raise OSError(28, "No space left on device")
        return real(file, data)

    monkeypatch.setattr("factory.control.kube.log_copy.os.write", write)
    head.job.log.data = lines_of(1_000)
    with following(head, run) as log:
        assert eventually(lambda: "No space left" in log.problem, PATIENCE)
        full.clear()
        assert eventually(lambda: copied(run) == head.job.log.data, PATIENCE)


def test_whatever_the_caller_raises_the_thread_goes_on(head: Proxied, run: RunDirectory) -> None:
    faults: list[Exception] = [
        ClusterOutOfReach("away"), KeyError("a token"), RecursionError(), OSError(5, "broken")
    ]  # fmt: skip
    seen: list[str] = []

    def connect() -> Dashboard:
        seen.append(log.problem)
        if faults:
            raise faults.pop(0)
        return head.client

    head.job.log.data = b"hello\n"
    log = DriverLog(run, connect, lambda: JOB, waits=QUICK)
    log.start()
    assert eventually(lambda: copied(run) == b"hello\n", PATIENCE)
    log.close()
    assert seen[1] == "away"
    assert "KeyError" in seen[2]
    assert "a token" not in str(seen)


def test_whose_part_it_is_is_written_down(head: Proxied, run: RunDirectory) -> None:
    head.job.log.data = b"one\n"
    assert DriverLog(run, lambda: head.client, lambda: JOB).finish(PATIENCE)
    replace_head(head, b"two\n")
    assert DriverLog(run, lambda: head.client, lambda: JOB).finish(PATIENCE)
    parts = [json.loads(line) for line in (run.path / f"{NAME}.parts").read_text().splitlines()]
    assert [copied(run)[part["at"] :][:4] for part in parts] == [b"one\n", b"two\n"]
