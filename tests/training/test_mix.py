"""A mix is checked when it is declared, and rendered as what Energon reads."""

from pathlib import Path

import pytest

from factory.data import Dataset, Derived, LocalFiles, Rejected
from factory.data.mix import Mix, blend, required_samples
from factory.data.steps import steps
from factory.discovery import mixes
from factory.errors import DeclarationError, SpecError
from factory.keys import public
from factory.spec import RunSpec


def dataset(name):
    return Dataset(
        key=public(name),
        license="CC0-1.0",
        source=LocalFiles(folder=name, rows="*.txt", classification="public"),
        clean=lambda _: Rejected("not read here"),
    )


A, B, C = dataset("text/a"), dataset("text/b"), dataset("text/c")


def test_a_blend_has_every_dataset_with_weight_directory_and_source():
    mix = Mix(warmup=[(1.0, A)], domain_shift=[(6.5, B)], retention=[(2, C)])
    paths = {f"public/text/{x}/energon/train": Path(f"/n/{x}.versions/1") for x in "abc"}
    rendered = blend(mix, "train", paths)
    assert rendered["__module__"] == "megatron.energon"
    assert rendered["__class__"] == "MetadatasetV2"
    assert rendered["splits"] == {
        "train": {
            "blend": [
                {
                    "weight": weight,
                    "path": f"/n/{x}.versions/1",
                    "split_part": "train",
                    "subflavors": {"source": f"public/text/{x}"},
                }
                for x, weight in (("a", 1.0), ("b", 6.5), ("c", 2.0))
            ]
        }
    }
    assert mix.datasets == (A, B, C)


def test_a_blend_without_a_pinned_version_says_which():
    with pytest.raises(SpecError, match="pins no version of public/text/a/energon/train"):
        blend(Mix(domain_shift=[(1.0, A)]), "train", {})


@pytest.mark.parametrize("weight", [0, -1, float("nan"), float("inf")])
def test_a_weight_is_a_finite_number_above_zero(weight):
    with pytest.raises(DeclarationError, match="public/text/a has the weight"):
        Mix(domain_shift=[(weight, A)])


def test_a_mix_has_datasets_and_each_once():
    with pytest.raises(DeclarationError, match="trains nothing"):
        Mix()
    with pytest.raises(DeclarationError, match="public/text/a is in the mix twice"):
        Mix(warmup=[(1, A)], retention=[(2, A)])


def test_a_declared_mix_is_found_by_its_files_name(tmp_path):
    assert [dataset.key.path for dataset in mixes()["smoke"].datasets] == ["public/text/plos"]
    folder = tmp_path / "mixes"
    folder.mkdir()
    (folder / "_shared.py").write_text("")
    (folder / "mine.py").write_text(
        "from definitions.mixes.smoke import smoke\n"
        "from factory.data.mix import Mix\n"
        "mine = other = Mix(retention=[(2.0, smoke.datasets[0])])\ndel smoke\n"
    )
    assert [weight for weight, _ in mixes(tmp_path)["mine"].weighted] == [2.0]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", "mixes/empty.py declares 0 mixes"),
        (
            "from definitions.mixes.smoke import smoke as a\nimport copy\nb = copy.copy(a)",
            "2 mixes",
        ),
        ("import nowhere", "cannot be imported: ModuleNotFoundError"),
    ],
)
def test_a_file_that_does_not_declare_one_mix_is_named(tmp_path, text, expected):
    (tmp_path / "mixes").mkdir()
    (tmp_path / "mixes" / "empty.py").write_text(text)
    with pytest.raises(DeclarationError) as caught:
        mixes(tmp_path)
    assert expected in str(caught.value)


@pytest.mark.parametrize(
    ("workers", "gpus", "loaders", "expected"),
    [(1, 0, 0, 1), (4, 0, 0, 4), (4, 0, 3, 12), (2, 8, 2, 32)],
)
def test_every_reader_needs_a_sample(workers, gpus, loaders, expected):
    spec = RunSpec(
        recipe="r", mix="m", workers=workers, gpus_per_worker=gpus, loader_workers=loaders
    )
    assert required_samples(spec) == expected
    assert required_samples(spec, "validation") == 1


def benchmark(**changes):
    declared = {
        "key": public("benchmarks/exam"),
        "license": "CC0-1.0",
        "source": LocalFiles(folder="exam", rows="*.txt", classification="public"),
        "clean": lambda _: Rejected("not read here"),
        "role": "benchmark",
    }
    return Dataset(**(declared | changes))


def test_a_benchmark_is_cleaned_and_no_more_and_no_mix_takes_it():
    exam = benchmark()
    assert [step.name for step in steps(exam)] == ["raw", "clean"]
    with pytest.raises(DeclarationError, match="public/benchmarks/exam is a benchmark"):
        Mix(domain_shift=[(1.0, A)], retention=[(0.1, exam)])


@pytest.mark.parametrize(
    "changes",
    [{"key": public("text/exam")}, {"role": "training"}, {"role": "test"}],
    ids=["elsewhere", "not said", "no such role"],
)
def test_benchmarks_and_they_alone_lie_in_their_part_of_the_tree(changes):
    with pytest.raises(DeclarationError, match="role"):
        benchmark(**changes)


def test_what_is_derived_from_a_benchmark_is_one():
    with pytest.raises(DeclarationError, match="training on it would be training on a benchmark"):
        benchmark(
            key=public("text/copy"), role="training", source=Derived(datasets=(A, benchmark()))
        )
    again = benchmark(key=public("benchmarks/copy"), source=Derived(datasets=(benchmark(),)))
    assert again.role == "benchmark"
