"""The stream of a run on another number of ranks: every reader goes on with its own batches."""

from itertools import islice

import pytest

from factory.training.resume.redistribute import _redistributed
from tests.data.stream.conftest import Mixture, read, stop

pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore:'pin_memory' argument is set as true:UserWarning"),
]

MADE, MORE = 4, 3


def digests(reading, readers: int, rounds: int) -> list[list[bytes]]:
    """Of the next batches of each reader of a rank; readers take turns."""
    found = [batch["account"].digest for batch in islice(reading, readers * rounds)]
    return [found[reader::readers] for reader in range(readers)]


@pytest.mark.parametrize(
    ("before", "after"),
    [((2, 1), (1, 2)), ((1, 2), (2, 1)), ((2, 2), (4, 1)), ((4, 1), (2, 2))],
    ids=str,
)
def test_every_reader_goes_on_with_its_own_batches(mixture: Mixture, before, after) -> None:
    ranks, workers = before
    states, expected = [], []
    for rank in range(ranks):
        loader = mixture.loader(rank=rank, ranks=ranks, workers=workers)
        reading = read(loader, workers * (MADE + MORE))
        digests(reading, workers, MADE)
        states.append(loader.save_state_rank())
        expected += digests(reading, workers, MORE)
        stop(loader)
    ranks, workers = after
    found = []
    for rank, state in enumerate(_redistributed(states, ranks)):
        loader = mixture.loader(rank=rank, ranks=ranks, workers=workers)
        loader.restore_state_rank(state)
        found += digests(read(loader, workers * MORE), workers, MORE)
        stop(loader)
    assert found == expected
    assert len({one for reader in found for one in reader}) == len(found) * MORE
