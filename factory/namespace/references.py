"""References: what names a version, so that `retention` must not remove it.

One collector for each place in which a version can be named; a new place is a new line in
`COLLECTORS`. Files are searched for version ids as text, whatever their format, so that one that a
later release writes still protects what it names. A file that cannot be read is an error: nobody
can say then what it needs.
"""

import contextlib
import re
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from pydantic_core import from_json

from factory.errors import DamagedVersion, NamespaceError
from factory.namespace import pins
from factory.namespace.promotion import read_current
from factory.namespace.run_files import contents
from factory.namespace.runs import CLASSIFICATIONS, RUNS
from factory.namespace.staging import INPUTS
from factory.namespace.sweep import places

RECORDS = ("record.json", "record.*.json")
"""In a run's directory: of its first attempt, and of later ones."""

LOCKS = ("mix.lock", "mix.*.lock", "*.lock.json")

_ID = re.compile(r"\b[0-9a-f]{20}\b")


@dataclass(frozen=True)
class Reference:
    """One version that something names."""

    version: str
    by: str
    """What names it, for people."""

    again: bool = True
    """Whether it may be used anew, for which everything that it was made from must be there. A run
    record only says what was used once."""


@dataclass(frozen=True)
class Searched:
    """Where references are looked for."""

    root: Path
    folders: Sequence[Path] = ()
    """Outside the namespace: definitions, with the locks of mixes."""

    now: float = field(default_factory=time.time)


def collect(searched: Searched) -> list[Reference]:
    """Every reference to a version.

    Raises:
        NamespaceError: something that may hold references cannot be read.
    """
    return [reference for collector in COLLECTORS for reference in collector(searched)]


def _current(searched: Searched) -> Iterator[Reference]:
    for place in places(searched.root, everything=True):
        with contextlib.suppress(DamagedVersion):  # what it names is gone already
            if (version := read_current(place)) is not None:
                yield Reference(version.id, "current")


def _being_read(searched: Searched) -> Iterator[Reference]:
    """What writers read now, and writers that died and were not swept yet."""
    for place in places(searched.root, everything=True):
        for file in _found(place.versions, f".staging-*/{INPUTS}"):
            yield from _named_in(file, "read by a step under way")


def _pins(searched: Searched) -> Iterator[Reference]:
    for classification in CLASSIFICATIONS:
        for file in _found(pins.directory(searched.root, classification), "*.json"):
            if pins.holds(file, searched.now):
                yield from _named_in(file, f"launch {file.stem}", again=False)


def _runs(searched: Searched) -> Iterator[Reference]:
    for classification in CLASSIFICATIONS:
        for run in _listed(searched.root / classification / RUNS):
            if not run.is_dir() or run.name.startswith("."):
                continue
            yield from _named_by(run)


def _named_by(run: Path) -> Iterator[Reference]:
    """What a run's own files name, whatever its pods have made of them."""
    for file in (file for name in RECORDS for file in _found(run, name)):
        if (data := _of_run(file)) is not None:
            _require_json(file, data)
            yield from _named(data, f"run {run.name}", again=False)
    for file in (file for name in LOCKS for file in _found(run, name)):
        if (data := _of_run(file)) is not None:
            yield from _named(data, f"lock {file}")


def _definitions(searched: Searched) -> Iterator[Reference]:
    for folder in searched.folders:
        if not folder.is_dir():
            raise NamespaceError(
                f"{folder} is not a folder, so nobody can say which versions its locks name. "
                "Give the folder of definitions that the locks of mixes are in."
            )
        for file in (file for name in LOCKS for file in _found(folder, f"**/{name}")):
            yield from _named_in(file, f"lock {file}")


COLLECTORS: tuple[Callable[[Searched], Iterator[Reference]], ...] = (
    _current,
    _being_read,
    _pins,
    _runs,
    _definitions,
)


def _named_in(file: Path, by: str, *, again: bool = True) -> Iterator[Reference]:
    try:
        data = file.read_bytes()
    except FileNotFoundError:
        return  # its writer has finished
    except OSError as error:
        raise _unreadable(file, error) from error
    yield from _named(data, by, again=again)


def _named(data: bytes, by: str, *, again: bool = True) -> Iterator[Reference]:
    for version in sorted(set(_ID.findall(data.decode(errors="replace")))):
        yield Reference(version, by, again)


def _of_run(file: Path) -> bytes | None:
    try:
        return contents(file.parent.resolve(), file.name)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise _unreadable(file, error) from error


def _require_json(file: Path, data: bytes) -> None:
    try:
        from_json(data)
    except ValueError:
        raise NamespaceError(
            f"{file} is cut off or damaged, so nobody can say which versions that run used, and "
            "nothing is removed. Restore it, or remove the run's directory if the run is no loss."
        ) from None


def _found(folder: Path, pattern: str) -> list[Path]:
    """Files of a pattern; unlike `glob` alone, a folder that may not be listed is an error."""
    _listed(folder)
    return sorted(folder.glob(pattern))


def _listed(folder: Path) -> list[Path]:
    try:
        return sorted(folder.iterdir())
    except (FileNotFoundError, NotADirectoryError):
        return []
    except OSError as error:
        raise _unreadable(folder, error) from error


def _unreadable(path: Path, error: OSError) -> NamespaceError:
    return NamespaceError(
        f"{path} cannot be read ({error.strerror}), so nobody can say which versions it needs, and "
        "nothing is removed. Use an account that may read both trees."
    )
