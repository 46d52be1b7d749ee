"""Cleaning: every row through the declared function, and what to do when it raises.

Rows come from `reader`. A row becomes a sample, or is refused with a reason; none disappears.
"""

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING, Any

from factory.data import loss
from factory.data.dataset import Dataset
from factory.data.formats.faults import NUL, SURROGATE, fault
from factory.data.row import Row
from factory.data.sample import ERROR, Rejected, Sample, canonical
from factory.errors import BadRow, StepError, is_interruption
from factory.keys import PrivateKey

if TYPE_CHECKING:
    from lxml import etree

EXCERPT_CHARACTERS = 200
ERRORS_SHOWN = 5
MESSAGE_CHARACTERS = 200


NUL_IN_JSON = b"\\u0000"


@dataclass(slots=True)
class Kept:
    """A sample in the forms that are needed of it, each made once."""

    sample: Sample
    """As `clean` gave it, with the turns that carry loss filled in."""

    plain: dict[str, Any]
    """As JSON has it, with the fields that the step fills."""

    line: bytes
    """In its canonical form."""


@dataclass(slots=True)
class Refused:
    """A row that gave no sample."""

    file: str
    id: str
    reason: str
    excerpt: str | None
    """The beginning of the row's text; never of a private row."""

    def as_dict(self) -> dict[str, str | None]:
        """The row of the table `rejected`."""
        return {"file": self.file, "id": self.id, "reason": self.reason, "excerpt": self.excerpt}

    @property
    def is_error(self) -> bool:
        """Whether `clean` raised on it."""
        return self.reason.startswith(ERROR)


@dataclass
class Errors:
    """Rows on which `clean` raised, of one shard or of several."""

    read: int = 0
    """All rows, those without an error included."""

    failed: int = 0
    shown: list[str] = field(default_factory=list[str])
    """The first ones, each with its reason."""

    def count(self, outcome: Kept | Refused) -> None:
        """Count the outcome of a row in."""
        self.read += 1
        if isinstance(outcome, Refused) and outcome.is_error:
            self.failed += 1
            if len(self.shown) < ERRORS_SHOWN:
                self.shown.append(f"{outcome.id}: {outcome.reason}")

    def merge(self, other: "Errors") -> None:
        """Count in what was seen in a later shard."""
        self.read += other.read
        self.failed += other.failed
        self.shown = [*self.shown, *other.shown][:ERRORS_SHOWN]

    def refuse(self, dataset: Dataset, *, finally_: bool) -> None:
        """Stop where there are too many; before the end that is known only of a fixed number.

        Raises:
            StepError: `clean` raised on more rows than the declaration allows.
        """
        counted = dataset.max_errors >= 1 or not dataset.max_errors
        if not counted and not finally_:
            return
        if self.failed > (dataset.max_errors if counted else dataset.max_errors * self.read):
            raise _too_many(dataset, self)


def cleaned(rows: Iterable[Row], dataset: Dataset, errors: Errors) -> Iterator[Kept | Refused]:
    """One outcome per row, in order; counts those on which `clean` raised.

    Raises:
        StepError: `clean` raised on more rows than the declaration allows, whatever comes.
    """
    for row in rows:
        outcome = _outcome(row, dataset)
        errors.count(outcome)
        errors.refuse(dataset, finally_=False)
        yield outcome


def _outcome(row: Row, dataset: Dataset) -> Kept | Refused:
    if row.bad is not None:
        return _refused(row, row.bad, dataset)
    try:
        result = dataset.clean(row)
        if isinstance(result, Rejected):
            return _refused(row, result.reason, dataset)
        return _completed(result, dataset)
    except BadRow as error:
        return _refused(row, error.reason, dataset)
    except BaseException as error:
        if is_interruption(error):
            raise
        return _refused(row, _described(error, dataset), dataset)


def _completed(sample: object, dataset: Dataset) -> Kept:
    if not isinstance(sample, Sample):
        raise TypeError(f"clean returned {type(sample).__name__}, not Sample or Rejected")
    _check_images(sample, dataset)
    filled = loss.filled(sample, dataset.loss)
    plain = filled.as_dict() | {
        "group": sample.group or sample.id,
        "source": dataset.key.path,
        "license": sample.license or dataset.license,
    }
    try:
        line = canonical(plain)
    except UnicodeEncodeError:
        raise BadRow(SURROGATE) from None
    if NUL_IN_JSON in line and fault(plain):  # which may be those six characters as text
        raise BadRow(NUL)
    return Kept(filled, plain, line)


def _check_images(sample: Sample, dataset: Dataset) -> None:
    """Every image that the content names is there, and the dataset says that it has some."""
    if not sample.pictures:
        return
    if dataset.images is None:
        raise BadRow("an image in a dataset that declares none")
    if any(one.image not in sample.images for one in sample.pictures):
        raise BadRow("an image that is named and not given")


def _described(error: BaseException, dataset: Dataset) -> str:
    name = f"{ERROR}{type(error).__name__}"
    if isinstance(dataset.key, PrivateKey):
        return name  # a message may quote the row
    message = " ".join(str(error).split())[:MESSAGE_CHARACTERS]
    shown = f"{name}: {message}" if message else name
    return shown.encode(errors="replace").decode()


def _refused(row: Row, reason: str, dataset: Dataset) -> Refused:
    excerpt = None if isinstance(dataset.key, PrivateKey) else _excerpt(row)
    return Refused(row.file, row.id, reason, excerpt)


def _excerpt(row: Row) -> str:
    if row.fragment is not None and (found := row.fragment.beginning(EXCERPT_CHARACTERS)):
        return found[:EXCERPT_CHARACTERS]
    if row.is_xml:
        text = str(_beginning()(row.element))
    elif row.json is not None:
        text = json.dumps(row.json, ensure_ascii=False, default=_named)  # Parquet has dates, bytes
    elif row.plain is not None:
        text = row.plain[: 4 * EXCERPT_CHARACTERS]
    else:
        text = (row.data or b"")[: 4 * EXCERPT_CHARACTERS].decode(errors="replace")
    flat = " ".join(text.split())[:EXCERPT_CHARACTERS]
    return flat.encode(errors="replace").decode()


@cache
def _beginning() -> "etree.XPath":
    """By XPath, as walking over the texts of an element takes as long as parsing them did."""
    from lxml import etree

    return etree.XPath(f"substring(normalize-space(), 1, {4 * EXCERPT_CHARACTERS})")


def _named(value: object) -> str:
    return f"<{type(value).__name__}>"


def _too_many(dataset: Dataset, errors: Errors) -> StepError:
    allowed = (
        f"{dataset.max_errors:.0f}"
        if dataset.max_errors >= 1 or not dataset.max_errors
        else f"{dataset.max_errors:.2%} of the rows"
    )
    listed = "\n".join(f"  {one}" for one in errors.shown)
    return StepError(
        f"{dataset.key}: clean raised on {errors.failed:,} of {errors.read:,} rows, "
        f"max_errors allows {allowed}. "
        "No version was written. Mend clean for these rows, return Rejected for them, "
        f"or raise max_errors:\n{listed}"
    )
