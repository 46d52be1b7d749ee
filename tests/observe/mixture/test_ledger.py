"""The ledger of a rank: exact, continued without a gap, and adding up over ranks."""

import json
from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from factory.errors import RunFailed
from factory.observe.mixture.ledger import Ledger, redistributed
from factory.observe.mixture.totals import COLUMNS, DISTINCT, Totals, none
from tests.observe.mixture.made import account

SIZES = (5, 64, 9)


REASONS = ("no loss token", "damaged")

seeds = st.integers(0, 2**32)
"""Of batches made by numpy: hypothesis takes a hundred times as long for one."""

few = settings(max_examples=25)


def batches(seed: int):
    chance = np.random.default_rng(seed)
    made = []
    for _ in range(chance.integers(1, 12)):
        sources = chance.integers(0, len(SIZES), chance.integers(0, 30)).tolist()
        ordinals = [(at, int(chance.integers(SIZES[at]))) for at in sources]
        rows = [[0] * 6 for _ in SIZES]
        for at, ordinal in ordinals:
            rows[at] = [a + b for a, b in zip(rows[at], (1, 2, 9 + ordinal, 4, 1, 3), strict=True)]
        dropped = {
            (int(chance.integers(3)), REASONS[chance.integers(2)]): (
                int(chance.integers(4)),
                int(chance.integers(90)),
            )
            for _ in range(chance.integers(3))
        }
        made.append(account(rows, ordinals, slots=4096, dropped=dropped))
    return made


def counted(made) -> Totals:
    ledger = Ledger(SIZES)
    for one in made:
        ledger.on_batch(one)
    return ledger.totals


@given(seeds)
@few
def test_every_number_is_the_sum_of_the_batches(seed):
    made = batches(seed)
    totals = counted(made)
    assert np.array_equal(totals.counts[:, :DISTINCT], sum(one.counts for one in made))
    seen = Counter(at for at, _ in {tuple(row) for one in made for row in one.drawn.tolist()})
    assert totals.counts[:, DISTINCT].tolist() == [seen[at] for at in range(len(SIZES))]
    assert totals.positions.tolist() == [4096 * len(made), sum(one.ending for one in made), 0]
    for name in {name for one in made for name in one.dropped}:
        numbers = [one.dropped.get(name, (0, 0)) for one in made]
        assert totals.dropped[name] == (sum(n for n, _ in numbers), sum(n for _, n in numbers))


@given(seeds, st.integers(0, 12))
@few
def test_a_ledger_goes_on_where_a_checkpoint_left_it(seed, at):
    made = batches(seed)
    before = Ledger(SIZES)
    for one in made[:at]:
        before.on_batch(one)
    after = Ledger(SIZES)
    after.restore(json.loads(json.dumps(before.state())))
    for one in made[at:]:
        after.on_batch(one)
    assert after.totals == counted(made)


def part(one, worker, of):
    """What one of so many workers would have read of a batch."""
    mine = [tuple(row) for row in one.drawn.tolist() if row[1] % of == worker]
    rows = [[0] * 6 for _ in SIZES]
    for source, _ in mine:
        rows[source] = [a + b for a, b in zip(rows[source], (1, 1, 7, 7, 0, 0), strict=True)]
    return account(rows, mine)


@given(seeds, st.integers(1, 3), st.integers(1, 4))
@few
def test_ranks_that_read_apart_add_up_also_after_a_change_of_their_number(seed, old, new):
    """Each worker keeps its range when it moves to another rank."""

    made = batches(seed)
    half, workers = len(made) // 2, 12
    ledgers = [Ledger(SIZES) for _ in range(old)]
    for one in made[:half]:
        for worker in range(workers):
            ledgers[worker % old].on_batch(part(one, worker, workers))
    moved = [Ledger(SIZES) for _ in range(new)]
    states = redistributed([ledger.state() for ledger in ledgers], new)
    for ledger, state in zip(moved, states, strict=True):
        ledger.restore(state)
    for one in made[half:]:
        for worker in range(workers):
            moved[worker % new].on_batch(part(one, worker, workers))
    alone = Ledger(SIZES)
    for one in made:
        alone.on_batch(part(one, 0, 1))
    assert sum((ledger.totals for ledger in moved), none(len(SIZES))) == alone.totals


@given(seeds)
@few
def test_totals_travel_as_one_row_of_numbers(seed):
    made = batches(seed)
    totals = counted(made)
    reasons = [(1, "unheard of"), *sorted(totals.dropped)]
    row = totals.vector(reasons)
    assert row.dtype == np.int64
    back = Totals.from_vector(row, len(SIZES), reasons)
    assert back == Totals(
        totals.counts, totals.positions, {(1, "unheard of"): (0, 0), **totals.dropped}
    )
    doubled = Totals.from_vector(row + row, len(SIZES), sorted(reasons))
    assert np.array_equal(doubled.counts, (totals + totals).counts)


def test_a_sample_that_its_source_does_not_have_is_a_defect():
    ledger = Ledger(SIZES)
    for row in ((0, 5), (2, 9), (1, -1)):
        rows = [[0] * 6 for _ in SIZES]
        rows[row[0]] = [1, 1, 1, 1, 0, 0]
        with pytest.raises(RuntimeError, match="a sample that its source does not have"):
            ledger.on_batch(account(rows, [row]))


def test_a_checkpoint_of_another_mix_is_refused():
    with pytest.raises(RunFailed, match=r"\[5, 64, 9\].*\[5, 64\]"):
        Ledger(SIZES[:2]).restore(Ledger(SIZES).state())


def test_a_million_samples_take_a_bit_each():
    ledger = Ledger((8_000_000,))
    chance = np.random.default_rng(0)
    ordinals = np.unique(chance.integers(0, 8_000_000, 50_000))
    drawn = [(0, int(ordinal)) for ordinal in ordinals]
    ledger.on_batch(account([[len(drawn), 1, 1, 1, 0, 0]], drawn))
    assert ledger.totals.counts[0, COLUMNS.index("distinct")] == len(drawn)
    assert len(ledger.state()["seen"]) < 1_400_000 * 4 / 3
