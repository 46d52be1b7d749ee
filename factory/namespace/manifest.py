"""The manifest of a version: what it holds, what it was made from, and what must hold before use.

`_manifest.json` in the version's directory. Written once, by `staging`; compared with the files,
and with its own hash, by `integrity`. Results of checks come later and are beside it, see `checks`.
"""

import hashlib
from pathlib import Path

from pydantic import BaseModel, Field, JsonValue, ValidationError

from factory.errors import DamagedVersion
from factory.keys import Classification

MANIFEST = "_manifest.json"
DIGEST = "_manifest.sha256"
"""Beside it, so that a change of it is seen. Whoever may write both can change both."""

STATED = (
    "key",
    "version",
    "input_id",
    "content_id",
    "classification",
    "licenses",
    "rows",
    "columns",
    "inputs",
    "parameters",
    "code",
    "checks",
    "limit",
    "partial",
)
"""Fields that two writers of one version must agree on. The others differ from run to run."""


class Provenance(BaseModel, frozen=True, extra="forbid"):
    """Who makes a version. Never part of its id: the same content keeps its name."""

    run_id: str = Field(description="Dagster run, or what else made it.")
    identity: str = Field(description="The person or service account.")
    image: str | None = Field(default=None, description="Image by digest; none for a working tree.")


class FileEntry(BaseModel, frozen=True, extra="forbid"):
    """One file as it was published."""

    size: int = Field(ge=0, description="Bytes.")
    sha256: str


class Manifest(BaseModel, frozen=True, extra="forbid"):
    """Everything that is known about a version when it is published."""

    key: str = Field(description="Asset key and directory: public/text/plos/raw.")
    version: str = Field(description="First 20 hex digits of sha256(input_id + content_id).")
    input_id: str = Field(description="Identifies input versions, step source and parameters.")
    content_id: str = Field(description="Identifies the canonical rows, never the file bytes.")
    classification: Classification
    licenses: list[str] = Field(description="Every licence found in the content.")
    files: dict[str, FileEntry] = Field(description="By path relative to the version's directory.")
    rows: int | None = Field(description="Rows or samples; none where the files have no rows.")
    columns: dict[str, str] = Field(description="Column names with their types.")
    inputs: dict[str, str] = Field(description="Version id of every input, by key.")
    parameters: dict[str, JsonValue] = Field(description="What the step was given beside inputs.")
    code: str = Field(description="sha256 of the sources that made it.")
    checks: list[str] = Field(description="Blocking checks to pass before it may be current.")
    limit: int | None = Field(description="Made from so many rows only: never current.")
    partial: bool = Field(default=False, description="Made from a partial mirror: not trained on.")
    facts: dict[str, JsonValue] = Field(description="What the step saw: rejected rows, lengths.")
    image: str | None = Field(description="Image digest; none for a working tree.")
    run_id: str
    identity: str
    created_at: str = Field(description="UTC, ISO 8601, when it was published.")

    def encoded(self) -> bytes:
        """The bytes of `_manifest.json`."""
        return (self.model_dump_json(indent=2) + "\n").encode()


def digest(encoded: bytes) -> bytes:
    """The bytes of `_manifest.sha256`, as `sha256sum` writes and checks them."""
    return f"{hashlib.sha256(encoded).hexdigest()}  {MANIFEST}\n".encode()


def is_as_published(directory: Path) -> bool:
    """Whether the manifest in that directory is the one that was written there."""
    try:
        return (directory / DIGEST).read_bytes() == digest((directory / MANIFEST).read_bytes())
    except OSError:
        return False


def version_id(input_id: str, content_id: str) -> str:
    """The id of the version with that content made from that input."""
    return hashlib.sha256((input_id + content_id).encode()).hexdigest()[:20]


def wrong_fields(error: ValidationError) -> str:
    """The names of the fields that pydantic refused, without their values, which may be private."""
    return ", ".join(sorted({str(at["loc"][0]) if at["loc"] else "JSON" for at in error.errors()}))


def read_manifest(directory: Path, name: str) -> Manifest:
    """The manifest in that directory; `name` is what the version is called in messages.

    Raises:
        DamagedVersion: it is missing, cut off, or not a manifest.
    """
    try:
        return Manifest.model_validate_json((directory / MANIFEST).read_bytes())
    except (FileNotFoundError, NotADirectoryError):
        problem = "is missing"
    except ValidationError as error:
        problem = f"cannot be read (wrong: {wrong_fields(error)})"
    raise DamagedVersion(
        f"{name}: {directory / MANIFEST} {problem}, so nothing says what the version holds. "
        "Materialize the key again; that replaces the version."
    )
