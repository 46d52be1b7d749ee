"""What is said while a run goes on: drift, caps that are reached, and when they will be."""

import json
import math
import statistics

import numpy as np
import pytest

from factory.observe.mixture.drift import POINT, judged
from factory.observe.mixture.plan import Source, Stage
from factory.observe.mixture.realized import epochs
from factory.observe.mixture.totals import COLUMNS, DISTINCT, Totals
from factory.observe.mixture.watch import WINDOW_SAMPLES, Watch
from tests.observe.mixture.made import plan_of


def totals(samples, *, tokens=None, documents=None, dropped=None) -> Totals:
    counts = np.zeros((len(samples), len(COLUMNS)), np.int64)
    counts[:, 0] = samples
    counts[:, 1] = documents or samples
    counts[:, 2] = counts[:, 3] = tokens or samples
    return Totals(counts, np.zeros(3, np.int64), dropped or {})


def test_the_band_is_what_drawing_samples_at_random_gives():
    """Against a thousand windows drawn at random, in a basis where sizes differ."""
    chance = np.random.default_rng(3)
    declared, size, drawn = np.array([0.5, 0.3, 0.2]), np.array([400, 1_500, 100]), 1_000
    odds = declared / size / (declared / size).sum()
    found = []
    for _ in range(1_000):
        samples = chance.multinomial(drawn, odds)
        counts = totals(samples, tokens=(samples * size).tolist()).counts
        found.append(judged(counts, declared.tolist(), "token"))
    for at in range(3):
        spread = statistics.stdev(one[at].realized for one in found)
        assert statistics.mean(one[at].band for one in found) == pytest.approx(3 * spread, rel=0.1)
        assert statistics.mean(one[at].within for one in found) > 0.99


def test_equal_sizes_have_the_deviation_of_a_share():
    (one, _) = judged(totals([300, 700]).counts, [0.3, 0.7], "sample")
    assert one.band == pytest.approx(3 * math.sqrt(0.3 * 0.7 / 1_000))
    (one, _) = judged(totals([300_000, 700_000]).counts, [0.3, 0.7], "sample")
    assert one.band == POINT, "a percentage point is always allowed"
    assert judged(totals([0, 0]).counts, [0.3, 0.7], "sample")[0].band == 1.0


def test_drift_is_said_once_and_again_when_it_comes_again():
    watch = Watch(plan_of((3.0, 1.0)), steps=1_000)
    seen, said = [0, 0], []
    windows = [(1_500, 500), (1_300, 700), (1_300, 700), (1_500, 500), (1_200, 800)]
    for step, window in enumerate(windows, start=1):
        seen = [a + b for a, b in zip(seen, window, strict=True)]
        said.append(watch.line(step * 10, totals(seen)).alarms)
    assert [len(alarms) for alarms in said] == [0, 2, 0, 0, 2]
    assert said[1][1] == (
        "public/text/s1 has 35.0% of the samples of steps 11 to 20; its mix declares 25.0% "
        "and leaves 2.9 points to chance"
    )


def test_a_window_waits_until_it_holds_enough_or_the_run_ends():
    watch = Watch(plan_of((1.0, 1.0)), steps=30)
    few = WINDOW_SAMPLES // 4
    assert watch.line(10, totals([few, 0])).alarms == ()
    assert watch.line(20, totals([2 * few, 0])).alarms == ()
    assert len(watch.line(30, totals([3 * few, 0])).alarms) == 2


def test_a_stage_changes_what_is_declared_once_what_was_chosen_before_has_passed():
    stages = (Stage(after=0, weights=(1.0, 0.0)), Stage(after=20, weights=(0.0, 1.0)))
    plan = plan_of((1.0, 1.0), stages=stages, readers=2, buffer=500)
    watch = Watch(plan, steps=80)
    assert [step for step in range(1, 81) if watch.due(step, 15)] == [15, 20, 30, 45, 60, 75, 80]
    assert watch.line(20, totals([5_000, 0])).alarms == ()
    assert watch.line(30, totals([5_950, 40])).alarms == (), "950 had been chosen before"
    assert watch.line(45, totals([6_000, 5_000])).alarms == (), "and 50 more"
    assert watch.line(60, totals([6_000, 9_000])).alarms == ()
    assert len(watch.line(75, totals([9_000, 10_000])).alarms) == 2


def test_a_source_at_its_cap_leaves_its_share_to_the_others():
    sources = tuple(
        Source(key=f"public/text/s{at}", role="warmup", size=1_000, max_epochs=cap)
        for at, cap in enumerate((2.0, None, None))
    )
    watch = Watch(plan_of((2.0, 1.0, 1.0), sources=sources), steps=100)
    line = watch.line(10, totals([1_000, 500, 500]))
    assert line.reaches == {"public/text/s0": 20, "public/text/s1": 80, "public/text/s2": 80}
    assert line.notes == ()
    line = watch.line(20, totals([1_990, 1_000, 1_000], dropped={(0, "no loss token"): (10, 0)}))
    assert line.notes == (
        "public/text/s0 has been read as often as it may, 2 times, about step 20; "
        "the others take its share",
    )
    assert line.reaches == {"public/text/s1": 80, "public/text/s2": 80}, "the pace until then"
    line = watch.line(30, totals([1_990, 2_000, 2_000], dropped={(0, "no loss token"): (10, 0)}))
    assert (line.alarms, line.notes) == ((), ())
    assert line.reaches == {"public/text/s1": 50, "public/text/s2": 50}, "the pace since then"
    line = watch.line(40, totals([1_990, 4_000, 2_000], dropped={(0, "no loss token"): (10, 0)}))
    assert len(line.alarms) == 2


def test_what_a_run_will_not_reach_is_not_projected():
    watch = Watch(plan_of((3.0, 1.0)), steps=20)
    assert watch.line(10, totals([3_000, 100])).reaches == {"public/text/s0": 14}


def test_a_watch_goes_on_where_a_checkpoint_left_it():
    chance = np.random.default_rng(5)
    seen = np.cumsum(chance.integers(300, 1_700, (40, 2)), axis=0).tolist()
    stages = (Stage(after=0, weights=(1.0, 1.0)), Stage(after=150, weights=(2.0, 1.0)))
    plan = plan_of((1.0, 1.0), stages=stages, readers=4, buffer=300)
    whole = Watch(plan, steps=400)
    lines = [whole.line(10 * at, totals(one)) for at, one in enumerate(seen, start=1)]
    assert sum(len(line.alarms) for line in lines) > 3
    for stop in range(0, 40, 3):
        first, second = Watch(plan, steps=400), Watch(plan, steps=400)
        for at, one in enumerate(seen[:stop], start=1):
            first.line(10 * at, totals(one))
        second.restore(json.loads(json.dumps(first.state())))
        rest = [
            second.line(10 * at, totals(one)) for at, one in enumerate(seen[stop:], start=stop + 1)
        ]
        assert rest == lines[stop:]


def test_what_is_dropped_counts_towards_a_cap_and_as_epochs():
    """Six in ten samples of a source of 1,000 are dropped, and it may be read three times."""
    sources = (
        Source(key="public/text/s0", role="r", size=1_000, max_epochs=3.0),
        Source(key="public/text/s1", role="r", size=10**6),
    )
    plan = plan_of((1.0, 1.0), sources=sources)
    watch = Watch(plan, steps=400)
    for step in (50, 150, 200):
        seen = totals([step * 4, step * 4], dropped={(0, "no loss token"): (step * 6, 0)})
        seen.counts[:, DISTINCT] = [min(400, step * 4), step * 4]
        line = watch.line(step, seen)
        assert epochs(line.sources[0], 1_000) == pytest.approx(step / 100)
        assert line.reaches == {"public/text/s0": 300}
        kept = json.loads(json.dumps(watch.state()))
        watch = Watch(plan, steps=400)
        watch.restore(kept)
