"""The ledger of real streams: made again from the data, and exact over ranks and workers."""

import numpy as np
import pytest

from factory.data.stream.account import BatchAccount
from factory.observe.mixture.ledger import Ledger
from factory.observe.mixture.plan import Plan
from factory.observe.mixture.realized import realized
from factory.observe.mixture.replay import differences, replayed
from factory.observe.mixture.totals import DISTINCT, none
from factory.observe.mixture.watch import Watch
from factory.reports import MixtureLine, Reading
from tests.data.stream.conftest import Mixture, mixture, read, stop

__all__ = ["mixture"]

pytestmark = pytest.mark.slow

STEPS, INTERVAL = 12, 5


def accounts(mixture: Mixture, reading: Reading, rank: int, steps: int) -> list[BatchAccount]:
    per_step = reading.global_batch_size // reading.micro_batch_size // reading.ranks
    loader = mixture.loader(
        seed=reading.seed,
        rank=rank,
        ranks=reading.ranks,
        workers=reading.workers,
        micro_batch_size=reading.micro_batch_size,
        global_batch_size=reading.global_batch_size,
    )
    made = [batch["account"] for batch in read(loader, steps * per_step)]
    stop(loader)
    return made


def reading(**changed: int) -> Reading:
    fields = {"after": 0, "seed": 5, "ranks": 1, "workers": 0, "micro_batch_size": 1}
    return Reading(**fields | {"global_batch_size": 8, "begun": 1} | changed)


def live(mixture: Mixture, how: Reading) -> list[MixtureLine]:
    """The lines of a run that read so, without a model."""
    plan = Plan.of(mixture.lock, how.readers)
    watch = Watch(plan, steps=STEPS)
    ledgers = [Ledger(plan.sizes) for _ in range(how.ranks)]
    streams = [accounts(mixture, how, rank, STEPS) for rank in range(how.ranks)]
    per_step = len(streams[0]) // STEPS
    lines = []
    for step in range(1, STEPS + 1):
        for ledger, stream in zip(ledgers, streams, strict=True):
            for account in stream[(step - 1) * per_step : step * per_step]:
                ledger.on_batch(account)
        if watch.due(step, INTERVAL):
            lines.append(watch.line(step, sum((one.totals for one in ledgers), none(3))))
    return lines


@pytest.mark.parametrize(("ranks", "workers"), [(1, 0), (1, 2), (2, 0)])
def test_a_replay_agrees_to_the_last_number_and_sees_any_other_stream(mixture, ranks, workers):
    how = reading(ranks=ranks, workers=workers)
    lines = live(mixture, how)
    assert [line.step for line in lines] == [5, 10, 12]
    steps = [line.step for line in lines]

    def again(other: Reading) -> list[str]:
        found = replayed(mixture.lock, mixture.folders, other, steps, lambda done, of: None)
        return differences(lines, found)

    assert again(how) == []
    assert again(how.model_copy(update={"seed": 6}))
    # Distinct samples add up over ranks, because no two of them read the same.
    drawn = [
        {tuple(row) for account in accounts(mixture, how, rank, STEPS) for row in account.drawn}
        for rank in range(ranks)
    ]
    assert len(set.union(*drawn)) == sum(map(len, drawn))
    assert sum(one.distinct for one in lines[-1].sources) == len(set.union(*drawn))


def test_a_source_is_seen_whole_before_any_of_it_comes_again(mixture):
    """So epochs by distinct samples and by all that were seen are one thing."""
    small = mixture.only("public/text/long")
    ledger = Ledger((30,))
    for account in accounts(small, reading(), 0, 40):
        ledger.on_batch(account)
        samples, distinct = ledger.totals.counts[0, [0, DISTINCT]].tolist()
        # A sample of the next round may be packed before one of this round that waits.
        assert distinct >= min(30, samples) - small.lock.packing.buffer
    assert ledger.totals.counts[0, DISTINCT] == 30


def test_what_is_dropped_and_cut_is_counted_by_reason(mixture):
    lock = mixture.source("public/text/long", overflow="drop")
    lines = live(lock, reading())
    mix = realized(lock.lock, lines, 1)
    dropped = {one.counts.source: dict(one.counts.dropped) for one in mix.sources}
    (reason,) = dropped["public/text/long"]
    samples, tokens = dropped["public/text/long"][reason]
    assert samples > 0
    assert tokens > 256 * samples
    cut = live(mixture.source("public/text/long", overflow="truncate_middle"), reading())[-1]
    assert cut.sources[0].truncated > 0
    assert np.sign([one.truncated for one in cut.sources]).tolist() == [1, 0, 0]
