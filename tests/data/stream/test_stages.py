"""A stage that the caps of its mix end before its steps do: the next one goes on, and exactly."""

import pytest

from factory.errors import RunFailed
from tests.data.stream.conftest import (
    CHAT,
    LONG,
    SHORT,
    Mixture,
    documents,
    mixture_of,
    questions,
    read,
    write,
)

PLACE = {"micro_batch_size": 1, "global_batch_size": 1}


@pytest.fixture(scope="module")
def three(tmp_path_factory: pytest.TempPathFactory) -> Mixture:
    base = tmp_path_factory.mktemp("stages")
    made = {
        LONG: documents("long", 3, lambda chance: 90),
        SHORT: documents("short", 40, lambda chance: chance.randrange(9, 30)),
        CHAT: questions("chat", 40),
    }
    folders = {key: write(base / key, key, samples) for key, samples in made.items()}
    counts = {key: len(samples) for key, samples in made.items()}
    return mixture_of(folders, counts, dict.fromkeys(made, 1.0))


@pytest.mark.parametrize(
    ("ends", "stage"),
    [
        ("its cap is reached", (0, 256, (0, 1, 0))),
        ("all of it was dropped", (0, 256, (0.02, 0.98, 0))),
    ],
)
def test_what_ends_a_stage_does_not_end_the_next_and_is_kept(three: Mixture, ends, stage):
    """The readers of the first stage have nothing more to draw some steps before the second."""
    capped = three.source(SHORT, max_epochs=1.0).source(LONG, overflow="drop")
    staged = capped.stages(stage, (6, 256, (0, 0, 1)))
    expected = [batch["account"] for batch in read(staged.loader(**PLACE), 40)]
    assert len(expected) == 40, ends
    assert sum(int(one.counts[2, 0]) for one in expected[:6]) == 0
    assert sum(int(one.counts[2, 0]) for one in expected[6:]) > 20
    going = staged.loader(**PLACE)
    for at in range(0, 40, 8):
        found = [batch["account"].digest for batch in read(going, 8)]
        assert found == [one.digest for one in expected[at : at + 8]], at
        state = going.save_state_rank()
        going = staged.loader(**PLACE)
        going.restore_state_rank(state)


@pytest.mark.parametrize("weight", [1, 2])
def test_what_waits_is_trained_on_in_a_stage_that_leaves_nothing_to_draw(three: Mixture, weight):
    capped = three.source(SHORT, max_epochs=1.0)
    staged = capped.stages((0, 256, (0, 1, 0)), (5, 512, (0, weight, 0)))
    seen: list[int] = []
    reading = (int(batch["account"].counts[1, 0]) for batch in read(staged.loader(**PLACE), 100))
    with pytest.raises(RunFailed, match="short was read 1 times of at most 1"):
        seen.extend(reading)
    assert sum(seen) == 40
