"""`delivery.json`: what a partner delivers, under which agreement, and how it was pseudonymized.

Whether the folder holds exactly these files is checked in `verify`. A signature here is the name
of the person who answers for the statement; it is no cryptographic one, and who may put files into
the drop zone is decided by its permissions.
"""

import datetime as dt
import json
import re
from collections import Counter
from collections.abc import Mapping
from pathlib import Path, PurePosixPath
from typing import Annotated, Any, cast

from pydantic import (
    AfterValidator,
    BaseModel,
    Field,
    StringConstraints,
    ValidationError,
    field_validator,
    model_validator,
)

from factory.errors import DeliveryRefused

NAME = "delivery.json"
MAXIMUM_BYTES = 256 * 2**20
EARLIEST = dt.date(1990, 1, 1)


def _said(value: str) -> str:
    if not re.search(r"\w", value):
        raise ValueError("says nothing")
    return value


type Words = Annotated[
    str,
    StringConstraints(strip_whitespace=True, min_length=1, max_length=500),
    AfterValidator(_said),
]
type Digest = Annotated[str, StringConstraints(pattern="^[0-9a-f]{64}$")]


class Pseudonymization(BaseModel, frozen=True, extra="forbid", hide_input_in_errors=True):
    """How identities were removed, and who answers for it."""

    method: Words = Field(description="What was done, in a sentence: removed, replaced, shifted.")
    tool: Words = Field(description="The program that did it.")
    tool_version: Words = Field(description="Its version.")
    date: dt.date = Field(description="When it ran.")
    signed_by: Words = Field(description="The person who answers for it.")
    surrogates: bool = Field(
        description="Whether invented names and dates stand in for the real ones. Without them "
        "every name or date that is found is a real one and blocks."
    )
    pseudonym_prefix: (
        Annotated[str, StringConstraints(pattern="^[A-Za-z][A-Za-z0-9_-]{2,19}$")] | None
    ) = Field(
        default=None,
        description="How every pseudonym of a patient begins, so that a labelled one is not "
        "taken for a record number: a letter and at least two more characters.",
    )

    @field_validator("date")
    @classmethod
    def _can_be(cls, value: dt.date) -> dt.date:
        if value > dt.datetime.now(dt.UTC).date():
            raise ValueError("lies in the future")
        if value < EARLIEST:
            raise ValueError(f"lies before {EARLIEST.year}, so it is a slip or no date at all")
        return value

    @field_validator("pseudonym_prefix")
    @classmethod
    def _excuses_no_real_number(cls, value: str | None) -> str | None:
        from factory.data.identifiers.rules import names_a_number  # not above: it takes its time

        if value is not None and names_a_number(value):
            raise ValueError(
                "is a word that real numbers are written with, so those would be excused as well; "
                "pseudonyms need a beginning of their own"
            )
        return value


class Statement(BaseModel, frozen=True, extra="forbid", hide_input_in_errors=True):
    """A delivery as its partner describes it."""

    partner: Words = Field(description="Who delivers.")
    agreement: Words = Field(description="The contract or approval that allows it.")
    files: Mapping[str, Digest] = Field(
        min_length=1, description="Every file of the delivery, by path, with its sha256."
    )
    pseudonymization: Pseudonymization = Field(description="How identities were removed.")
    burned_in_allowed: list[str] = Field(
        default_factory=list[str],
        description="Images that were looked at and show no identity, though their header says or "
        "suggests that something is written on them.",
    )

    @field_validator("files")
    @classmethod
    def _plain_paths(cls, value: Mapping[str, Digest]) -> Mapping[str, Digest]:
        bad = [number for number, path in enumerate(value, start=1) if not _plain_path(path)]
        if bad:
            raise ValueError(
                f"entries {bad[:5]} are no plain relative paths with forward slashes, "
                f"or are {NAME} itself"
            )
        return value

    @model_validator(mode="after")
    def _lists_what_it_allows(self) -> "Statement":
        unknown = sum(path not in self.files for path in self.burned_in_allowed)
        if unknown:
            raise ValueError(f"burned_in_allowed has {unknown} entries that files does not list")
        return self


def read_statement(folder: Path) -> Statement:
    """The statement of a delivery.

    Raises:
        DeliveryRefused: it is missing, unsigned or not a statement. What is wrong is named by
            field; what stands in the field is not quoted.
    """
    path = folder / NAME
    if path.is_symlink() or not path.is_file():
        raise DeliveryRefused(
            f"The delivery has no {NAME}, so nothing says what it is and how it was "
            "pseudonymized. Ask the partner for one; docs/private-data.md has an example."
        )
    if path.stat().st_size > MAXIMUM_BYTES:
        raise DeliveryRefused(f"{NAME} is larger than {MAXIMUM_BYTES:,} bytes; it is not read.")
    value, problem = _parse(path.read_bytes())
    if problem:
        raise DeliveryRefused(f"{NAME}: {problem}. The delivery is not read.")
    statement, problems = _validate(value)
    if statement is None:
        raise DeliveryRefused(
            f"{NAME} is no complete, signed statement: {'; '.join(problems)}. The delivery is not "
            "read. Ask the partner to correct it; docs/private-data.md has an example."
        )
    return statement


def _parse(data: bytes) -> tuple[Any, str]:
    try:
        return json.loads(data.decode("utf-8-sig"), object_pairs_hook=_without_repeats), ""
    except UnicodeDecodeError as error:
        return None, f"not UTF-8 at byte {error.start}"
    except json.JSONDecodeError as error:
        return None, f"not JSON at line {error.lineno}, column {error.colno}"
    except _Repeated as error:
        return None, f"a name stands {error.times} times in one object; which one counts is unclear"
    except (ValueError, RecursionError):
        return None, "not JSON that can be read"


class _Repeated(ValueError):
    def __init__(self, times: int) -> None:
        super().__init__(times)
        self.times = times


def _without_repeats(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Of a file listed twice, `json` would keep the last hash in silence."""
    counts = Counter(name for name, _ in pairs)
    if len(counts) != len(pairs):
        raise _Repeated(max(counts.values()))
    return dict(pairs)


def _validate(value: Any) -> tuple[Statement | None, list[str]]:
    """A statement, or what is wrong with it: field and rule, without what was written there."""
    try:
        return Statement.model_validate_json(json.dumps(value), strict=True), []
    except ValidationError as error:
        problems: list[str] = []
        for one in error.errors(include_input=False, include_url=False, include_context=False):
            place = ".".join(str(part) for part in one["loc"][:2]) if one["loc"] else ""
            if one["loc"][:1] == ("files",) and len(one["loc"]) > 1:
                names = list(cast(dict[str, Any], value["files"]))
                place = f"files, entry {names.index(str(one['loc'][1])) + 1}"
            if one["type"] == "extra_forbidden":
                place = ".".join([*(str(part) for part in one["loc"][:-1]), "a field"])
            problems.append(f"{place}: {one['msg']}".removeprefix(": "))
        return None, problems[:20]


def _plain_path(text: str) -> bool:
    path = PurePosixPath(text)
    return (
        bool(text)
        and text == str(path)
        and not path.is_absolute()
        and not {"..", "."} & set(path.parts)
        and "\\" not in text
        and "\0" not in text
        and text != NAME
    )
