"""A delivered folder against its statement: exactly the listed files, byte for byte.

Verify a copy that nobody else can change, and scan and publish that copy: what is checked here can
be exchanged afterwards by whoever may write to the folder.
"""

import hashlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import NoReturn

from factory.data.identifiers.report import shown
from factory.data.identifiers.statement import NAME, Statement
from factory.errors import DeliveryRefused

SHOWN_PROBLEMS = 20


def verify_files(folder: Path, statement: Statement) -> list[str]:
    """The paths of a delivery, sorted, after reading every one of them.

    Raises:
        DeliveryRefused: a file is missing, is not listed, differs, or is a link or device.
    """
    there, problems = _compare(folder, statement)
    if problems:
        more = len(problems) - SHOWN_PROBLEMS
        raise DeliveryRefused(
            f"The delivery is not what its statement says: {'; '.join(problems[:SHOWN_PROBLEMS])}"
            + (f"; and {more:,} more" if more > 0 else "")
            + ". Nothing of it is read. Ask the partner for a complete delivery."
        )
    return sorted(there)


def _compare(folder: Path, statement: Statement) -> tuple[dict[str, Path], list[str]]:
    """The files that are there, and in what they differ from the statement."""
    there = {path.relative_to(folder).as_posix(): path for path in _walk(folder)}
    there.pop(NAME, None)
    odd = {name for name, path in there.items() if path.is_symlink() or not path.is_file()}
    problems = [
        _problem(name, number, "is a link or no regular file")
        for number, name in enumerate(sorted(odd), start=1)
    ]
    there = {name: path for name, path in there.items() if name not in odd}
    listed = {name: number for number, name in enumerate(statement.files, start=1)}
    for number, name in enumerate(sorted(there.keys() - listed.keys()), start=1):
        problems.append(_problem(name, number, f"is not listed in {NAME}"))
    for name, number in listed.items():
        if name in odd:
            continue
        if name not in there:
            problems.append(_problem(name, number, "is listed but missing"))
        elif _sha256(there[name]) != statement.files[name]:
            problems.append(_problem(name, number, "differs from the sha256 in the statement"))
    return there, problems


def _walk(folder: Path) -> Iterator[Path]:
    """Every entry that is not a folder, links to folders included and not followed."""
    for root, folders, files in os.walk(folder, onerror=_unread, followlinks=False):
        folders.sort()
        base = Path(root)
        yield from (base / name for name in folders if (base / name).is_symlink())
        yield from (base / name for name in sorted(files))


def _unread(error: OSError) -> NoReturn:
    raise DeliveryRefused(
        f"A folder of the delivery cannot be read ({error.strerror}), so it is not known whether "
        "it holds more than is listed. Nothing of the delivery is read."
    )


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _problem(name: str, number: int, what: str) -> str:
    return f"{shown(name, number)} {what}"
