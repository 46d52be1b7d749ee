"""A driver's log of a real Ray head with token authentication: every byte, through cuts."""

import hashlib
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from factory.control.kube.driver_log import DriverLog, Waits
from factory.namespace import Namespace
from tests.control.kube.ray_heads import RayHead, cutting, ray_head

pytestmark = pytest.mark.slow

PATIENCE = 300.0
QUICK = Waits(first_seconds=0.1, longest_seconds=1.0)

DRIVER = """
import os, sys, time
def blocks():
    for first in range(0, 1_000_000, 1000):
        yield b"".join(b"line %d %s\\n" % (i, b"x" * (i % 97)) for i in range(first, first + 1000))
    yield b"a" * 5_000_000 + b"\\n"
    yield bytes(range(256)) * 100 + b"\\r\\n\\xff\\xfe\\r"
if __name__ == "__main__":
    for block in blocks():
        os.write(1, block)
    print("half a line", end="", flush=True)
    time.sleep(float(sys.argv[1]))
"""


@pytest.fixture(scope="module")
def head() -> Iterator[RayHead]:
    with ray_head() as made:
        (made.folder / "driver.py").write_text(DRIVER)
        yield made


def entrypoint(head: RayHead, seconds: float) -> str:
    return f"{sys.executable} {head.folder}/driver.py {seconds}"


def written() -> tuple[int, str]:
    scope: dict[str, object] = {"__name__": "driver"}
    exec(DRIVER, scope)  # noqa: S102  the same bytes that the driver writes
    digest, size = hashlib.sha256(), 0
    for block in (*scope["blocks"](), b"half a line"):  # type: ignore[operator]
        digest.update(block)
        size += len(block)
    return size, digest.hexdigest()


def wait_for_end(head: RayHead, job_id: str) -> None:
    deadline = time.monotonic() + PATIENCE
    while not ((job := head.dashboard().job_status(job_id)) and job.ended):
        assert time.monotonic() < deadline
        time.sleep(0.5)
    assert job.status == "SUCCEEDED"
    assert job.exit_code == 0


def test_a_million_lines_a_very_long_one_and_bytes_that_are_no_text(
    head: RayHead, tmp_path: Path
) -> None:
    run = Namespace(tmp_path).open_run("public", "run-1")
    size, digest = written()
    with cutting(head.port, [100, 3_000_000, 20_000_000, 45_000_000]) as between:
        log = DriverLog(run, lambda: head.dashboard(between.port), lambda: "job-1", waits=QUICK)
        log.start()
        head.submit("job-1", entrypoint(head, 0))
        wait_for_end(head, "job-1")
        between.cuts.append(30_000_000)  # also of the final fetch, where none is left
        assert log.finish(PATIENCE)
        assert between.made == 5
    copied = log.path.read_bytes()
    assert copied == head.log("job-1").read_bytes()
    assert hashlib.sha256(copied[-size:]).hexdigest() == digest
    assert b"Running entrypoint" in copied[:-size]  # what Ray itself says first


def test_a_head_that_dies_leaves_all_that_it_sent(tmp_path: Path) -> None:
    run = Namespace(tmp_path).open_run("public", "run-1")
    with ray_head() as head:
        (head.folder / "driver.py").write_text(DRIVER)
        log = DriverLog(run, head.dashboard, lambda: "job-1", waits=QUICK)
        log.start()
        head.submit("job-1", entrypoint(head, 600))
        deadline = time.monotonic() + PATIENCE
        while not log.path.read_bytes().endswith(b"half a line"):
            assert time.monotonic() < deadline
            time.sleep(0.2)
        head.kill()
        assert not log.finish(3.0)
        assert log.path.read_bytes() == head.log("job-1").read_bytes()
        assert "no answer" in log.problem
