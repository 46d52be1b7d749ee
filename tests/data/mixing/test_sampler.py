"""The sampler: declared shares in every basis, caps, stages, and a state that goes on exactly."""

import json
import math
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from factory.data.mixing import Sampler, Supply
from factory.data.mixing.shares import shares
from factory.errors import RunFailed

BASES = ("sample", "token", "loss_token")
WEIGHTS = st.lists(st.floats(0.01, 100), min_size=1, max_size=7)
LENGTHS = {"notes": 500, "papers": 9_000, "tools": 60, "questions": 150}


def supplied(count, samples=10**9, **caps):
    return [
        Supply(key=f"public/text/{at}", samples=samples, **{k: v[at] for k, v in caps.items()})
        for at in range(count)
    ]


def sampler_of(weights, basis="sample", *, reader=0, samples=10**9, **caps):
    supply = supplied(len(weights), samples, **caps)
    return Sampler(weights, basis=basis, supply=supply, reader=reader)


class Reader:
    """Draws what a sampler chooses, and counts it in the three bases."""

    def __init__(self, sampler, lengths):
        self.sampler, self.lengths = sampler, lengths
        self.order = []
        self.counts = {basis: [0] * len(lengths) for basis in BASES}

    def draw(self, times, each=None):
        for _ in range(times):
            source = self.sampler.choose()
            tokens = self.lengths[source](self.sampler.drawn[source])
            self.sampler.record(
                source, samples=1, tokens=tokens, loss_tokens=tokens // (source + 2)
            )
            self.order.append(source)
            for basis, amount in zip(BASES, (1, tokens, tokens // (source + 2)), strict=True):
                self.counts[basis][source] += amount
            if each:
                each(self)
        return self

    def shares(self, basis):
        total = sum(self.counts[basis])
        return [count / total for count in self.counts[basis]]


def spread(mean):
    """Lengths from a third to three times the mean, the same on every call."""
    return lambda ordinal: max(2, int(mean * 3 ** (2 * (ordinal * 0.618 % 1) - 1)))


def of_length(count, mean=100):
    return [spread(mean)] * count


@given(WEIGHTS, st.integers(1, 300))
def test_shares_of_samples_are_never_a_whole_sample_ahead_nor_two_behind(weights, draws):
    share = shares(weights, [None] * len(weights))

    def close(reader):
        counts = reader.counts["sample"]
        for at, count in enumerate(counts):
            assert -2 < count - share[at] * sum(counts) < 1

    Reader(sampler_of(weights), of_length(len(weights))).draw(draws, close)


@given(WEIGHTS, st.integers(1, 10**6), st.integers(1, 200))
def test_a_reader_that_begins_elsewhere_is_not_far_off(weights, number, draws):
    share = shares(weights, [None] * len(weights))
    found = Reader(sampler_of(weights, reader=number), of_length(len(weights))).draw(draws)
    for at, count in enumerate(found.counts["sample"]):
        assert abs(count - share[at] * draws) < 3


@pytest.mark.parametrize("basis", BASES)
@given(
    st.lists(st.tuples(st.floats(0.05, 20), st.integers(10, 5_000)), min_size=1, max_size=6),
    st.integers(1, 400),
)
def test_no_source_is_more_than_one_sample_ahead(basis, sources, draws):
    weights = [weight for weight, _ in sources]
    share = shares(weights, [None] * len(weights))
    means = [mean for _, mean in sources]

    def not_ahead(reader):
        counts = reader.counts[basis]
        for at, count in enumerate(counts):
            longest = {"sample": 1, "token": 3 * max(means)}.get(basis, 3 * max(means) // 2)
            assert count - share[at] * sum(counts) <= longest + 1e-6

    Reader(sampler_of(weights, basis), [spread(mean) for mean in means]).draw(draws, not_ahead)


@pytest.mark.parametrize("basis", BASES)
def test_declared_shares_are_reached_in_every_basis_within_one_sample(basis):
    weights = [71.0, 10.0, 12.0, 7.0]
    lengths = [spread(mean) for mean in LENGTHS.values()]
    longest = 3 * max(LENGTHS.values())
    one = {"sample": 1, "token": longest, "loss_token": longest}[basis]
    for draws in (100, 1_000, 10_000):
        found = Reader(sampler_of(weights, basis), lengths).draw(draws)
        total = sum(found.counts[basis])
        for share, weight in zip(found.shares(basis), weights, strict=True):
            assert abs(share - weight / 100) <= one / total


def test_a_share_of_tokens_is_not_one_of_samples():
    lengths = [lambda _: 9_000, lambda _: 100]
    by_token = Reader(sampler_of([1.0, 1.0], "token"), lengths).draw(2_000)
    by_sample = Reader(sampler_of([1.0, 1.0], "sample"), lengths).draw(2_000)
    assert by_token.shares("token") == pytest.approx([0.5, 0.5], abs=0.01)
    assert by_token.shares("sample")[0] == pytest.approx(1 / 91, rel=0.1)
    assert by_sample.shares("token")[0] == pytest.approx(90 / 91, rel=0.01)


@pytest.mark.parametrize(
    "weights", [(99, 1), (60, 39, 1), (50, 20, 10, 5, 5, 4, 3, 1, 1, 1), (80, *[1] * 20)]
)
def test_readers_take_turns_with_a_rare_source(weights):
    """48 readers: together they have the declared shares at once, and none all the time."""
    readers, draws = 48, 60
    total = [0] * len(weights)
    together = [[0] * draws for _ in weights]
    for number in range(readers):
        found = Reader(sampler_of(weights, reader=number), of_length(len(weights))).draw(draws)
        for at, source in enumerate(found.order):
            total[source] += 1
            together[source][at] += 1
    for count, weight, at_once in zip(total, weights, together, strict=True):
        share = weight / sum(weights)
        assert abs(count - share * readers * draws) <= 0.25 * readers
        if share < 0.05:
            assert max(at_once) <= readers / 4


def test_a_rare_source_comes_at_an_even_pace():
    found = Reader(sampler_of([99.0, 1.0], reader=5), of_length(2)).draw(900)
    places = [at for at, source in enumerate(found.order) if source == 1]
    assert len(places) == 9
    assert {after - before for before, after in pairwise(places)} <= {99, 100, 101}


def test_what_is_dropped_is_drawn_again_from_the_same_source():
    """Shares are of what is trained on, so a source that loses half is drawn twice as often."""
    sampler = sampler_of([1.0, 1.0])
    trained = [0, 0]
    for _ in range(900):
        source = sampler.choose()
        kept = source == 0 or sampler.drawn[1] % 2
        sampler.record(source, samples=int(kept), tokens=9 * kept, loss_tokens=9 * kept)
        trained[source] += kept
    assert trained == [300, 300]
    assert sampler.drawn == [300, 600]


def test_a_source_of_which_all_is_dropped_ends_the_run():
    sampler = sampler_of([1.0, 1.0], samples=5)

    def drop():
        sampler.record(sampler.choose(), samples=0, tokens=0, loss_tokens=0)

    for _ in range(9):
        drop()
    with pytest.raises(RunFailed, match="All 5 samples that this reader has of public/text/0 were"):
        drop()


def test_one_good_sample_in_an_epoch_is_enough():
    """First of one epoch, last of the next: eight are dropped in a row, and all goes on."""
    sampler = sampler_of([1.0], samples=5)
    for kept in [1, 0, 0, 0, 0, 0, 0, 0, 0, 1] * 3:
        sampler.record(sampler.choose(), samples=kept, tokens=9 * kept, loss_tokens=kept)
    assert sampler.state()["samples"] == [6]


@pytest.mark.parametrize(("epochs", "draws"), [(1, 10), (2.5, 25), (0.29, 2)])
def test_a_source_leaves_when_its_epochs_are_reached(epochs, draws):
    sampler = sampler_of([1.0, 1.0, 2.0], samples=10, max_epochs=[epochs, None, None])
    found = Reader(sampler, of_length(3)).draw(400)
    assert found.counts["sample"][0] == draws
    last = max(at for at, source in enumerate(found.order) if source == 0)
    assert sampler.shares == pytest.approx((0, 1 / 3, 2 / 3))
    rest = found.order[last + 1 :]
    assert abs(rest.count(1) - len(rest) / 3) < 1


def test_a_capped_share_stays_when_another_source_leaves():
    sampler = sampler_of(
        [4.0, 4.0, 2.0],
        samples=100,
        max_epochs=[0.4, None, None],
        max_share=[None, 0.5, None],
    )
    found = Reader(sampler, of_length(3)).draw(100)
    assert found.counts["sample"] == [40, 40, 20]
    assert sampler.shares == pytest.approx((0, 0.5, 0.5))
    found.draw(100)
    assert found.counts["sample"] == [40, 90, 70]


def test_caps_that_leave_nothing_end_the_run_and_say_why():
    sampler = sampler_of([1.0, 1.0], samples=4, max_epochs=[2, None], max_share=[None, 0.7])
    with pytest.raises(RunFailed) as ended:
        Reader(sampler, of_length(2)).draw(100)
    assert "public/text/0 was read 2 times of at most 2" in str(ended.value)
    assert "public/text/1 may make up 0.7 of the stream" in str(ended.value)


def test_a_stage_begins_with_its_own_shares_and_makes_nothing_up():
    sampler = sampler_of([9.0, 1.0, 0.0])
    found = Reader(sampler, of_length(3)).draw(100)
    assert found.counts["sample"] == [90, 10, 0]
    sampler.use([9.0, 1.0, 0.0])  # the same: goes on as it was
    assert sampler.state()["samples"] == [90, 10, 0]
    sampler.use([0.0, 1.0, 1.0])
    found.draw(100)
    assert found.counts["sample"] == [90, 60, 50]


@given(
    st.sampled_from(BASES),
    st.lists(st.tuples(st.floats(0.05, 20), st.integers(10, 900)), min_size=2, max_size=5),
    st.integers(0, 60),
    st.integers(0, 100),
)
def test_a_restored_sampler_goes_on_exactly(basis, sources, before, number):
    """Through JSON as well, in the middle of a stage and beside a cap."""
    weights = [weight for weight, _ in sources]
    lengths = [spread(mean) for _, mean in sources]
    caps = {"max_epochs": [0.5, *[None] * (len(sources) - 1)]}
    one = sampler_of(weights, basis, reader=number, samples=40, **caps)
    reader = Reader(one, lengths).draw(before)
    one.use([1.0, *weights[1:]])
    reader.draw(7)
    state = one.state()
    for value in state.values():
        assert isinstance(value, int) or all(type(number) is int for number in value)
    other = sampler_of(weights, basis, reader=number + 1, samples=40, **caps)  # has moved since
    kept = json.loads(json.dumps(state))
    other.restore(kept)
    assert other.state() == state
    assert other.shares == one.shares
    again = Reader(other, lengths).draw(80)
    assert kept == state
    assert again.order == Reader(one, lengths).draw(80).order
    assert other.state() == one.state()


def test_asking_changes_nothing():
    sampler = sampler_of([1.0, 2.0])
    assert len({sampler.choose() for _ in range(5)}) == 1


def test_a_state_of_another_mix_is_refused():
    with pytest.raises(ValueError, match="of 3 sources, the mix has 2"):
        sampler_of([1.0, 1.0]).restore(sampler_of([1.0, 1.0, 1.0]).state())
    with pytest.raises(ValueError, match="3 weights for 2 sources"):
        Sampler([1.0] * 3, basis="sample", supply=supplied(2))


def test_draws_are_whole_samples_and_none_is_lost_to_rounding():
    assert Supply(key="a", samples=10, max_epochs=0.3).draws == 3
    assert Supply(key="a", samples=10).draws == math.inf
