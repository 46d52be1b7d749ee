"""Files of a run's directory are opened without following, waiting for or swallowing anything."""

import os
from pathlib import Path

import pytest

from factory.errors import NamespaceError, RunFailed, SpecError, Superseded
from factory.namespace import Namespace, RunDirectory, run_files
from factory.namespace.attempts import Attempt, last_attempt
from factory.namespace.run_files import contents, lines, listed, opened
from factory.namespace.specs import last_spec
from factory.reports import Phase
from tests.namespace.planted import PLANTED, ends_soon

REFUSED = "is a link, or not of the kind that belongs there"


@pytest.fixture
def run(tmp_path: Path) -> RunDirectory:
    return Namespace(tmp_path).open_run("public", "run-1")


@pytest.fixture
def letter(run: RunDirectory) -> Path:
    letter = run.root / "private" / "letter.txt"
    letter.parent.mkdir()
    letter.write_text("secret")
    return letter


def test_a_file_is_read_whole_up_to_its_limit(run: RunDirectory) -> None:
    run.create("a/b/file", b"12345")
    assert contents(run.path, "a/b/file", 5) == b"12345"
    with pytest.raises(NamespaceError, match=r"a/b/file is larger than 4 bytes"):
        contents(run.path, "a/b/file", 4)


@pytest.mark.parametrize("name", ["file", "a/file", "file/file"])
def test_a_file_that_is_not_there_is_missing(run: RunDirectory, name: str) -> None:
    with pytest.raises(FileNotFoundError, match=f"{run.path / name.partition('/')[0]}"):
        contents(run.path, name)
    assert lines(run.path, name, Phase) == []


@pytest.mark.parametrize("plant", PLANTED)
@pytest.mark.parametrize("name", ["file", "a/file"])
def test_nothing_but_a_file_is_opened(
    run: RunDirectory, letter: Path, name: str, plant: str
) -> None:
    (run.path / "a").mkdir()
    PLANTED[plant](run.path / name, letter)
    for flags in (os.O_RDONLY, os.O_RDWR | os.O_APPEND | os.O_CREAT):
        with ends_soon(), pytest.raises(NamespaceError, match=f"{name} {REFUSED}"):
            opened(run.path, name, flags)
    with ends_soon(), pytest.raises(NamespaceError, match=REFUSED):
        lines(run.path, name, Phase)


def test_a_folder_or_a_device_is_no_file(run: RunDirectory) -> None:
    (run.path / "folder").mkdir()
    with pytest.raises(NamespaceError, match=f"folder {REFUSED}"):
        contents(run.path, "folder")
    with ends_soon(), pytest.raises(NamespaceError, match=f"zero {REFUSED}"):
        contents(Path("/dev"), "zero")


@pytest.mark.parametrize("link", ["a", "a/b"])
def test_no_folder_on_the_way_is_a_link(run: RunDirectory, letter: Path, link: str) -> None:
    (letter.parent / "b").mkdir()
    for folder in (letter.parent, letter.parent / "b"):
        (folder / "file").write_text("secret")
    (run.path / link).parent.mkdir(exist_ok=True)
    (run.path / link).symlink_to(letter.parent)
    with pytest.raises(NamespaceError, match=f"{link} {REFUSED}"):
        contents(run.path, f"{link}/file")
    with pytest.raises(NamespaceError, match=f"{link} {REFUSED}"):
        listed(run.path, link)


def test_nor_is_the_directory_itself(run: RunDirectory) -> None:
    run.create("file", b"1")
    link = run.path.with_name("run-2")
    link.symlink_to(run.path)
    with pytest.raises(NamespaceError, match=f"run-2 {REFUSED}"):
        contents(link, "file")


def test_a_refusal_leaves_nothing_open(run: RunDirectory, letter: Path) -> None:
    (run.path / "folder").mkdir()
    (run.path / "link").symlink_to(letter)
    before = list(Path("/proc/self/fd").iterdir())
    for name in ("link", "link/file", "folder", "none", "folder/none"):
        with pytest.raises((NamespaceError, FileNotFoundError)):
            contents(run.path, name)
    assert len(list(Path("/proc/self/fd").iterdir())) == len(before)


def test_names_are_listed_in_order(run: RunDirectory) -> None:
    for name in ("b", "a", "c"):
        run.create(f"folder/{name}", b"")
    assert listed(run.path, "folder") == ["a", "b", "c"]
    assert listed(run.path, "none") == []
    with pytest.raises(NamespaceError, match=f"folder/a {REFUSED}"):
        listed(run.path, "folder/a")


def test_lines_have_a_limit_too(run: RunDirectory, monkeypatch: pytest.MonkeyPatch) -> None:
    run.append("lines.jsonl", Phase(name="build", seconds=1).model_dump_json())
    assert len(lines(run.path, "lines.jsonl", Phase)) == 1
    monkeypatch.setattr(run_files, "LARGEST_LINES_BYTES", 10)
    with pytest.raises(NamespaceError, match=r"lines\.jsonl is larger than 10 bytes"):
        lines(run.path, "lines.jsonl", Phase)


def test_a_line_that_is_something_else_is_named(run: RunDirectory) -> None:
    phase = Phase(name="build", seconds=1)
    for line in (phase.model_dump_json(), "{", "{}"):
        run.append("lines.jsonl", line)
    with pytest.raises(RunFailed, match=r"lines\.jsonl, line 3, is no Phase"):
        lines(run.path, "lines.jsonl", Phase)


@pytest.mark.parametrize("plant", PLANTED)
def test_a_spec_that_is_none_is_not_read(run: RunDirectory, letter: Path, plant: str) -> None:
    PLANTED[plant](run.path / "spec.json", letter)
    with ends_soon(), pytest.raises(SpecError, match=REFUSED) as refused:
        last_spec(run)
    assert "secret" not in str(refused.value)


@pytest.mark.parametrize("plant", PLANTED)
def test_attempts_are_counted_in_a_folder_of_the_run(
    run: RunDirectory, letter: Path, plant: str
) -> None:
    (letter.parent / "0007.json").touch()
    PLANTED[plant](run.path / "attempts", letter.parent)
    with ends_soon(), pytest.raises(NamespaceError, match=f"attempts {REFUSED}"):
        last_attempt(run)


@pytest.mark.parametrize("plant", PLANTED)
def test_a_claim_that_is_none_has_no_holder(run: RunDirectory, letter: Path, plant: str) -> None:
    (run.path / "attempts").mkdir()
    PLANTED[plant](run.path / "attempts/0001.json", letter)
    with ends_soon(), pytest.raises(Superseded, match="on a machine that is not known"):
        Attempt(run, 1).claim()


@pytest.mark.parametrize("claim", [b"[]", b"{}", b"1", b"[" * 200_000, b"\xff"])
def test_nor_has_one_that_says_nothing(run: RunDirectory, claim: bytes) -> None:
    run.create("attempts/0001.json", claim)
    with pytest.raises(Superseded, match="on a machine that is not known"):
        Attempt(run, 1).claim()
