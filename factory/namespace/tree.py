"""The namespace: one directory tree in which a key is a path.

The two ways to write are `Namespace.write`, for versions of assets, and `Namespace.open_run`, for
run directories. How a write works is in `staging`, what may be current in `promotion`.
"""

import contextlib
import os
from collections.abc import Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path

from pydantic import JsonValue

from factory.errors import DamagedVersion, NamespaceError
from factory.keys import Classification, Key
from factory.namespace.checks import CheckRecord, not_passed, read_checks, write_checks
from factory.namespace.classification import classify
from factory.namespace.durable import make_directories
from factory.namespace.failures import explained
from factory.namespace.integrity import Damage
from factory.namespace.layout import Place, is_version_id, require_root
from factory.namespace.lock import Lock, LockTimes
from factory.namespace.manifest import Provenance
from factory.namespace.pins import directory, needing, refuse_gone, write_pin
from factory.namespace.promotion import make_current, read_current, refuse_damaged
from factory.namespace.runs import RunDirectory, find_run, list_runs, open_run
from factory.namespace.staging import Intent, Staging, writing
from factory.namespace.sweep import published_keys, sweep
from factory.namespace.version import Version


@dataclass(frozen=True)
class Namespace:
    """The tree under `root`. Making one touches nothing; every call checks that it is there."""

    root: Path
    times: LockTimes = field(default_factory=LockTimes, kw_only=True)

    @contextlib.contextmanager
    def write(  # noqa: PLR0913 - each is a line of the manifest, and none has a default to hide in
        self,
        key: Key,
        *,
        inputs: Sequence[Version],
        input_id: str,
        provenance: Provenance,
        parameters: Mapping[str, JsonValue],
        code: str,
        checks: Sequence[str],
        licenses: Sequence[str],
        source: Classification | None = None,
        private_on_purpose: bool = False,
        limit: int | None = None,
    ) -> Generator[Staging]:
        """Write a version of `key`: the body fills `staging.path` and calls `staging.describe`.

        The version is published when the body ends, and is not current yet. An error in the body
        leaves everything as it was. An input that was limited to some rows, or is partial,
        makes the output so.
        `licenses` is read when the body ends, so it may be filled while rows are read.

        Raises:
            ClassificationError: the key's tree is not the one that the inputs require.
            NamespaceError: the root refuses, or someone else is writing this key.
        """
        require_root(self.root)
        if limit is not None and limit < 1:
            raise NamespaceError(f"{key}: a limit of {limit} rows leaves none; it starts at 1.")
        self._refuse_foreign(inputs)
        classify(key, inputs, source, private_on_purpose=private_on_purpose)
        limits = [limit, *(version.manifest.limit for version in inputs)]
        intent = Intent(
            classification=key.classification,
            inputs=inputs,
            input_id=input_id,
            provenance=provenance,
            parameters=parameters,
            code=code,
            checks=checks,
            licenses=licenses,
            limit=min((rows for rows in limits if rows is not None), default=None),
            partial=any(version.manifest.partial for version in inputs),
        )
        with writing(Place(self.root, key), intent, self.times) as staging:
            yield staging

    def find(self, key: Key, input_id: str) -> Version | None:
        """The newest version made from that input whose files are all there, by size."""
        with self._reading(key) as place, contextlib.suppress(FileNotFoundError, DamagedVersion):
            version_id = place.input_link(input_id).readlink().name
            version = Version(key, version_id, place.version(version_id))
            if version.manifest.input_id == input_id and version.is_complete():
                return version
        return None

    def current(self, key: Key) -> Version | None:
        """The version that `<root>/<key>` points to now; keep it, do not ask twice."""
        with self._reading(key) as place:
            return read_current(place)

    def version(self, key: Key, version_id: str) -> Version:
        """That version of `key`.

        Raises:
            NamespaceError: there is none; the message names those there are.
        """
        with self._reading(key) as place:
            if is_version_id(version_id) and place.version(version_id).is_dir():
                return Version(key, version_id, place.version(version_id))
        known = [version.id for version in self.versions(key)][:5]
        raise NamespaceError(
            f"{key} has no version {version_id[:80]!r}. "
            + (f"Newest: {', '.join(known)}." if known else "It has no version at all.")
        )

    def versions(self, key: Key) -> list[Version]:
        """Every version of `key`, newest first; one with an unreadable manifest last."""
        with self._reading(key) as place:
            versions = [Version(key, name, place.version(name)) for name in place.published()]
            return sorted(versions, key=_created, reverse=True)

    def keys(self) -> Iterator[Key]:
        """Every key that has a version and that this account may see."""
        require_root(self.root)
        return published_keys(self.root)

    def verify(self, version: Version) -> list[Damage]:
        """Every difference between the files and the manifest; reads all of them."""
        with self._reading(version.key):
            return version.verify()

    def record_checks(self, version: Version, results: Mapping[str, CheckRecord]) -> None:
        """Keep results of checks beside the version, each replacing the earlier of its name."""
        with self._recording(version) as place:
            write_checks(place, version, results)

    def checks(self, version: Version) -> dict[str, CheckRecord]:
        """The newest result of each check of that version."""
        with self._reading(version.key):
            return read_checks(version)

    def not_passed(self, version: Version) -> list[str]:
        """The blocking checks that have not passed for that version; empty when all have."""
        with self._reading(version.key):
            return not_passed(version)

    def promote(self, version: Version) -> None:
        """Make a version current.

        Raises:
            ChecksNotPassed: it is limited, or a blocking check has not passed for it.
        """
        with self._recording(version) as place, self._needing(version):
            make_current(place, self.version(version.key, version.id))

    def rollback(self, key: Key, version_id: str) -> Version:
        """Make an older version current again, after reading all of it.

        Raises:
            DamagedVersion: its files differ from its manifest.
            ChecksNotPassed: as for `promote`.
        """
        version = self.version(key, version_id)
        refuse_damaged(version)
        self.promote(version)
        return version

    def sweep(self, minimum_age: timedelta) -> list[Path]:
        """Remove what dead writers left, and what is older than that and cannot be judged."""
        require_root(self.root)
        with explained(self.root, "sweeping"):
            return sweep(self.root, minimum_age, self.times)

    def renew(self, version: Version) -> bool:
        """Take a version that was found into use again, as if it were new. False if it is gone."""
        with explained(self.root, f"reading {version}"), self._needing(version):
            if not version.path.is_dir():
                return False
            os.utime(version.path)
            return True

    def pin(self, run: RunDirectory, versions: Sequence[Version], hold: timedelta) -> None:
        """Keep what a launch reads until its run record says so, for that long at most.

        Raises:
            NamespaceError: a version is gone.
        """
        require_root(self.root)
        lock = needing(self.root, run.classification, f"Pinning for {run}", self.times)
        with explained(self.root, f"pinning for {run}"):
            make_directories(self.root / run.classification, self.root)
            with lock.hold():
                write_pin(run, versions, hold)

    def unpin(self, run: RunDirectory) -> None:
        """Let go of what a launch was going to read."""
        folder = directory(self.root, run.classification)
        with explained(self.root, f"unpinning {run}"):
            (folder / f"{run.run_id}.json").unlink(missing_ok=True)

    def open_run(self, classification: Classification, run_id: str) -> RunDirectory:
        """The directory of that run, made if it is not there yet."""
        require_root(self.root)
        return open_run(self.root, classification, run_id)

    def run(self, run_id: str) -> RunDirectory:
        """The directory of a run that exists."""
        require_root(self.root)
        return find_run(self.root, run_id)

    def runs(self) -> list[RunDirectory]:
        """Every run that this account may see, newest first."""
        require_root(self.root)
        return list_runs(self.root)

    def _refuse_foreign(self, inputs: Sequence[Version]) -> None:
        """An input's key decides the classification, so key, directory and manifest must agree."""
        for version in inputs:
            directory = Place(self.root, version.key).version(version.id)
            stated = (version.manifest.key, version.manifest.version)
            if version.path != directory or stated != (version.key.path, version.id):
                raise NamespaceError(
                    f"{version} cannot be an input: {version.path} holds {'@'.join(stated)}. "
                    "Take versions from `current`, `find` or `version` of this namespace."
                )
        if len({version.key for version in inputs}) < len(inputs):
            names = ", ".join(str(version) for version in inputs)
            raise NamespaceError(f"One key is an input twice, of: {names}. Give one version of it.")

    @contextlib.contextmanager
    def _reading(self, key: Key) -> Generator[Place]:
        require_root(self.root)
        with explained(self.root, f"reading {key}"):
            yield Place(self.root, key)

    @contextlib.contextmanager
    def _recording(self, version: Version) -> Generator[Place]:
        self.version(version.key, version.id)  # before a lock makes directories for it
        place = Place(self.root, version.key)
        doing = f"recording {version}"
        with (
            explained(self.root, doing),
            Lock(place.recording, doing.capitalize(), self.times).hold(),
        ):
            refuse_gone([version])
            yield place

    def _needing(self, version: Version) -> contextlib.AbstractContextManager[object]:
        subject = f"Using {version}"
        return needing(self.root, version.key.classification, subject, self.times).hold()


def _created(version: Version) -> tuple[str, str]:
    try:
        return version.manifest.created_at, version.id
    except NamespaceError:
        return "", version.id
