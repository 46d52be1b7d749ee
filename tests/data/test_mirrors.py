"""The file of mirrors: what it may say, and what is told when it says something else."""

from pathlib import Path

import pytest

from factory.data.fetch.mirrors import mirror_of
from factory.errors import SettingsError, SourceError


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "mirrors.toml"
    path.write_text('[mirrors]\n"a==1" = "copies/a.whl"\n"https://x/y" = "/nowhere"\n')
    (tmp_path / "copies").mkdir()
    (tmp_path / "copies" / "a.whl").touch()
    return path


def test_paths_are_relative_to_the_file(file: Path) -> None:
    assert mirror_of("a==1", file) == file.parent / "copies" / "a.whl"
    assert mirror_of("b==1", file) is None
    assert mirror_of("a==1", None) is None


def test_a_copy_that_is_not_there_is_told(file: Path) -> None:
    with pytest.raises(SourceError, match="redirects https://x/y to /nowhere, which is not there"):
        mirror_of("https://x/y", file)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("[mirrors", "not TOML"),
        ("[mirror]\na = 'b'", "holds mirror; it may hold one table"),
        ("mirrors = 3", "something else than a table"),
        ("[mirrors]\na = 3", "the mirror of 'a' is not a path"),
    ],
)
def test_anything_else_is_refused(tmp_path: Path, content: str, message: str) -> None:
    path = tmp_path / "mirrors.toml"
    path.write_text(content)
    with pytest.raises(SettingsError, match=message):
        mirror_of("a==1", path)


def test_a_missing_file_is_told(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="cannot be read: No such file"):
        mirror_of("a==1", tmp_path / "nothing.toml")
