"""Finding declarations, and naming the file that cannot be used."""

from pathlib import Path

import pytest

from factory import discovery
from factory.errors import ClassificationError, DeclarationError

GOOD = '''"""Some rows."""
from factory.data import Dataset, Git, Rejected, Row, Sample
from factory.keys import public

def clean(row: Row) -> Sample | Rejected:
    return Rejected("all")

rows = Dataset(
    key=public("text/rows"),
    license="CC0-1.0",
    source=Git(url="https://example.org/x", revision="0123456789" * 4, rows="*.jsonl"),
    clean=clean,
)
'''


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "definitions" / "datasets" / "public" / "text").mkdir(parents=True)
    return tmp_path / "definitions"


def put(folder: Path, name: str, content: str) -> None:
    path = folder / "datasets" / "public" / "text" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content)


def test_the_real_declarations_are_found():
    found = discovery.datasets()
    assert {"public/text/plos", "public/text/medquad"} <= set(found)
    assert "private/text/discharge_letters" in found
    assert all(dataset.key.path == path for path, dataset in found.items())


def test_a_file_is_found_by_being_there(folder):
    put(folder, "rows.py", GOOD)
    put(folder, "new/deep.py", GOOD.replace("text/rows", "text/new/deep"))
    put(folder, "_helper.py", "1 / 0")
    put(folder, "notes.txt", "no code")
    assert list(discovery.datasets(folder)) == ["public/text/new/deep", "public/text/rows"]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (
            GOOD.replace("text/rows", "text/other"),
            r"definitions/datasets/public/text/rows\.py declares the key public/text/other, but a "
            r"file's path is its key\. Move it to definitions/datasets/public/text/other\.py, or "
            r'write key=public\("text/rows"\)\.',
        ),
        (GOOD + "\ntwin = Dataset(**vars(rows))\n", "declares public/text/rows 2 times"),
        ("X = 1\n", r"rows\.py declares no dataset"),
        (
            '"""Broken."""\n\nimport nothing_like_it\n',
            r"rows\.py cannot be imported: ModuleNotFoundError: No module named 'nothing_like_it'"
            r"\n  line 3: import nothing_like_it",
        ),
        ("def f(:\n", r"rows\.py cannot be imported: SyntaxError"),
        ("raise SystemExit(3)\n", r"rows\.py cannot be imported: SystemExit"),
        (GOOD.replace('license="CC0-1.0"', 'license=""'), r"rows\.py: public/text/rows: license"),
        (GOOD.replace("0123456789", "main"), r"rows\.py: revision 'mainmainmain"),
        (GOOD.replace("clean=clean", "clena=clean"), r"rows\.py cannot be imported: TypeError"),
    ],
)
def test_a_file_that_cannot_be_used_is_named(folder, content, message):
    put(folder, "rows.py", content)
    with pytest.raises(DeclarationError, match=message):
        discovery.datasets(folder)


def test_a_private_source_under_a_public_path(folder):
    put(
        folder,
        "rows.py",
        GOOD.replace("Git,", "LocalFiles,").replace(
            'Git(url="https://example.org/x", revision="0123456789" * 4, rows="*.jsonl")',
            'LocalFiles(folder="x", rows="*", classification="private")',
        ),
    )
    with pytest.raises(ClassificationError, match=r"rows\.py: public/text/rows reads .* private"):
        discovery.datasets(folder)


def test_every_problem_is_told_at_once(folder):
    put(folder, "rows.py", "1 / 0\n")
    put(folder, "more.py", GOOD)
    put(folder, "good.py", GOOD.replace("text/rows", "text/good"))
    with pytest.raises(DeclarationError) as caught:
        discovery.datasets(folder)
    message = str(caught.value)
    assert message.startswith("2 declarations cannot be used.")
    assert "ZeroDivisionError" in message
    assert "more.py declares the key" in message


@pytest.mark.parametrize("path", ["_hidden/rows.py", "_rows.py", "__init__.py", "_a/b/rows.py"])
def test_a_declaration_where_nothing_looks_for_it(folder, path):
    put(folder, path, GOOD)
    with pytest.raises(DeclarationError, match=r"Dataset\(\.\.\.\) declares nothing here"):
        discovery.datasets(folder)


def test_helpers_may_make_datasets_for_others(folder):
    put(
        folder,
        "_shared/make.py",
        f"def make():\n    {GOOD.splitlines()[0]}\n    return Dataset()\n",
    )
    put(folder, "_names.py", "WORDS = dict(a=1)\n")
    put(folder, "rows.py", GOOD)
    assert set(discovery.datasets(folder)) == {"public/text/rows"}


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ("x = 1\ndef (:\n", r"_helper\.py, line 2: cannot be read as Python, .*: invalid syntax"),
        ("x = 1\0", r"_helper\.py: cannot be read as Python, .*: source code .* null bytes"),
        ("# -*- coding: nonsense -*-\n", r"_helper\.py.*: cannot be read as Python"),
    ],
)
def test_a_helper_that_is_no_python_is_named(folder, content, says):
    put(folder, "rows.py", "1 / 0\n")
    put(folder, "_helper.py", content)
    with pytest.raises(DeclarationError, match=says) as caught:
        discovery.datasets(folder)
    assert "ZeroDivisionError" in str(caught.value), "and the others are told as well"


def test_a_file_of_jobs_that_is_no_python_is_named(tmp_path):
    (tmp_path / "jobs").mkdir()
    (tmp_path / "jobs" / "one.py").write_text("def (:")
    with pytest.raises(DeclarationError, match=r"one\.py, line 1: cannot be read as Python"):
        discovery.job_names(tmp_path)


def test_jobs_are_found_by_name_without_dagster(tmp_path):
    jobs = tmp_path / "jobs"
    jobs.mkdir()
    (jobs / "one.py").write_text('a = training_job("smoke", X)\nb = t.training_job(name="b")')
    assert discovery.job_names(tmp_path) == {"smoke", "b"}
    (jobs / "two.py").write_text('for n in "ab":\n    training_job(f"smoke_{n}", X)')
    assert discovery.job_names(tmp_path) is None
    assert "smoke" in (discovery.job_names() or ())


def test_a_dataset_may_be_imported_from_another_declaration(folder, monkeypatch):
    put(folder, "rows.py", GOOD)
    put(
        folder,
        "derived.py",
        GOOD.replace("text/rows", "text/derived").replace("rows = Dataset", "derived = Dataset")
        + "\nfrom definitions.datasets.public.text.medquad import medquad\n",
    )
    assert set(discovery.datasets(folder)) == {"public/text/derived", "public/text/rows"}


def test_nothing_heavy_is_imported():
    import subprocess
    import sys

    code = (
        "import sys; from factory.discovery import datasets; from factory.data.steps import steps\n"
        "[steps(one) for one in datasets().values()]\n"
        "print([m for m in ('numpy', 'pyarrow', 'torch', 'lxml', 'dagster', 'megatron', 'ray', "
        "'uv') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert done.stdout.strip() == "[]"


LOCAL = GOOD.replace("Git,", "LocalFiles,").replace(
    'Git(url="https://example.org/x", revision="0123456789" * 4, rows="*.jsonl")',
    'LocalFiles(folder="FOLDER", rows="*.jsonl", classification="public")',
)


@pytest.mark.parametrize("public_folder", ["hospital", "hospital/2026"])
def test_a_folder_that_is_private_for_one_is_private_for_all(folder, public_folder):
    put(folder, "rows.py", LOCAL.replace("FOLDER", public_folder))
    secret = LOCAL.replace("FOLDER", "hospital").replace("public", "private")
    put(folder, "../../private/text/rows.py", secret)
    with pytest.raises((ClassificationError, DeclarationError), match="private"):
        discovery.datasets(folder)


def test_what_a_benchmark_reads_is_trained_on_under_no_other_name(folder):
    put(folder, "rows.py", GOOD)
    exam = GOOD.replace("text/rows", "benchmarks/rows").replace(
        "license=", 'role="benchmark", license='
    )
    put(folder, "../benchmarks/rows.py", exam)
    with pytest.raises(DeclarationError, match="reads the same files as the benchmark"):
        discovery.datasets(folder)


def test_folders_beside_one_another_are_independent(folder):
    put(folder, "rows.py", LOCAL.replace("FOLDER", "open"))
    secret = LOCAL.replace("FOLDER", "hospital").replace("public", "private")
    put(folder, "../../private/text/rows.py", secret)
    assert len(discovery.datasets(folder)) == 2


@pytest.mark.parametrize(
    ("right", "wrong", "named"),
    [
        ("clean=clean", 'clean="nope"', "clean is 'nope'"),
        ('public("text/rows")', '"public/text/rows"', "key is 'public/text/rows'"),
        ("CC0-1.0", "CC0-1.0", None),
    ],
)
def test_a_value_of_the_wrong_type_is_named_with_its_file(folder, right, wrong, named):
    put(folder, "rows.py", GOOD.replace(right, wrong))
    if named is None:
        assert discovery.datasets(folder)
        return
    with pytest.raises(DeclarationError, match=named) as caught:
        discovery.datasets(folder)
    assert "definitions/datasets/public/text/rows.py" in str(caught.value)
