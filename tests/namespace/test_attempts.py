"""Attempts: one driver holds a run, and what an earlier one would write is refused."""

import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest

from factory.errors import NamespaceError, Superseded
from factory.namespace import Namespace, RunDirectory
from factory.namespace.attempts import Attempt, last_attempt


@pytest.fixture
def run(tmp_path) -> RunDirectory:
    return Namespace(tmp_path).open_run("public", "run-1")


def test_attempts_follow_each_other(run: RunDirectory) -> None:
    assert last_attempt(run) == 0
    first, second = Attempt(run, 1), Attempt(run, 2)
    first.claim()
    first.check()
    assert last_attempt(run) == 1
    second.claim()
    second.check()
    with pytest.raises(Superseded, match="Attempt 1 of run run-1 was replaced by attempt 2"):
        first.check()
    with pytest.raises(Superseded, match="replaced by attempt 2"):
        Attempt(run, 1).claim()


def test_a_second_driver_of_the_same_attempt_is_refused_and_told_who_has_it(run) -> None:
    Attempt(run, 1).claim()
    with pytest.raises(Superseded, match=f"process {os.getpid()} on .*factory resume"):
        Attempt(run, 1).claim()


def test_of_many_drivers_at_once_one_gets_the_attempt(run: RunDirectory) -> None:
    def take(_: int) -> bool:
        try:
            Attempt(run, 3).claim()
        except Superseded:
            return False
        return True

    with ThreadPoolExecutor(16) as pool:
        assert sum(pool.map(take, range(32))) == 1


def test_a_run_directory_that_went_away_is_no_claim(tmp_path) -> None:
    run = RunDirectory("public", "nowhere", tmp_path)
    with pytest.raises(NamespaceError) as refused:
        Attempt(run, 1).claim()
    assert not isinstance(refused.value, Superseded)


def test_the_word_to_stop_is_of_one_attempt(run: RunDirectory) -> None:
    first, second = Attempt(run, 1), Attempt(run, 2)
    assert not first.told_to_stop
    first.stop()
    first.stop()
    assert first.told_to_stop
    assert not second.told_to_stop


WATCHED = """
import signal, sys, time
from pathlib import Path
from factory.namespace import RunDirectory
from factory.namespace.attempts import Attempt
from factory.training.resume.watch import Watch
heard = []
attempt = Attempt(RunDirectory("public", "run-1", Path(sys.argv[1])), 1)
with Watch(attempt, interval_seconds=0.02):
    attempt.stop()
    time.sleep(0.1)  # nobody listens yet
    signal.signal(signal.SIGTERM, lambda *_: heard.append(time.monotonic()))
    while not heard:
        time.sleep(0.01)
    time.sleep(0.1)
    print("heard", len(heard), flush=True)
    Attempt(attempt.run, 2).claim()
    time.sleep(30)
"""


def test_a_rank_hears_the_word_once_and_ends_when_it_was_replaced(run: RunDirectory) -> None:
    done = subprocess.run(
        [sys.executable, "-c", WATCHED, str(run.root)],
        capture_output=True,
        text=True,
        timeout=20,
        check=False,
    )
    assert done.stdout == "heard 1\n"
    assert done.returncode == 4, done.stderr
    assert "replaced by attempt 2" in done.stderr
