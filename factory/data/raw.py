"""Raw: the files of a source as published, taken from where they were fetched.

Kept are the files that the row pattern names, and the licence and readme files at the top, since
they say what may be done with the rest. What an installer or a repository has besides is left.
"""

import os
import re
import shutil
from collections.abc import Iterable
from pathlib import Path
from typing import NoReturn

from factory.data.pattern import Pattern, Rows
from factory.data.progress import Ticker
from factory.errors import SourceError

ABOUT = re.compile(r"(licen[cs]e|copying|notice|readme)([-_.][^/]*)?", re.IGNORECASE)
"""File names that say what the files are and what may be done with them."""


def wanted(root: Path, rows: str | Rows) -> list[str]:
    """Paths of the files to keep.

    Raises:
        SourceError: no file fits the row pattern, a link leads out of the source, or what fits is
            no file.
    """
    names, odd = _entries(root)
    if missing := Pattern.parse(rows).kept(odd):  # a licence that is a link to nothing is not there
        raise SourceError(
            f"{missing[0]} is a link to nothing, a pipe or a device, and not a file"
            f"{f'; so are {len(missing) - 1:,} more' if missing[1:] else ''}. Refused: the source "
            "is not whole without what they stand for. Fetch or deliver it again."
        )
    found = wanted_of(names, rows)
    odd = [name for name in found if not _is_text(name)]
    if odd:
        raise SourceError(
            f"{odd[0]!r} is no name in UTF-8, the first of {len(odd):,} such names. A "
            "manifest could not list it. Have the files renamed where they come from."
        )
    return found


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


def _entries(root: Path) -> tuple[list[str], list[str]]:
    """Files below a folder, and what is neither file nor folder.

    A link to a folder is passed over, since its target is there.
    """
    inside = root.resolve()
    files: list[str] = []
    odd: list[str] = []
    for folder, folders, names in os.walk(root, onerror=_unread):
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
            (files if path.is_file() else odd).append(path.relative_to(root).as_posix())
    return files, odd


def _is_text(name: str) -> bool:
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True


def _unread(error: OSError) -> NoReturn:
    raise SourceError(
        f"The folder {error.filename} of the source cannot be read ({error.strerror}), so what is "
        "in it would be missing. May this account read it?"
    )


def _sorts(names: list[str]) -> str:
    """The commonest endings, to see what the pattern should have been."""
    endings: dict[str, int] = {}
    for name in names:
        ending = Path(name).suffix or "no ending"
        endings[ending] = endings.get(ending, 0) + 1
    common = sorted(endings.items(), key=lambda item: (-item[1], item[0]))[:5]
    return ": " + ", ".join(f"{count:,} {ending}" for ending, count in common) if common else ""
