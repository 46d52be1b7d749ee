"""A mix is checked when it is declared."""

import pytest

from factory.data import Dataset, Derived, LocalFiles, Rejected
from factory.data.mix import Mix, Stage, Weighted, required_samples
from factory.data.steps import steps
from factory.discovery import mixes
from factory.errors import DeclarationError
from factory.keys import public
from factory.spec import RunSpec
from tests.conftest import CHECKOUT


def dataset(name):
    return Dataset(
        key=public(name),
        license="CC0-1.0",
        source=LocalFiles(folder=name, rows="*.txt", classification="public"),
        clean=lambda _: Rejected("not read here"),
    )


A, B, C = dataset("text/a"), dataset("text/b"), dataset("text/c")


@pytest.mark.parametrize("weight", [0, -1, float("nan"), float("inf"), "2", None, True])
def test_a_weight_is_a_finite_number_above_zero(weight):
    with pytest.raises(DeclarationError, match="public/text/a has the weight"):
        Mix(domain_shift=[(weight, A)])


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ((A, 1.0), "1.0 is in the mix with the weight the dataset public/text/a, but is no"),
        ((1.0, "public/text/a"), "'public/text/a' is in the mix with the weight 1.0, but is no"),
        ((1.0, A, 2), r"domain_shift\[0\] is \(1.0, Dataset.*; write a weight and a dataset"),
        (A, r"domain_shift\[0\] is the dataset public/text/a; write a weight and a dataset"),
    ],
)
def test_an_entry_is_a_weight_and_a_dataset(given, message):
    with pytest.raises(DeclarationError, match=message):
        Mix(domain_shift=[given])


@pytest.mark.parametrize("given", [A, "public/text/a", None, {"a": 1.0}, 3])
def test_a_role_is_a_list(given):
    with pytest.raises(DeclarationError, match=r"retention is .*; write a list of datasets with"):
        Mix(domain_shift=[(1, A)], retention=given)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"max_epochs": 0}, "public/text/a: max_epochs is 0; write how often"),
        ({"max_epochs": "4"}, "public/text/a: max_epochs is '4'; write how often"),
        ({"max_epochs": float("inf")}, "public/text/a: max_epochs is inf; write how often"),
        ({"max_share": 1.5}, "public/text/a: max_share is 1.5; write a share"),
        ({"max_share": 20}, "public/text/a: max_share is 20; write a share"),
        ({"max_share": True}, "public/text/a: max_share is True; write a share"),
        (
            {"overflow": "truncate"},
            "public/text/a: overflow is 'truncate'; write one of split, truncate_middle, drop. "
            "Did you mean truncate_middle",
        ),
        ({"overflow": ["drop"]}, r"overflow is \['drop'\]; write one of split"),
    ],
)
def test_caps_and_overflow_name_the_dataset_the_field_and_what_is_allowed(changes, message):
    with pytest.raises(DeclarationError, match=message):
        Weighted(1.0, A, **changes)


@pytest.mark.parametrize("basis", ["tokens", "loss", None, 3])
def test_a_basis_is_one_of_three(basis):
    with pytest.raises(DeclarationError, match=r"basis is .* write one of sample, token, loss_tok"):
        Mix(domain_shift=[(1, A)], basis=basis)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"from_step": -1}, "from_step is -1; write the number of the step"),
        ({"from_step": 1.5}, "from_step is 1.5; write the number of the step"),
        ({"from_step": True}, "from_step is True; write the number of the step"),
        ({"from_step": 0, "context": 0}, "from step 0: context is 0; write how many tokens"),
        ({"from_step": 7, "context": "4k"}, "from step 7: context is '4k'; write how many tokens"),
        ({"from_step": 7, "weights": [A]}, "from step 7: weights is .*; write {plos.key: 2.0}"),
        ({"from_step": 7, "weights": {3: 1}}, "has a weight for 3, which is no key"),
        ({"from_step": 7, "weights": {A.key: -1}}, "the weight of public/text/a is -1; write a"),
        ({"from_step": 7, "weights": {A.key: "1"}}, "the weight of public/text/a is '1'; write a"),
    ],
)
def test_a_stage_names_its_field_and_what_is_allowed(fields, message):
    with pytest.raises(DeclarationError, match=message):
        Stage(**fields)


@pytest.mark.parametrize(
    ("stages", "message"),
    [
        ((), r"stages is \(\); write a list of Stage"),
        (Stage(from_step=0), r"stages is Stage\(.*; write a list of Stage"),
        ([0], r"stages is \[0\]; write a list of Stage"),
        ([Stage(from_step=5)], "begin with the steps 5. The first begins with step 0"),
        ([Stage(from_step=0)] * 2, "begin with the steps 0, 0. The first begins with step 0"),
        (
            [Stage(from_step=0, context=4096), Stage(from_step=9, context=2048)],
            "from step 9 has sequences of 2,048 tokens after 4,096 tokens. Contexts only grow",
        ),
        (
            [Stage(from_step=0), Stage(from_step=9, context=2048)],
            "from step 9 has sequences of 2,048 tokens after the recipe's context",
        ),
        (
            [Stage(from_step=0, weights={"public/text/aa": 1})],
            "a weight for public/text/aa, which is not in the mix. Did you mean public/text/a",
        ),
        ([Stage(from_step=0, weights={A.key: 0, B.key: 0})], "from step 0 pauses every dataset"),
        ([Stage(from_step=0, weights={A.key: 0})], "public/text/a has the weight 0 in every stage"),
    ],
)
def test_stages_follow_one_another_and_contexts_only_grow(stages, message):
    with pytest.raises(DeclarationError, match=message):
        Mix(domain_shift=[(1, A), (2, B)], stages=stages)


def test_caps_that_cannot_fill_a_stage_are_named():
    entries = [Weighted(1, A, max_share=0.3), Weighted(1, B, max_share=0.9)]
    Mix(domain_shift=entries)
    with pytest.raises(
        DeclarationError, match=r"from step 4 cannot be filled: .*public/text/a 0.3"
    ):
        Mix(
            domain_shift=entries,
            stages=[Stage(from_step=0), Stage(from_step=4, weights={B.key: 0})],
        )


def test_a_stage_has_the_weights_of_the_mix_and_its_own():
    second = Stage(from_step=10, context=4096, weights={B.key: 0, "public/text/c": 5})
    mix = Mix(
        warmup=[(1, A)],
        retention=[Weighted(2, B, max_epochs=4), (3, C)],
        basis="loss_token",
        stages=[Stage(from_step=0, context=2048), second],
    )
    assert mix.weights(mix.stages[0]) == (1, 2, 3)
    assert mix.weights(second) == (1, 0, 5)
    assert [role for role, _ in mix.entries] == ["warmup", "retention", "retention"]
    assert [one.max_epochs for _, one in mix.entries] == [None, 4, None]


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
    ((role, one),) = mixes(tmp_path)["mine"].entries
    assert (role, one.weight) == ("retention", 2.0)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", "mixes/empty.py declares 0 mixes"),
        (
            "from definitions.mixes.smoke import smoke as a\nimport copy\nb = copy.copy(a)",
            "2 mixes",
        ),
        ("import nowhere", "cannot be imported: ModuleNotFoundError"),
        ("from factory.data.mix import Mix\nMix()", "mixes/empty.py: A mix without datasets"),
        (
            "from definitions.mixes.smoke import smoke as one",
            "mixes/empty.py declares the mix one, but a mix has its file's name. "
            "Write `empty = Mix(...)`, or rename the file.",
        ),
        (
            "from factory.data.mix import Mix\nempty = Mix(basis='tokens')",
            "mixes/empty.py: basis is 'tokens'; write one of sample, token, loss_token. "
            "Did you mean token?",
        ),
        (
            "from factory.data.mix import Mix\nempty = Mix(wramup=())",
            "got an unexpected keyword argument 'wramup'\n  line 2: empty = Mix(wramup=())",
        ),
    ],
)
def test_a_file_that_does_not_declare_one_mix_is_named(tmp_path, text, expected):
    (tmp_path / "mixes").mkdir()
    (tmp_path / "mixes" / "empty.py").write_text(text)
    with pytest.raises(DeclarationError) as caught:
        mixes(tmp_path)
    assert expected in str(caught.value)


def test_a_lock_without_its_mix_is_named(tmp_path):
    folder = tmp_path / "definitions" / "mixes"
    folder.mkdir(parents=True)
    text = "from definitions.mixes.smoke import smoke\nmine = smoke\ndel smoke\n"
    (folder / "mine.py").write_text(text)
    (folder / "mine.lock").write_bytes(b"")
    assert list(mixes(folder.parent)) == ["mine"]
    (folder / "yours.lock").write_bytes(b"")
    with pytest.raises(
        DeclarationError, match=r"definitions/mixes/yours.lock locks a mix that is not declared"
    ):
        mixes(folder.parent)


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


def test_the_mix_of_the_page_is_one():
    page = (CHECKOUT / "docs" / "mixes.md").read_text(encoding="utf-8")
    code = page.split("```python\n")[1].split("```")[0]
    found: dict[str, object] = {}
    exec(code, found)  # noqa: S102 - what a reader would copy
    mix = found["clinical"]
    assert isinstance(mix, Mix)
    assert mix.weights(mix.stages[1]) == (0, 60, 8, 40)
