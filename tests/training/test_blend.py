"""What Energon makes of a blend: nothing lost, shares as declared, also for a small source."""

from collections import Counter
from pathlib import Path

import pytest
import yaml

from factory.data import Dataset, LocalFiles, Rejected, Sample, energon
from factory.data.encoder import task_encoder, text_of, tokens_of
from factory.data.mix import Mix, blend, required_samples
from factory.keys import public
from factory.spec import RunSpec
from tests.shards import write_shards

pytestmark = [
    pytest.mark.slow,
    # Energon always asks torch for pinned memory, also where there is no GPU.
    pytest.mark.filterwarnings("ignore:'pin_memory' argument is set as true:UserWarning"),
]

RANKS = 4


def dataset(name: str) -> Dataset:
    return Dataset(
        key=public(name),
        license="CC0-1.0",
        source=LocalFiles(folder=name, rows="*.txt", classification="public"),
        clean=lambda _: Rejected("not read here"),
    )


def write(folder: Path, samples: list[Sample]) -> Path:
    folder.mkdir()
    write_shards(folder, samples)
    energon.prepare(folder, 1, print)
    return folder


def texts(name: str, count: int, characters: int = 5) -> list[Sample]:
    return [
        Sample.document(
            id=f"{name}-{number}",
            title=f"{name} {number}",
            sections=[("H", chr(ord("a") + number % 26) * characters)],
            license="CC0-1.0",
        )
        for number in range(count)
    ]


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[int, Path]:
    """Sources of so many samples each."""
    base = tmp_path_factory.mktemp("sources")
    return {count: write(base / str(count), texts(f"s{count}", count)) for count in (3, 4, 100)}


def counts(path: Path, *, ranks: int, draws: int, length: int = 64) -> Counter[str]:
    """Draw so many sequences on each rank and count them by source."""
    from megatron.energon import WorkerConfig, get_savable_loader, get_train_dataset
    from megatron.energon.errors import reraise_exception

    found: Counter[str] = Counter()
    for rank in range(ranks):
        loader = get_savable_loader(
            get_train_dataset(
                path,
                worker_config=WorkerConfig(
                    rank=rank,
                    world_size=ranks,
                    num_workers=0,
                    global_error_handler=reraise_exception,
                ),
                batch_size=1,
                shuffle_buffer_size=100,
                max_samples_per_sequence=100,
                task_encoder=task_encoder(length),
            )
        )
        for _, batch in zip(range(draws), loader, strict=False):
            found.update(batch["sources"])
    return found


def blended(tmp_path: Path, folders: dict[int, Path], small: int) -> Path:
    mix = Mix(domain_shift=[(3.0, dataset("text/large")), (1.0, dataset("text/small"))])
    paths = {
        "public/text/large/energon/train": folders[100],
        "public/text/small/energon/train": folders[small],
    }
    path = tmp_path / "blend.yaml"
    path.write_text(yaml.safe_dump(blend(mix, "train", paths)))
    return path


def test_a_source_with_a_sample_for_every_rank_gets_its_declared_share(tmp_path, folders):
    spec = RunSpec(recipe="r", mix="m", workers=RANKS)
    assert required_samples(spec) == 4
    found = counts(blended(tmp_path, folders, small=4), ranks=RANKS, draws=800)
    share = found["public/text/small"] / found.total()
    deviation = (0.25 * 0.75 / found.total()) ** 0.5
    assert abs(share - 0.25) < 4 * deviation, found


def test_why_a_smaller_source_is_refused(tmp_path, folders):
    """Energon gives a rank without a sample of the source nothing of it, and says nothing."""
    found = counts(blended(tmp_path, folders, small=3), ranks=RANKS, draws=800)
    share = found["public/text/small"] / found.total()
    assert share == pytest.approx(0.25 * 3 / RANKS, abs=0.02), found


def test_long_and_short_documents_arrive_whole(tmp_path):
    """One epoch of every sequence, put together again, is every document."""
    from megatron.energon import WorkerConfig, get_savable_loader, get_train_dataset

    samples = [*texts("long", 3, 1_000), *texts("short", 3, 1), *texts("exact", 1, 22)]
    folder = write(tmp_path / "documents", samples)
    loader = get_savable_loader(
        get_train_dataset(
            folder,
            worker_config=WorkerConfig(rank=0, world_size=1, num_workers=0),
            batch_size=2,
            shuffle_buffer_size=None,
            max_samples_per_sequence=None,
            task_encoder=task_encoder(32),
            repeat=False,
        )
    )
    seen: list[int] = []
    for batch in loader:
        for labels, mask, tokens in zip(
            batch["labels"], batch["loss_mask"], batch["tokens"], strict=True
        ):
            assert tokens.shape == labels.shape == mask.shape == (32,)
            seen += labels[mask.bool()].tolist()
        assert batch["position_ids"].shape == batch["tokens"].shape
    expected = [one for sample in samples for one in tokens_of(text_of(sample.as_dict()))[1:]]
    assert Counter(seen) == Counter(expected)


def test_an_error_in_a_sample_ends_the_run_instead_of_skipping_it(tmp_path, monkeypatch):
    folder = write(tmp_path / "broken", texts("a", 3))
    monkeypatch.setattr("factory.data.encoder.text_of", _fail)
    with pytest.raises(ValueError, match="this sample"):
        counts(folder, ranks=1, draws=1)


def _fail(_: object) -> str:
    raise ValueError("this sample cannot be encoded")
