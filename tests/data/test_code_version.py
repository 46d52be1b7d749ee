"""Code versions follow imports by reading sources: what is imported counts, nothing else does."""

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from factory.data import code_version as subject
from factory.data.steps import steps
from factory.discovery import datasets
from factory.settings import CHECKOUT

DECLARATION = '''"""One."""
from definitions import words
from factory.data import Dataset, LocalFiles, Rejected, Row, Sample
from factory.keys import private

def clean(row: Row) -> Sample | Rejected:
    return Rejected(words.REASON)

one = Dataset(
    key=private("one"),
    license="MIT",
    source=LocalFiles(folder="one", rows="*.jsonl", classification="private"),
    clean=clean,
)
'''

ASK = """
import json
from factory.data.steps import steps
from factory.discovery import datasets
found = {
    f"{key} {step.name}": step.code_version
    for key, dataset in datasets().items() for step in steps(dataset)
}
print(json.dumps(found))
"""


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A copy of the library, with two declarations and helpers of its own."""
    shutil.copytree(
        CHECKOUT / "factory", tmp_path / "factory", ignore=shutil.ignore_patterns("__pycache__")
    )
    folder = tmp_path / "definitions"
    (folder / "datasets" / "private").mkdir(parents=True)
    (folder / "__init__.py").touch()
    (folder / "words.py").write_text("from definitions.deeper import REASON\n")
    (folder / "deeper.py").write_text('REASON = "no"\n')
    (folder / "unrelated.py").write_text("X = 1\n")
    private = folder / "datasets" / "private"
    (private / "one.py").write_text(DECLARATION)
    other = DECLARATION.replace("one", "two").replace("words.REASON", '"x"')
    (private / "two.py").write_text(other.replace("from definitions import words\n", ""))
    return tmp_path


@pytest.fixture
def ask(checkout: Path) -> Callable[[], dict[str, str]]:
    def run() -> dict[str, str]:
        import json

        answer = subprocess.run(
            [sys.executable, "-B", "-c", ASK],
            cwd=checkout,
            env=os.environ | {"PYTHONPATH": str(checkout)},
            check=True,
            capture_output=True,
            text=True,
        )
        return json.loads(answer.stdout)

    return run


def changed(before: dict[str, str], after: dict[str, str]) -> set[str]:
    return {name for name in before if before[name] != after[name]}


def append(path: Path, text: str = "\n# another line\n") -> None:
    path.write_text(path.read_text() + text)


@pytest.mark.parametrize(
    ("edited", "expected"),
    [
        ("definitions/datasets/private/one.py", {"private/one clean"}),
        ("definitions/words.py", {"private/one clean"}),
        ("definitions/deeper.py", {"private/one clean"}),
        ("definitions/unrelated.py", set()),
        ("factory/data/jats.py", set()),
        ("factory/errors.py", set()),
        ("factory/data/row_form.py", set()),
        ("factory/data/fetch/git.py", set()),
        ("factory/data/fetch/local.py", {"private/one raw", "private/two raw"}),
        ("factory/data/reader.py", {"private/one clean", "private/two clean"}),
        (
            "factory/data/pattern.py",
            {"private/one raw", "private/two raw", "private/one clean", "private/two clean"},
        ),
        ("factory/data/split.py", {"private/one split", "private/two split"}),
        (
            "factory/data/dedup/words.py",
            {"private/one deduplicated", "private/two deduplicated"},
        ),
    ],
)
def test_an_edit_changes_what_depends_on_it(checkout, ask, edited, expected):
    before = ask()
    append(checkout / edited)
    assert changed(before, ask()) == expected


def test_what_judges_or_divides_rows_does_not_count(checkout, ask):
    """A changed bound runs the check again (`check_form`) and cleans nothing."""
    file = checkout / "definitions" / "datasets" / "private" / "one.py"
    said = '    checks=[Check("a", print)],\n    split={"train": 0.5, "test": 0.5},\n'
    declared = DECLARATION.replace("Row, Sample", "Row, Sample, Check")
    file.write_text(declared.replace("    clean=clean,\n", f"    clean=clean,\n{said}"))
    before = ask()
    file.write_text(file.read_text().replace("print", "sorted").replace("0.5", "0.50"))
    assert changed(before, ask()) == set()


@pytest.mark.parametrize(
    ("old", "new", "counts"),
    [
        ("rows(1, 2)", "rows(1, 3)", False),
        ('"é"', '"ü"', False),
        ("tags={}", "owners=[]", False),
        ("  # why", "", False),
        ("return 1", "return 2", True),
        ("partial(f, 1)", "partial(f, 2)", True),
        ("f(checks=2)", "f(checks=3)", True),
        ("after = 1", "after = 2", True),
    ],
)
def test_only_what_decides_rows_counts_of_a_declaring_file(tree, old, new, counts):
    source = (
        "def f(checks=1):\n    return 1\n"
        'one: D = Dataset(\n    checks=[rows(1, 2), "é"],  # why\n    clean=partial(f, 1),'
        "\n    tags={},\n)\nafter = 1\nother = f(checks=2)\n"
    )
    assert source.count(old) == 1
    put(tree, start=source)
    before = version_of("definitions.start")
    put(tree, start=source.replace(old, new))
    assert (version_of("definitions.start") != before) == counts


@pytest.mark.parametrize(
    ("source", "counts"),
    [
        ("def clean(row):\n    return one.tags\none = Dataset(clean=clean, tags={})\n", True),
        ("one = Dataset(clean=lambda row: one.tags, tags={})\n", True),
        ("one: D = Dataset(tags={})\nSAID = str(one)\n", True),
        ("two = one = Dataset(tags={})\nprint(one)\n", True),
        ("def clean(row):\n    return row\none = Dataset(clean=clean, tags={})\n", False),
    ],
)
def test_a_dataset_that_its_file_reads_counts_whole(tree, source, counts):
    put(tree, start=source)
    before = version_of("definitions.start")
    put(tree, start=source.replace("{}", "{1: 2}"))
    assert (version_of("definitions.start") != before) == counts


def test_a_new_helper_counts_as_soon_as_it_is_imported(checkout, ask):
    before = ask()
    helper = checkout / "definitions" / "datasets" / "private" / "_helper.py"
    helper.write_text("Y = 1\n")
    assert changed(before, ask()) == set()
    append(
        checkout / "definitions" / "words.py",
        "\ndef later():\n    from definitions.datasets.private import _helper as h\n    return h\n",
    )
    with_helper = ask()
    helper.write_text("Y = 2\n")
    assert changed(with_helper, ask()) == {"private/one clean"}


def test_time_and_place_do_not_count(checkout, ask, tmp_path):
    before = ask()
    for file in checkout.rglob("*.py"):
        os.utime(file, (1, 1))
    assert ask() == before


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A `definitions` package that the functions under test are pointed at."""
    folder = tmp_path / "definitions"
    folder.mkdir()
    monkeypatch.setattr(subject, "_roots", lambda top: (folder,) if top == "definitions" else ())
    subject.forget()
    yield folder
    subject.forget()


def version_of(module: str) -> str:
    subject.forget()
    return subject.code_version(modules=[module])


def put(tree: Path, **modules: str) -> None:
    for name, content in modules.items():
        path = tree.joinpath(*name.split("__"))
        path.parent.mkdir(parents=True, exist_ok=True)
        (path / "__init__.py" if path.is_dir() else path.with_suffix(".py")).write_text(content)


def test_a_name_from_a_package_counts_for_where_it_comes_from(tree):
    (tree / "pack").mkdir()
    put(tree, start="from definitions.pack import A\n", pack__a="A = 1\n", pack__b="B = 1\n")
    put(tree, pack="from definitions.pack.a import A\nfrom definitions.pack.b import B\n")
    before = version_of("definitions.start")
    put(tree, pack__b="B = 2\n")
    assert version_of("definitions.start") == before
    put(tree, pack__a="A = 2\n")
    assert version_of("definitions.start") != before


def test_a_name_that_a_package_makes_itself_counts_for_the_package(tree):
    (tree / "pack").mkdir()
    put(tree, start="from definitions.pack import C\n", pack="C = 1\n")
    before = version_of("definitions.start")
    put(tree, pack="C = 2\n")
    assert version_of("definitions.start") != before


def test_everything_counts_where_everything_is_imported(tree):
    (tree / "pack").mkdir()
    put(tree, start="from definitions.pack import *\n", pack__b="B = 1\n")
    put(tree, pack="from definitions.pack.b import B\n")
    before = version_of("definitions.start")
    put(tree, pack__b="B = 2\n")
    assert version_of("definitions.start") != before


@pytest.mark.parametrize(
    "start",
    [
        "import definitions.pack.b\n",
        "import definitions.pack.b as other\n",
        "from definitions.pack import b\n",
        "from .pack import b\n",
        "from .pack.b import B\n",
        "def f():\n    from definitions.pack.b import B\n",
        "try:\n    import x\nexcept ImportError:\n    from definitions.pack import b\n",
        "match 1:\n    case 1:\n        from definitions.pack import b\n",
    ],
)
def test_every_form_of_import_is_followed(tree, start):
    (tree / "pack").mkdir()
    put(tree, start=start, pack="", pack__b="B = 1\n")
    before = version_of("definitions.start")
    put(tree, pack__b="B = 2\n")
    assert version_of("definitions.start") != before


def test_imports_for_the_type_checker_do_not_count(tree):
    put(
        tree,
        start="import typing\nif typing.TYPE_CHECKING:\n    from definitions import t\n",
        t="T = 1\n",
    )
    before = version_of("definitions.start")
    put(tree, t="T = 2\n")
    assert version_of("definitions.start") == before


def test_modules_that_import_each_other_end(tree):
    put(tree, start="from definitions import b\n", b="from definitions import start\n")
    assert version_of("definitions.start")


def test_the_version_of_a_parser_counts(tree, monkeypatch):
    put(tree, start="def f():\n    from lxml import etree\n")
    before = version_of("definitions.start")
    known = subject.importlib.metadata.version
    monkeypatch.setattr(
        subject.importlib.metadata,
        "version",
        lambda name: "0.0" if name == "lxml" else known(name),
    )
    assert version_of("definitions.start") != before


def test_packages_of_other_names_are_listed(monkeypatch):
    """A lookup among all installed packages takes half a second, at each load of the location."""
    provided = subject.importlib.metadata.packages_distributions()
    for package, names in subject.DISTRIBUTIONS.items():
        assert sorted(provided[package]) == list(names)
    asked: list[str] = []
    monkeypatch.setattr(
        subject.importlib.metadata, "packages_distributions", lambda: asked.append("all") or {}
    )
    subject.forget()
    for dataset in datasets().values():
        steps(dataset)
    assert asked == []
