"""A partner's delivery: copied where nobody else can change it, verified, scanned, then handed on.

What `take_in` returns is what may be published, and nothing more: rows in which the scan found a
direct identifier are taken out of the copy and stay in the drop zone. What the scan looks for is
in `factory.data.identifiers`, where the copy lies in `staging_area`. No error from here quotes a
delivery: they count and point.
"""

import hashlib
import os
import shutil
import stat
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from io import BufferedReader
from pathlib import Path
from typing import Any, NoReturn

from factory.data import raw
from factory.data.fetch import local
from factory.data.fetch.errand import Errand
from factory.data.formats.lines import byte_lines, can_lose_lines
from factory.data.identifiers.files import scan_files
from factory.data.identifiers.kinds import Kind
from factory.data.identifiers.report import ScanReport, place, shown
from factory.data.identifiers.statement import NAME, Statement, read_statement
from factory.data.identifiers.text import scan_text
from factory.data.identifiers.verify import verify_files
from factory.data.pattern import Pattern
from factory.data.progress import Ticker
from factory.data.sources import PartnerDrop
from factory.errors import DeliveryRefused, SourceError

SHOWN_POSITIONS = 50
"""Positions that an error lists. The others are found when the delivery is scanned again."""

type Rejected = dict[str, Any]
"""Where a row was taken out: `file`, `row`, `offset`, `kind`."""


@dataclass(frozen=True)
class Delivery:
    """What may be published of a delivery."""

    folder: Path
    names: list[str]
    rejected: list[Rejected]
    facts: dict[str, Any]

    burned_in_allowed: list[str]
    """Those of the names that the statement lists as images with nobody's name on them."""


def state(source: PartnerDrop, errand: Errand) -> str:
    """A hash of the delivery as it lies in the drop zone, its statement included.

    Raises:
        SourceError: the drop folder is not there or cannot be read.
    """
    return _hash(local.fetch(source, errand))


def take_in(source: PartnerDrop, errand: Errand, expected: str) -> Delivery:
    """Copy a delivery into `errand.scratch`, verify and scan the copy, take out what must stay.

    Raises:
        DeliveryRefused: it is incomplete, unsigned, not what its statement says, or holds more
            identifiers than the declaration allows.
        ScanFailed: a text could not be read for identifiers.
        SourceError: the folder changed since `expected` was its state.
    """
    copy = errand.scratch
    folder = local.fetch(source, errand)
    read_statement(folder)  # refused before a large delivery is copied
    _copy(folder, copy, Ticker(errand.say, "files copied"))
    if _hash(copy) != expected:
        raise SourceError(
            f"The drop folder {folder} changed while it was read. Is a delivery under way? "
            "Run the step again when it is finished."
        )
    statement = read_statement(copy)
    names = verify_files(copy, statement)
    report = scan_files(
        copy,
        source.rows,
        statement=statement,
        thresholds=source.thresholds,
        progress=errand.say,
    )
    if report.blocked:
        raise _blocked(report)
    left_out, taken_out = _take_out(report, names, copy, Pattern.parse(source.rows))
    digest = hashlib.sha256((copy / NAME).read_bytes()).hexdigest()
    (copy / NAME).unlink()  # a pattern may name it; it is no row, and was not scanned
    wanted = raw.wanted(copy, source.rows)
    return Delivery(
        folder=copy,
        names=wanted,
        rejected=_rejected(report),
        facts={
            "delivery": _about(statement, digest),
            "identifiers": _found(report)
            | {"rows_taken_out": taken_out, "files_left_out": len(left_out)},
        },
        burned_in_allowed=[name for name in wanted if name in set(statement.burned_in_allowed)],
    )


def _hash(folder: Path) -> str:
    """A hash of every path below a folder and of what is there. Links are named, not followed."""
    digest = hashlib.sha256()
    for number, path in enumerate(_entries(folder), start=1):
        content = b"no file"
        if _is_file(path):
            with _opened(folder, path, number) as file:
                content = hashlib.file_digest(file, "sha256").digest()
        digest.update(os.fsencode(path.relative_to(folder)) + b"\0" + content + b"\0")
    return digest.hexdigest()


def _copy(folder: Path, target: Path, ticker: Ticker) -> None:
    """Copy files byte for byte. A dead link stands in for anything else, so that it is refused."""
    for number, path in enumerate(ticker.over(_entries(folder)), start=1):
        copy = target / path.relative_to(folder)
        copy.parent.mkdir(parents=True, exist_ok=True)
        if not _is_file(path):
            copy.symlink_to("no-file")
            continue
        with _opened(folder, path, number) as file, copy.open("xb") as written:
            shutil.copyfileobj(file, written, 2**20)


def _entries(folder: Path) -> list[Path]:
    """Every entry that is not a folder, links to folders included, in one order everywhere."""
    found: list[Path] = []
    for root, folders, files in os.walk(folder, onerror=_unread, followlinks=False):
        base = Path(root)
        found += [base / name for name in folders if (base / name).is_symlink()]
        found += [base / name for name in files]
    return sorted(found, key=os.fsencode)


def _unread(error: OSError) -> NoReturn:
    """The name of a folder may name a person."""
    raise SourceError(
        f"A folder of the delivery cannot be read ({error.strerror}), so what is in it would be "
        "missing. May this account read it?"
    )


def _is_file(path: Path) -> bool:
    try:
        return stat.S_ISREG(path.lstat().st_mode)
    except OSError:
        return False


@contextmanager
def _opened(folder: Path, path: Path, number: int) -> Generator[BufferedReader]:
    """A file that is no link, also if somebody puts one in its place just now."""
    problem = ""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError as error:
        problem = error.strerror or type(error).__name__
    else:
        with os.fdopen(descriptor, "rb") as file:
            yield file
        return
    name = shown(path.relative_to(folder).as_posix(), number)
    raise SourceError(
        f"{name} of the drop folder {folder} cannot be read ({problem}). Is a delivery under way, "
        "and may this account read it?"
    )


def _blocked(report: ScanReport) -> DeliveryRefused:
    too_many: dict[Kind, int] = {}
    for kind, count in sorted(report.counted.items()):
        limit = report.thresholds.limit(kind, surrogates=report.surrogates)
        if limit is not None and count > limit:
            too_many[kind] = count
    found = [one for one in report.positions if one.kind in too_many]
    listed = [f"  {one.kind}: {place(one)}" for one in found[:SHOWN_POSITIONS]]
    more = sum(too_many.values()) - len(listed)
    listed += [f"  and {more:,} more"] if more > 0 else []
    counts = ", ".join(f"{count:,} x {kind}" for kind, count in too_many.items())
    return _refusal(
        "The delivery holds identifiers, so nothing of it is published: "
        f"{'; '.join(report.why)}.\n"
        + "\n".join(listed)
        + "\nLook at these places in the drop zone. Either the partner delivers again, or data "
        "governance raises a threshold in the declaration; see docs/private-data.md.",
        f"The scan for identifiers blocked the delivery: {counts}. Of {report.rows:,} rows, "
        f"{len(report.rejected):,} hold a direct one.",
    )


def _refusal(message: str, outside: str) -> DeliveryRefused:
    refused = DeliveryRefused(message)
    refused.outside = outside
    return refused


def _take_out(
    report: ScanReport, names: list[str], copy: Path, pattern: Pattern
) -> tuple[list[str], int]:
    """Remove rows with a direct identifier from the copy: files left out, rows taken out.

    A line is emptied and not removed, so that every other row keeps its number. A finding in a
    file that is no table of rows leaves the whole file out.
    """
    called = {shown(name, number): name for number, name in enumerate(names, start=1)}
    rows: dict[str, set[int | None]] = {}
    for label, row in report.rejected:
        rows.setdefault(called[label], set()).add(row)
    matched = set(pattern.matching(names))
    left_out = [name for name, found in rows.items() if None in found or name not in matched]
    inside = {name: found for name, found in rows.items() if name not in left_out}
    fixed = sum(not can_lose_lines(copy / name, pattern) for name in inside)
    if fixed:
        raise _refusal(
            f"Rows with identifiers lie inside {fixed:,} files out of which a row cannot be taken "
            "(a JSON list, an XML document), so nothing of the delivery is published. Ask for JSON "
            "lines, or for a delivery without these rows.\n"
            + "\n".join(f"  {place(one)}" for one in report.positions[:SHOWN_POSITIONS]),
            f"{fixed:,} files hold rows with identifiers that cannot be taken out of their format.",
        )
    for name in left_out:
        (copy / name).unlink()
    for name, found in inside.items():
        _empty_lines(copy / name, found)
    return left_out, sum(len(found) for found in inside.values())


def _empty_lines(path: Path, numbers: set[int | None]) -> None:
    without = path.with_name(f"{path.name}.without")
    with path.open("rb") as lines, without.open("xb") as kept:
        for number, line in enumerate(byte_lines(lines), start=1):
            kept.write(line[len(line.rstrip(b"\r\n")) :] if number in numbers else line)
    without.replace(path)


def _rejected(report: ScanReport) -> list[Rejected]:
    """Every direct finding; a rejected row whose findings were too many to keep has no kind."""
    found = [one for one in report.positions if one.direct]
    listed = {(one.file, one.row) for one in found}
    rows = [
        {"file": one.file, "row": one.row, "offset": one.offset, "kind": str(one.kind)}
        for one in found
    ]
    rows += [
        {"file": file, "row": row, "offset": None, "kind": None}
        for file, row in report.rejected
        if (file, row) not in listed
    ]
    return rows


def _about(statement: Statement, digest: str) -> dict[str, Any]:
    """What a version says of its delivery. Who signed stays in the drop zone."""
    how = statement.pseudonymization
    return {
        "sha256": digest,
        "partner": _plain(statement.partner),
        "agreement": _plain(statement.agreement),
        "pseudonymized": how.date.isoformat(),
        "surrogates": how.surrogates,
    }


def _plain(words: str) -> str:
    """Words of the statement, which is not scanned with the files."""
    return "(withheld)" if any(one.direct for one in scan_text(words)) else words


def _found(report: ScanReport) -> dict[str, Any]:
    facts = report.facts()
    return {name: facts[name] for name in facts if name not in ("blocked", "why")}
