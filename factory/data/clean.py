"""Cleaning: every row through the declared function, and what to do when it raises.

Rows come from `reader`. A row becomes a sample, or is refused with a reason; none disappears.
"""

import json
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING

from factory.data import loss
from factory.data.dataset import Dataset
from factory.data.formats.faults import SURROGATE
from factory.data.row import Row
from factory.data.sample import ERROR, Rejected, Sample, canonical
from factory.errors import BadRow, StepError
from factory.keys import PrivateKey

if TYPE_CHECKING:
    from factory.data.row import Element

EXCERPT_CHARACTERS = 200
ERRORS_SHOWN = 5
MESSAGE_CHARACTERS = 200


@dataclass(frozen=True, slots=True)
class Refused:
    """A row that gave no sample."""

    file: str
    id: str
    reason: str
    excerpt: str | None
    """The beginning of the row's text; never of a private row."""

    def as_dict(self) -> dict[str, str | None]:
        """The row of the table `rejected`."""
        return asdict(self)

    @property
    def is_error(self) -> bool:
        """Whether `clean` raised on it."""
        return self.reason.startswith(ERROR)


def cleaned(rows: Iterable[Row], dataset: Dataset) -> Iterator[Sample | Refused]:
    """One outcome per row, in order.

    Raises:
        StepError: `clean` raised on more rows than the declaration allows.
    """
    errors: list[Refused] = []
    read = failed = 0
    counted = dataset.max_errors if dataset.max_errors >= 1 else None
    for row in rows:
        read += 1
        outcome = _outcome(row, dataset)
        if isinstance(outcome, Refused) and outcome.is_error:
            failed += 1
            if len(errors) < ERRORS_SHOWN:
                errors.append(outcome)
            if failed > (counted or 0) and (counted is not None or not dataset.max_errors):
                raise _too_many(dataset, failed, read, errors)
        yield outcome
    if failed > (counted if counted is not None else dataset.max_errors * read):
        raise _too_many(dataset, failed, read, errors)


def _outcome(row: Row, dataset: Dataset) -> Sample | Refused:
    if row.bad is not None:
        return _refused(row, row.bad, dataset)
    try:
        result = dataset.clean(row)
        if isinstance(result, Rejected):
            return _refused(row, result.reason, dataset)
        return _completed(result, dataset)
    except BadRow as error:
        return _refused(row, error.reason, dataset)
    except Exception as error:
        return _refused(row, _described(error, dataset), dataset)


def _completed(sample: object, dataset: Dataset) -> Sample:
    if not isinstance(sample, Sample):
        raise TypeError(f"clean returned {type(sample).__name__}, not Sample or Rejected")
    whole = replace(
        sample,
        group=sample.group or sample.id,
        source=dataset.key.path,
        license=sample.license or dataset.license,
    )
    try:
        canonical(whole.as_dict())
    except UnicodeEncodeError:
        raise BadRow(SURROGATE) from None
    return loss.filled(whole, dataset.loss)


def _described(error: Exception, dataset: Dataset) -> str:
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
    if row.xml is not None:
        text = "".join(_beginning(row.xml))
    elif row.json is not None:
        text = json.dumps(row.json, ensure_ascii=False)
    else:
        text = (row.data or b"")[: 4 * EXCERPT_CHARACTERS].decode(errors="replace")
    flat = " ".join(text.split())[:EXCERPT_CHARACTERS]
    return flat.encode(errors="replace").decode()


def _beginning(element: "Element") -> Iterator[str]:
    """Enough of an element's text, however long it is."""
    seen = 0
    for part in element.itertext():
        yield str(part)
        seen += len(part.strip())
        if seen > EXCERPT_CHARACTERS:
            return


def _too_many(dataset: Dataset, failed: int, read: int, errors: list[Refused]) -> StepError:
    allowed = (
        f"{dataset.max_errors:.0f}"
        if dataset.max_errors >= 1 or not dataset.max_errors
        else f"{dataset.max_errors:.2%} of the rows"
    )
    listed = "\n".join(f"  {one.id}: {one.reason}" for one in errors)
    return StepError(
        f"{dataset.key}: clean raised on {failed:,} of {read:,} rows, max_errors allows {allowed}. "
        "No version was written. Mend clean for these rows, return Rejected for them, "
        f"or raise max_errors:\n{listed}"
    )
