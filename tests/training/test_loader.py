"""What Megatron-Bridge is given: batches without accounts, a state, and refusals before them."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from factory.errors import SpecError
from tests.data.stream.conftest import SHORT, Mixture, documents, mixture_of, read, write

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Mixture:
    folder = tmp_path_factory.mktemp("small") / "short"
    samples = documents("short", 24, lambda chance: chance.randrange(1, 30))
    return mixture_of({SHORT: write(folder, SHORT, samples)}, {SHORT: len(samples)}, {SHORT: 1.0})


@pytest.fixture
def provider(small: Mixture, bridge: None, tmp_path: Path) -> Any:
    from factory.training.loader import MixProvider

    lock = tmp_path / "mix.lock"
    lock.write_bytes(small.lock.to_json())
    packing = small.lock.packing
    return MixProvider(
        tokenizer="bytes",
        chat="plain",
        buffer=packing.buffer,
        shuffle=packing.shuffle,
        seq_length=256,
        micro_batch_size=2,
        global_batch_size=4,
        seed=5,
        lock=str(lock),
        folders={key: str(folder) for key, folder in small.folders.items()},
    )


def groups(pipeline: int = 1) -> Any:
    """Process groups of one data-parallel rank."""
    data = SimpleNamespace(rank=lambda: 0, size=lambda: 1)
    stages = SimpleNamespace(size=lambda: pipeline)
    return SimpleNamespace(pg_collection=SimpleNamespace(dp=data, pp=stages))


class Seen:
    def __init__(self) -> None:
        self.accounts: list[Any] = []

    def on_batch(self, account: Any) -> None:
        self.accounts.append(account)


def test_observers_are_told_of_each_batch_when_it_is_taken(provider):
    first, second = Seen(), Seen()
    provider.observe(first)
    provider.observe(second)
    feed, validation, test = provider.build_datasets(groups())
    assert validation is test is None
    assert iter(feed) is feed, "Bridge looks for the state on what it is given"
    for number, batch in enumerate(read(feed, 5), start=1):
        assert "account" not in batch
        assert batch["tokens"].shape == (1, 512)
        assert len(first.accounts) == len(second.accounts) == number
    state = feed.save_state()
    expected = [batch["tokens"].tolist() for batch in read(feed, 3)]
    again, _, _ = provider.build_datasets(groups())
    again.restore_state(state)
    assert [batch["tokens"].tolist() for batch in read(again, 3)] == expected


def test_what_is_written_down_of_it_names_the_tokenizer_and_no_observer(provider):
    import dataclasses

    provider.observe(Seen())
    provider.tokenizer = object()  # as Bridge does
    assert dataclasses.asdict(provider)["tokenizer"] == "bytes"
    assert not any("observer" in field.name for field in dataclasses.fields(provider))


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"buffer": 9}, "dataset.buffer is 9, but the mix of this run was locked with 64"),
        ({"regime": "none"}, "dataset.regime is 'none', but"),
        ({"tokenizer": "tekken_240911"}, "dataset.tokenizer is 'tekken_240911', but"),
        ({"seq_length": 128}, "locked with sequences of 256 tokens, but the model takes 128"),
    ],
)
def test_a_recipe_that_reads_otherwise_than_was_locked_is_refused(provider, changed, said):
    for name, value in changed.items():
        setattr(provider, name, value)
    with pytest.raises(SpecError, match=said):
        provider.build_datasets(groups())


def test_batches_of_several_sequences_are_refused_in_a_pipeline(provider):
    with pytest.raises(SpecError, match=r"train\.micro_batch_size is 2.*Set it to 1"):
        provider.build_datasets(groups(pipeline=2))
