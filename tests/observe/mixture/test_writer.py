"""What a run leaves of its ledger: lines as they come, the files of its end, and after a crash."""

import json
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from lxml import etree

from factory.errors import RunFailed
from factory.namespace import Namespace, RunDirectory
from factory.observe.mixture.files import ledger_of, lock_of, reading_of
from factory.observe.mixture.realized import realized_of, totals_of
from factory.observe.mixture.totals import COLUMNS
from factory.observe.mixture.writer import Writer, metrics_of
from factory.reports import MixtureLine, Reading, RealizedMix
from tests.observe.mixture.made import CLINICAL, clinical_lines
from tests.observe.mixture.made import lock_of as lock_made

READING = Reading(
    begun=1, after=0, seed=1, ranks=2, workers=0, micro_batch_size=1, global_batch_size=2
)


@pytest.fixture
def run(tmp_path: Path) -> RunDirectory:
    opened = Namespace(tmp_path).open_run("public", "run-1")
    opened.create("mix.lock", lock_made().to_json())
    return opened


def written(
    run: RunDirectory, lines, *, attempt: int = 1, after: int = 0, begins=True, seen=None
) -> None:
    reading = READING.model_copy(update={"after": after, "begun": attempt})
    keep = {} if seen is None else seen
    writer = Writer(
        run,
        lock_made(),
        attempt=attempt,
        after=after,
        begins=reading if begins else None,
        metrics=lambda found, at: keep.update({at: found}),
    )
    for line in lines:
        writer.put(line)
    writer.close()


@pytest.fixture(scope="module")
def lines() -> list[MixtureLine]:
    return clinical_lines()[-4:]


def test_everything_is_left_behind(run: RunDirectory, lines):
    seen: dict[int, dict[str, float]] = {}
    written(run, lines, seen=seen)
    assert ledger_of(run.path) == lines
    assert lock_of(run.path) == lock_made()
    assert reading_of(run.path) == READING
    mix = RealizedMix.model_validate_json((run.path / "mixture/realized.json").read_bytes())
    assert mix == realized_of(run.path)
    assert mix.mix_lock == lock_made().hash
    table = pq.read_table(run.path / "mixture/ledger.parquet")
    assert table.num_rows == len(lines) * len(CLINICAL)
    last = table.slice(table.num_rows - len(CLINICAL)).select(COLUMNS).to_pylist()
    assert [list(row.values()) for row in last] == totals_of(lines[-1]).counts.tolist()
    picture = etree.parse(run.path / "mixture/realized.svg")
    assert picture.getroot().tag.endswith("svg")
    assert sorted(seen) == [line.step for line in lines]
    assert sum(v for k, v in seen[lines[-1].step].items() if "of_tokens" in k) == pytest.approx(1)


def test_metrics_are_of_the_interval(lines):
    before, line = lines[0], lines[1]
    found = metrics_of(lock_made(), before, line)
    one, two = before.sources[0], line.sources[0]
    total = sum(b.tokens - a.tokens for a, b in zip(before.sources, line.sources, strict=True))
    share = found[f"share_of_tokens/{one.source}"]
    assert share == pytest.approx((two.tokens - one.tokens) / total)
    assert found[f"epochs/{CLINICAL[3].key}"] == pytest.approx(two_epochs(line), rel=1e-9)
    again = line.model_copy(update={"since": 7, "begun": 2})
    fresh = metrics_of(lock_made(), before, again)
    whole = two.tokens / sum(source.tokens for source in line.sources)
    assert fresh[f"share_of_tokens/{one.source}"] == pytest.approx(whole)


def two_epochs(line: MixtureLine) -> float:
    return line.sources[3].samples / CLINICAL[3].size


def test_a_later_attempt_repeats_steps_and_has_files_of_its_own(run: RunDirectory, lines):
    lost = lines[1].model_copy(update={"alarms": ("lost",)})
    written(run, [lines[0], lost])
    with (run.path / "mixture/ledger.jsonl").open("a") as file:
        file.write(lines[2].model_dump_json()[:100])
    written(run, lines[1:], attempt=2, after=lines[0].step, begins=False)
    assert ledger_of(run.path) == lines
    names = {path.name for path in (run.path / "mixture").iterdir()}
    assert {"ledger.2.parquet", "realized.2.json", "realized.2.svg"} <= names
    assert "realized.json" not in names
    assert reading_of(run.path) == READING


def test_fresh_data_begin_a_ledger_anew(run: RunDirectory, lines):
    written(run, lines[:2])
    step = lines[1].step
    fresh = lines[2].model_copy(update={"since": step, "begun": 2})
    written(run, [fresh], attempt=2, after=step)
    assert ledger_of(run.path) == [fresh]
    assert reading_of(run.path).after == step
    mix = realized_of(run.path)
    assert mix is not None
    assert mix.since == step
    again = lines[3].model_copy(update={"since": step, "begun": 3})
    written(run, [again], attempt=3, after=step)
    assert ledger_of(run.path) == [again], "though it began after the same step"
    assert reading_of(run.path).begun == 3


def test_what_cannot_be_written_ends_the_run(run: RunDirectory, lines):
    (run.path / "mixture").write_text("in the way")
    with pytest.raises(Exception, match="mixture"):
        written(run, [])


def test_a_ledger_of_another_mix_is_not_held_against_this_one(run: RunDirectory, lines):
    written(run, lines)
    (run.path / "mix.lock").write_bytes(lock_made(CLINICAL[:3]).to_json())
    with pytest.raises(RunFailed, match="one of them is of another run"):
        realized_of(run.path)


def test_a_line_that_is_none_is_named(run: RunDirectory, lines):
    written(run, lines)
    with (run.path / "mixture/ledger.jsonl").open("a") as file:
        file.write(json.dumps({"kind": "mixture", "step": 0}) + "\n")
    with pytest.raises(RunFailed, match=r"ledger\.jsonl, line 5, is no MixtureLine"):
        ledger_of(run.path)


def test_a_run_that_counted_nothing_has_no_mixture(run: RunDirectory):
    assert realized_of(run.path) is None
    (run.path / "mix.lock").unlink()
    with pytest.raises(RunFailed, match=r"has no mix\.lock"):
        lock_of(run.path)
    with pytest.raises(RunFailed, match="does not say how attempt 1 began to read"):
        reading_of(run.path)
