"""Results of checks, kept beside the version they are about.

`_checks.json` in the version's directory, replaced in one step. Whoever decides by checks (the
gate of a run, `promotion`) reads them here, by version: the latest result in Dagster may be about
another one.
"""

import uuid
from collections.abc import Mapping

from pydantic import BaseModel, Field, JsonValue, TypeAdapter, ValidationError

from factory.errors import DamagedVersion
from factory.namespace.durable import replace_file
from factory.namespace.integrity import CHECKS
from factory.namespace.layout import Place
from factory.namespace.version import Version


class CheckRecord(BaseModel, frozen=True, extra="forbid"):
    """What one check found."""

    passed: bool
    blocking: bool = Field(description="Whether a failure keeps the version from being current.")
    summary: str = Field(description="One line for people.")
    facts: dict[str, JsonValue] = Field(default_factory=dict, description="What it measured.")
    checked_at: str = Field(description="UTC, ISO 8601.")
    form: str = Field(
        default="",
        description="The form that the check had, its code and its bounds; see `check_form`.",
    )


_records = TypeAdapter(dict[str, CheckRecord])


def read_checks(version: Version) -> dict[str, CheckRecord]:
    """The newest result of each check of that version.

    Raises:
        DamagedVersion: the file of results is not one.
    """
    path = version.path / CHECKS
    try:
        return _records.validate_json(path.read_bytes())
    except FileNotFoundError:
        return {}
    except ValidationError:
        problem = f"{version}: {path} is not a table of check results. Run its checks again."
    raise DamagedVersion(problem)


def write_checks(place: Place, version: Version, results: Mapping[str, CheckRecord]) -> None:
    """Add results to those of the version; the caller holds the `recording` lock."""
    try:
        known = read_checks(version)
    except DamagedVersion:
        known = {}
    data = _records.dump_json(dict(sorted({**known, **results}.items())), indent=2) + b"\n"
    replace_file(version.path / CHECKS, data, place.scratch("checks", uuid.uuid4().hex))


def not_passed(version: Version) -> list[str]:
    """The checks that keep a version from being current, each with what is wrong."""
    records = read_checks(version)
    required = set(version.manifest.checks)
    required |= {name for name, record in records.items() if record.blocking}
    wrong: list[str] = []
    for name in sorted(required):
        if name not in records:
            wrong.append(f"{name} (not run)")
        elif not records[name].passed:
            wrong.append(f"{name} (failed)")
    return wrong
