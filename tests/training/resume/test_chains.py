"""The chains of a run, read over all of its attempts."""

import json
from pathlib import Path

import pytest

from factory.errors import RunFailed
from factory.namespace import Namespace, RunDirectory
from factory.training.resume.chains import chain_of


@pytest.fixture
def run(tmp_path: Path) -> RunDirectory:
    return Namespace(tmp_path).open_run("public", "run-1")


def write(run: RunDirectory, attempt: int, first: int, chains: str, *, begun: int = 1) -> None:
    """A line for each letter: the chain of a step."""
    for step, chain in enumerate(chains, start=first):
        line = {"step": step, "attempt": attempt, "begun": begun, "batches": 0, "chain": chain}
        run.append("chain/rank-0000.jsonl", json.dumps(line))


def test_what_an_attempt_repeats_is_what_was_there(run: RunDirectory) -> None:
    write(run, 1, 1, "abcd")
    write(run, 2, 3, "cdef")
    assert chain_of(run, 0) == dict(enumerate("abcdef", start=1))


def test_an_attempt_that_read_something_else_is_found(run: RunDirectory) -> None:
    write(run, 1, 1, "abcd")
    write(run, 2, 3, "cx")
    with pytest.raises(RunFailed, match="attempt 2 has read other batches up to step 4"):
        chain_of(run, 0)


def test_data_that_began_anew_count_from_there(run: RunDirectory) -> None:
    write(run, 1, 1, "abcd")
    write(run, 2, 3, "x", begun=2)
    assert chain_of(run, 0) == dict(enumerate("abx", start=1)), "the d is of other data"
    write(run, 3, 3, "uvw", begun=3)
    write(run, 4, 4, "vw", begun=3)
    assert chain_of(run, 0) == dict(enumerate("abuvw", start=1))
    write(run, 5, 5, "q", begun=3)
    with pytest.raises(RunFailed, match="attempt 5 has read other batches up to step 5"):
        chain_of(run, 0)


def test_a_line_that_was_cut_is_no_line(run: RunDirectory) -> None:
    write(run, 1, 1, "ab")
    path = run.path / "chain" / "rank-0000.jsonl"
    path.write_bytes(path.read_bytes()[:-9])
    write(run, 2, 2, "bc")
    assert chain_of(run, 0) == dict(enumerate("abc", start=1))
