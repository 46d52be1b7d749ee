"""`factory mixture RUN`, on what a run has left."""

import pytest

from factory.namespace import Namespace, RunDirectory
from factory.reports import MixtureLine, Reading
from tests.cli.conftest import Factory
from tests.observe.mixture.made import clinical_lines, lock_of


@pytest.fixture
def run(namespace: Namespace) -> RunDirectory:
    directory = namespace.open_run("public", "run-1")
    directory.create("mix.lock", lock_of().to_json())
    reading = Reading(
        begun=1, after=0, seed=1, ranks=2, workers=0, micro_batch_size=1, global_batch_size=2
    )
    directory.append("mixture/reading.jsonl", reading.model_dump_json())
    return directory


def leave(run: RunDirectory, lines: list[MixtureLine]) -> None:
    for line in lines:
        run.append("mixture/ledger.jsonl", line.model_dump_json())


def test_a_person_reads_shares_epochs_and_drops(factory: Factory, run: RunDirectory) -> None:
    lines = clinical_lines()
    tools = lines[-1].sources[4].model_copy(update={"dropped": {"no loss token": (7, 900)}})
    sources = (*lines[-1].sources[:4], tools, lines[-1].sources[5])
    alarm = "public/chat/tool_use has 3.0% of the samples"
    leave(run, [*lines[:-1], lines[-1].model_copy(update={"sources": sources, "alarms": (alarm,)})])
    out = factory("mixture", "run")
    assert out.code == 0
    assert "clinical, steps 1 to 312 of 312" in out.out
    (row,) = (line for line in out.out.splitlines() if line.startswith("public/text/definitions"))
    assert "2.0 ± 1.0" in row
    assert "8.9" in row, "it was seen nine times"
    assert any("no loss token" in line and "7" in line for line in out.out.splitlines())
    assert f"drift: {alarm}." in out.err


def test_a_program_reads_the_same(factory: Factory, run: RunDirectory) -> None:
    leave(run, clinical_lines())
    facts = factory("mixture", "run-1", "--json").facts
    assert facts["mix_lock"] == lock_of().hash
    assert facts["replayed"] is None
    assert sum(one["share_of_tokens"] for one in facts["sources"]) == pytest.approx(1)
    assert all(one["within"] for one in facts["sources"])


def test_before_the_first_line_nothing_is_shown(factory: Factory, run: RunDirectory) -> None:
    out = factory("mixture", "run-1")
    assert out.code == 1
    assert "its first line comes with the first logging interval" in out.err


def test_a_replay_ends_with_a_line_of_the_ledger(factory: Factory, run: RunDirectory) -> None:
    leave(run, clinical_lines())
    out = factory("mixture", "run-1", "--replay", "--until", "3")
    assert out.code == 2
    assert "the first line of the ledger is of step 50" in out.err


def test_a_replay_needs_the_versions_that_the_run_read(factory: Factory, run: RunDirectory) -> None:
    leave(run, clinical_lines())
    out = factory("mixture", "run-1", "--replay")
    assert out.code == 1
    assert "public/text/abstracts/energon/train" in out.err
