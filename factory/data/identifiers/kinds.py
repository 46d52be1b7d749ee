"""What is looked for: the kinds of identifier, and a finding, which never holds the value found.

Kinds follow the identifiers of HIPAA's Safe Harbor. `recognizers` says how each is told in text,
`dicom` in DICOM headers; `thresholds` decides which block a delivery.
"""

from dataclasses import dataclass
from enum import StrEnum


class Kind(StrEnum):
    """A kind of identifier, or of place that can hold one and cannot be read."""

    EMAIL = "email"
    BIRTH_DATE = "birth date"
    RECORD_NUMBER = "record number"
    NATIONAL_ID = "national id"
    ACCOUNT_NUMBER = "account number"
    CARD_NUMBER = "card number"
    LICENCE_NUMBER = "licence number"
    DEVICE_NUMBER = "device number"
    NETWORK_ADDRESS = "network address"
    PERSONAL_URL = "personal url"
    PHONE = "phone"
    ADDRESS = "address"
    BURNED_IN = "burned-in annotation"
    PRIVATE_ELEMENT = "private element"
    UNREADABLE = "unreadable"
    NAME = "name"
    DATE = "date"
    AGE = "age over 89"
    URL = "url"
    UID = "uid"
    INSTITUTION = "institution"
    CHARACTERISTIC = "characteristic"
    DESCRIPTION = "description"

    @property
    def direct(self) -> bool:
        """Whether it points to a person by itself, so that it blocks a delivery."""
        return self not in _INDIRECT


_INDIRECT = frozenset(
    {
        Kind.NAME,
        Kind.DATE,
        Kind.AGE,
        Kind.URL,
        Kind.UID,
        Kind.INSTITUTION,
        Kind.CHARACTERISTIC,
        Kind.DESCRIPTION,
    }
)

SURROGATES = frozenset({Kind.NAME, Kind.DATE, Kind.AGE})
"""Kinds that are usually replaced by invented values, which look like real ones."""

PRIORITY = {kind: rank for rank, kind in enumerate(Kind)}
"""Which kind a passage is given that several recognizers claim with equal length."""


@dataclass(frozen=True, slots=True, order=True)
class Finding:
    """Something that looks like an identifier in a text: where, and of which kind."""

    start: int
    """First character, counted from 0."""

    end: int
    kind: Kind
    direct: bool


@dataclass(frozen=True, slots=True, order=True)
class HeaderFinding:
    """Something that looks like an identifier in a DICOM header."""

    tag: str
    """Where, as tags and item numbers: `(0040,0275)[0].(0032,1060)`."""

    kind: Kind
    direct: bool
    start: int | None = None
    """First character inside the element's value, where it was found by reading it."""

    end: int | None = None
