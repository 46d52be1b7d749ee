"""Which files of a source are kept, and what may not be missing among them."""

import os
from pathlib import Path

import pytest

from factory.data import raw
from factory.data.pattern import Rows
from factory.errors import SourceError


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "source"
    (folder / "more").mkdir(parents=True)
    (folder / "a.jsonl").write_text("{}")
    return folder


def test_a_link_to_nothing_and_a_pipe_are_not_left_out_in_silence(folder: Path) -> None:
    (folder / "more" / "b.jsonl").symlink_to("gone.jsonl")
    with pytest.raises(SourceError, match=r"more/b.jsonl is a link to nothing, a pipe or a device"):
        raw.wanted(folder, "**/*.jsonl")
    os.mkfifo(folder / "more" / "c.jsonl")
    with pytest.raises(SourceError, match=r"and not a file; so are 1 more"):
        raw.wanted(folder, "**/*.jsonl")


def test_what_nobody_asks_for_may_be_anything(folder: Path) -> None:
    (folder / "b.txt").symlink_to("gone.txt")
    os.mkfifo(folder / "pipe")
    assert raw.wanted(folder, "**/*.jsonl") == ["a.jsonl"]


def test_a_licence_that_is_a_link_to_nothing_is_as_none(folder: Path) -> None:
    """No row is made of it; what is licensed how stands in the declaration."""
    (folder / "LICENSE").symlink_to("gone")
    assert raw.wanted(folder, "*.jsonl") == ["a.jsonl"]
    with pytest.raises(SourceError, match="LICENSE is a link to nothing"):
        raw.wanted(folder, Rows("*.jsonl", beside=("LICENSE",)))


def test_a_name_that_is_not_utf8_is_told(folder: Path) -> None:
    (folder / os.fsdecode(b"caf\xe9.jsonl")).write_text("{}")
    assert raw.wanted(folder, "a.*") == ["a.jsonl"]
    with pytest.raises(SourceError, match=r"caf.udce9.jsonl' is no name in UTF-8"):
        raw.wanted(folder, "*.jsonl")


def test_a_folder_that_cannot_be_read_is_told(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "scandir", refusing(folder / "more"))
    with pytest.raises(SourceError, match=r"The folder .*more of the source cannot be read"):
        raw.wanted(folder, "**/*.jsonl")


def refusing(closed: Path):
    """`os.scandir` for an account that may not read a folder; this one may read all."""
    scandir = os.scandir

    def scan(path):
        if Path(path) == closed:
            raise PermissionError(13, "Permission denied", str(path))
        return scandir(path)

    return scan
