"""Writing a version: stage beside the versions, sync, rename into place.

Until the last rename nothing of a write can be seen under its final name, so a crash leaves the
old versions and a staging directory that `sweep` removes. What makes a version current is in
`promotion`.
"""

import contextlib
import os
import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from pydantic import JsonValue

from factory.errors import NamespaceError
from factory.keys import Classification
from factory.namespace.durable import exchange, make_directories, replace_link, sync, write_new
from factory.namespace.failures import explained
from factory.namespace.integrity import table
from factory.namespace.layout import Place
from factory.namespace.lock import Held, Lock, LockTimes
from factory.namespace.manifest import MANIFEST, STATED, Manifest, Provenance, version_id
from factory.namespace.owner import this_process
from factory.namespace.version import Version

OWNER = "owner.json"


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


@dataclass(frozen=True)
class _Content:
    content_id: str
    rows: int | None
    columns: dict[str, str]
    facts: dict[str, JsonValue]


@dataclass
class Staging:
    """A version being written: put files into `path`, call `describe` once, leave the block."""

    key_path: str
    path: Path
    _content: _Content | None = field(default=None, init=False)
    _version: Version | None = field(default=None, init=False)
    reused: bool = field(default=False, init=False)
    """After the block: an intact version with this content was there already and was kept."""

    def describe(
        self,
        *,
        content_id: str,
        rows: int | None = None,
        columns: Mapping[str, str] | None = None,
        facts: Mapping[str, JsonValue] | None = None,
    ) -> None:
        """Say what was written. `content_id` identifies the canonical rows, not the file bytes."""
        if self._content is not None:
            raise NamespaceError(f"{self.key_path} was described twice in one write.")
        self._content = _Content(content_id, rows, dict(columns or {}), dict(facts or {}))

    @property
    def version(self) -> Version:
        """The published version, once the block was left without an error."""
        if self._version is None:
            raise NamespaceError(f"{self.key_path} is published when its `write` block ends.")
        return self._version


@contextlib.contextmanager
def writing(place: Place, intent: Intent, times: LockTimes) -> Iterator[Staging]:
    """Hold the key, stage, publish when the body ends well, remove the staging in every case."""
    with explained(place.root, f"writing {place.key}"):
        make_directories(place.versions, place.root)
        with Lock(place.writing, f"Writing {place.key}", times).hold() as held:
            place.refuse_conflict()
            directory = place.scratch("staging", held.token)
            try:
                staging = Staging(place.key.path, _staged(directory))
                yield staging
                _publish(place, intent, staging, held)
            finally:
                shutil.rmtree(directory, ignore_errors=True)


def _staged(directory: Path) -> Path:
    directory.mkdir()
    (directory / OWNER).write_text(this_process().model_dump_json(), encoding="utf-8")
    files = directory / "files"
    files.mkdir()
    return files


def _publish(place: Place, intent: Intent, staging: Staging, held: Held) -> None:
    manifest = _manifest(place, intent, staging)
    write_new(staging.path / MANIFEST, manifest.encoded())
    sync(staging.path)
    held.confirm()
    _index(place, manifest, held.token)
    version = Version(place.key, manifest.version, place.version(manifest.version))
    if os.path.lexists(version.path):
        staging.reused = not _replace_if_damaged(version, manifest, staging.path)
    else:
        staging.path.rename(version.path)
    sync(place.versions)
    staging._version = Version(version.key, version.id, version.path)  # noqa: SLF001


def _manifest(place: Place, intent: Intent, staging: Staging) -> Manifest:
    content = staging._content  # noqa: SLF001
    if content is None:
        raise NamespaceError(
            f"{place.key} was written but not described, so it has no content id. "
            "Call staging.describe(content_id=...) before the block ends."
        )
    files = table(staging.path)
    if not files:
        raise NamespaceError(f"{place.key}: no file was written, so there is nothing to publish.")
    return Manifest(
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
        facts=content.facts,
        image=intent.provenance.image,
        run_id=intent.provenance.run_id,
        identity=intent.provenance.identity,
        created_at=datetime.now(UTC).isoformat(timespec="microseconds"),
    )


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
