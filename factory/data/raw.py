"""Raw: the files of a source as published, taken from where they were fetched.

Kept are the files that the row pattern names, and the licence and readme files at the top, since
they say what may be done with the rest. What an installer or a repository has besides is left.
"""

import os
import re
import shutil
from collections.abc import Iterable, Iterator
from pathlib import Path

from factory.data.pattern import Pattern, Rows
from factory.data.progress import Ticker
from factory.errors import SourceError

ABOUT = re.compile(r"(licen[cs]e|copying|notice|readme)([-_.][^/]*)?", re.IGNORECASE)
"""File names that say what the files are and what may be done with them."""


def wanted(root: Path, rows: str | Rows) -> list[str]:
    """Paths of the files to keep.

    Raises:
        SourceError: no file fits the row pattern, or a link leads out of the source.
    """
    return wanted_of(list(_files(root)), rows)


def wanted_of(names: list[str], rows: str | Rows) -> list[str]:
    """Of these paths the ones to keep.

    Raises:
        SourceError: none fits the row pattern.
    """
    pattern = Pattern.parse(rows)
    if not pattern.matching(names):
        raise SourceError(
            f"No file of the source fits the row pattern {pattern.rows.pattern!r}. "
            f"It has {len(names):,} files{_sorts(names)}."
        )
    return kept(names, rows)


def kept(names: Iterable[str], rows: str | Rows) -> list[str]:
    """Of these paths those that the row pattern names, and those that say what the files are."""
    known = list(names)
    about = [name for name in known if "/" not in name and ABOUT.fullmatch(name)]
    return sorted({*Pattern.parse(rows).kept(known), *about})


def take(root: Path, names: list[str], target: Path, ticker: Ticker) -> None:
    """Copy files; a link becomes the file that it stands for."""
    for name in ticker.over(names):
        copy = target / name
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(root / name, copy)


def _files(root: Path) -> Iterator[str]:
    """Every file below a folder; a link to a folder is passed over, since its target is there."""
    inside = root.resolve()
    for folder, folders, names in os.walk(root):
        here = Path(folder)
        for name in (*folders, *names):
            path = here / name
            if path.is_symlink() and not path.resolve().is_relative_to(inside):
                raise SourceError(
                    f"{path.relative_to(root)} is a link that leads out of the source, "
                    f"to {path.readlink()}. Refused: the source would hold files of this machine."
                )
        for name in names:
            path = here / name
            if path.is_file():
                yield path.relative_to(root).as_posix()


def _sorts(names: list[str]) -> str:
    """The commonest endings, to see what the pattern should have been."""
    endings: dict[str, int] = {}
    for name in names:
        ending = Path(name).suffix or "no ending"
        endings[ending] = endings.get(ending, 0) + 1
    common = sorted(endings.items(), key=lambda item: (-item[1], item[0]))[:5]
    return ": " + ", ".join(f"{count:,} {ending}" for ending, count in common) if common else ""
