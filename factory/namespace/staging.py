"""Writing a version: stage beside the versions, sync, rename into place.

Until the last rename nothing of a write can be seen under its final name, so a crash leaves the
old versions and a staging directory that `sweep` removes. What makes a version current is in
`promotion`.
"""

import contextlib
import json
import os
import shutil
from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from pydantic import JsonValue, ValidationError
from pydantic_core import PydanticSerializationError

from factory.errors import NamespaceError
from factory.keys import Classification
from factory.namespace.durable import (
    exchange,
    make_directories,
    remove_empty,
    replace_link,
    sync,
    write_new,
)
from factory.namespace.failures import explained
from factory.namespace.integrity import table
from factory.namespace.layout import Place
from factory.namespace.lock import Held, Lock, LockTimes
from factory.namespace.manifest import (
    DIGEST,
    MANIFEST,
    STATED,
    FileEntry,
    Manifest,
    Provenance,
    digest,
    version_id,
    wrong_fields,
)
from factory.namespace.owner import this_process
from factory.namespace.pins import needing, refuse_gone
from factory.namespace.version import Version
from factory.namespace.work import Work

OWNER = "owner.json"
INPUTS = "inputs.json"
"""What a writer reads, beside its files: `retention` keeps it while the writer is at work."""


@dataclass(frozen=True, kw_only=True)
class Intent:
    """What is known of a version before its first byte is written."""

    classification: Classification
    inputs: Sequence[Version]
    input_id: str
    provenance: Provenance
    parameters: Mapping[str, JsonValue]
    code: str
    checks: Sequence[str]
    licenses: Sequence[str]
    limit: int | None
    partial: bool


@dataclass(frozen=True)
class Content:
    """What is known of a version when its last byte is written."""

    content_id: str
    rows: int | None
    columns: dict[str, str]
    facts: dict[str, JsonValue]
    partial: bool


@dataclass
class Staging:
    """A version being written: put files into `path`, call `describe` once, leave the block."""

    key_path: str
    path: Path
    work: Work
    """What is finished of the version, kept over a crash."""

    content: Content | None = field(default=None, init=False)
    published: Version | None = field(default=None, init=False)
    reused: bool = field(default=False, init=False)
    """After the block: an intact version with this content was there already and was kept."""

    def describe(
        self,
        *,
        content_id: str,
        rows: int | None = None,
        columns: Mapping[str, str] | None = None,
        facts: Mapping[str, JsonValue] | None = None,
        partial: bool = False,
    ) -> None:
        """Say what was written. `content_id` identifies the canonical rows, not the file bytes.

        `partial` says that a mirror held only some of the source; what is made from it inherits it.
        """
        if self.content is not None:
            raise NamespaceError(f"{self.key_path} was described twice in one write.")
        self.content = Content(content_id, rows, dict(columns or {}), dict(facts or {}), partial)

    def link(self, source: Path, name: str, entry: FileEntry) -> None:
        """Let the version have, as `name`, a file of another version or of finished work.

        Raises:
            DamagedVersion: when the block ends, if the file is not what `entry` says.
        """
        self.work.link(source, self.path / name, name, entry)

    @property
    def version(self) -> Version:
        """The published version, once the block was left without an error."""
        if self.published is None:
            raise NamespaceError(f"{self.key_path} is published when its `write` block ends.")
        return self.published


@contextlib.contextmanager
def writing(place: Place, intent: Intent, times: LockTimes) -> Generator[Staging]:
    """Hold the key, stage, publish when the body ends well, remove the staging in every case."""
    place.refuse_conflict()
    created: list[Path] = []
    with explained(place.root, f"writing {place.key}"):
        try:
            created += make_directories(place.versions, place.root)
            with Lock(place.writing, f"Writing {place.key}", times).hold() as held:
                place.refuse_conflict()
                directory = place.scratch("staging", held.token)
                try:
                    work = Work(place.work(intent.input_id))
                    staging = Staging(place.key.path, _staged(directory), work)
                    _need_inputs(place, intent, directory, times)
                    yield staging
                    _publish(place, intent, staging, held)
                    work.drop()
                finally:
                    shutil.rmtree(directory, ignore_errors=True)
        except BaseException:
            remove_empty(created)
            raise


def _staged(directory: Path) -> Path:
    directory.mkdir()
    (directory / OWNER).write_text(this_process().model_dump_json(), encoding="utf-8")
    files = directory / "files"
    files.mkdir()
    return files


def _need_inputs(place: Place, intent: Intent, directory: Path, times: LockTimes) -> None:
    if not intent.inputs:
        return
    with needing(place.root, intent.classification, f"Writing {place.key}", times).hold():
        names = json.dumps({version.key.path: version.id for version in intent.inputs})
        (directory / INPUTS).write_text(names, encoding="utf-8")
        refuse_gone(intent.inputs)


def _publish(place: Place, intent: Intent, staging: Staging, held: Held) -> None:
    held.confirm()  # before the long part, and again after it
    manifest, encoded = _manifest(place, intent, staging)
    write_new(staging.path / MANIFEST, encoded)
    write_new(staging.path / DIGEST, digest(encoded))
    sync(staging.path)
    held.confirm()
    _index(place, manifest, held.token)
    directory = place.version(manifest.version)
    if os.path.lexists(directory):
        existing = Version(place.key, manifest.version, directory)
        staging.reused = not _replace_if_damaged(existing, manifest, staging.path)
    else:
        staging.path.rename(directory)
    sync(place.versions)
    staging.published = Version(place.key, manifest.version, directory)


def _manifest(place: Place, intent: Intent, staging: Staging) -> tuple[Manifest, bytes]:
    content = staging.content
    if content is None:
        raise NamespaceError(
            f"{place.key} was written but not described, so it has no content id. "
            "Call staging.describe(content_id=...) before the block ends."
        )
    files = table(staging.path, staging.work.links)
    if not files:
        raise NamespaceError(f"{place.key}: no file was written, so there is nothing to publish.")
    try:
        manifest = Manifest(
            key=place.key.path,
            version=version_id(intent.input_id, content.content_id),
            input_id=intent.input_id,
            content_id=content.content_id,
            classification=intent.classification,
            licenses=sorted(set(intent.licenses)),
            files=files,
            rows=content.rows,
            columns=content.columns,
            inputs={version.key.path: version.id for version in intent.inputs},
            parameters=dict(intent.parameters),
            code=intent.code,
            checks=sorted(set(intent.checks)),
            limit=intent.limit,
            partial=intent.partial or content.partial,
            facts=content.facts,
            image=intent.provenance.image,
            run_id=intent.provenance.run_id,
            identity=intent.provenance.identity,
            created_at=datetime.now(UTC).isoformat(timespec="microseconds"),
        )
        return manifest, manifest.encoded()
    except ValidationError as error:
        problem = f"wrong: {wrong_fields(error)}"
    except (PydanticSerializationError, UnicodeError):
        problem = "a text in it is not UTF-8"
    # Outside the handlers: pydantic quotes the values, which may be private, also as a context.
    raise NamespaceError(f"{place.key} was described with what JSON cannot hold ({problem}).")


def _index(place: Place, manifest: Manifest, token: str) -> None:
    """Enter the input id before the rename: then no version is ever missing in the index."""
    make_directories(place.inputs, place.root)
    entry = place.input_link(manifest.input_id)
    replace_link(entry, f"../{manifest.version}", place.scratch("index", token))


def _replace_if_damaged(existing: Version, manifest: Manifest, staged: Path) -> bool:
    if not existing.verify():
        _refuse_contradiction(existing, manifest)
        return False
    # Results of checks were about other files: they go with the damaged directory.
    if not exchange(staged, existing.path):
        existing.path.rename(staged.with_name("damaged"))
        staged.rename(existing.path)
    return True


def _refuse_contradiction(existing: Version, manifest: Manifest) -> None:
    differing = [
        name for name in STATED if getattr(existing.manifest, name) != getattr(manifest, name)
    ]
    if differing:
        raise NamespaceError(
            f"{existing} is there already with other {', '.join(differing)}. The input id must "
            "cover everything that decides them; keeping the old statement would be untrue."
        )
