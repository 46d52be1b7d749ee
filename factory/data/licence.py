"""Licences: from what a publisher writes to one SPDX id, or to none where it is not clear.

Creative Commons licences and dedications are recognized, by their address or by their name. CC BY
without a version has no SPDX id and is `LicenseRef-CC-BY`. Which of them a dataset takes is its
own decision.
"""

import re
from collections.abc import Iterable
from functools import lru_cache

UNVERSIONED_BY = "LicenseRef-CC-BY"

PERMISSIVE = re.compile(r"(CC-BY-\d\.\d|CC0-1\.0|CC-PDDC|CC-PDM-1\.0|LicenseRef-CC-BY)")
"""CC BY in any version, CC0 and the public domain: anyone may use, change and redistribute."""

_TERMS = {"BY": "attribution", "SA": "share-alike", "NC": "non-commercial", "ND": "no derivatives"}
"""The elements of a Creative Commons licence, as they stand in its SPDX id."""

_ADDRESS = re.compile(
    r"https?://(?:www\.)?creativecommons\.org/(?P<place>licenses|publicdomain)/"
    r"(?P<kind>[a-z-]+)(?:/(?P<version>\d\.\d))?",
    re.IGNORECASE,
)
_DEDICATIONS = {
    ("publicdomain", "zero"): "CC0-1.0",
    ("publicdomain", "mark"): "CC-PDM-1.0",
    ("licenses", "publicdomain"): "CC-PDDC",
    ("publicdomain", "publicdomain"): "CC-PDDC",
}
_RESTRICTED = re.compile(
    r"non-?\s?commercial|no-?\s?deriv|share-?\s?alike|\bBY-(NC|ND|SA)\b", re.IGNORECASE
)
_NAMED = (
    (re.compile(r"creative commons (cc0|zero)|\bcc0\b", re.IGNORECASE), "CC0-1.0"),
    (re.compile(r"creative commons public domain declaration", re.IGNORECASE), "CC-PDDC"),
)
_BY = re.compile(
    r"creative commons attribution(?: \(cc by\))?(?: license)?,?(?: version)? ?(\d\.\d)?",
    re.IGNORECASE,
)


@lru_cache(maxsize=1024)
def is_spdx(expression: str) -> bool:
    """Whether a text is an SPDX expression, with ids that the list of SPDX has or `LicenseRef-`."""
    from packaging.licenses import InvalidLicenseExpression, canonicalize_license_expression

    try:
        canonicalize_license_expression(expression)
    except InvalidLicenseExpression:
        return False
    return True


def terms(expression: str) -> tuple[str, ...]:
    """What the Creative Commons licences in an SPDX expression ask for, `share-alike` for instance.

    What other licences ask for has to be read in them.
    """
    ids = re.findall(r"\bCC-[A-Z-]+", expression)
    parts = {part for one in ids for part in one.split("-")}
    return tuple(words for part, words in _TERMS.items() if part in parts)


def spdx(addresses: Iterable[str], text: str) -> str | None:
    """The one licence that addresses and text speak of; None where they speak of none or two."""
    found = {one for address in addresses for one in _from_addresses(address)}
    found |= set(_from_addresses(text))
    named = _from_name(text)
    if not found and named:
        found = {named}
    if len(found) != 1:
        return None
    (one,) = found
    contradicted = _RESTRICTED.search(text) is not None and PERMISSIVE.fullmatch(one) is not None
    return None if contradicted else one


def _from_addresses(text: str) -> list[str]:
    return [_from_match(found) for found in _ADDRESS.finditer(text)]


def _from_match(found: re.Match[str]) -> str:
    place, kind, version = found["place"].lower(), found["kind"].lower(), found["version"]
    dedication = _DEDICATIONS.get((place, kind))
    if dedication:
        return dedication
    if version:
        return f"CC-{kind.upper()}-{version}"
    return f"LicenseRef-CC-{kind.upper()}"


def _from_name(text: str) -> str | None:
    flat = " ".join(text.split())
    for pattern, name in _NAMED:
        if pattern.search(flat):
            return name
    found = _BY.search(flat)
    if found is None or _RESTRICTED.search(flat):
        return None
    return f"CC-BY-{found[1]}" if found[1] else UNVERSIONED_BY
