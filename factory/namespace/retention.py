"""Retention: which versions may go, and removing them so that nobody meets half of one.

A version stays if something names it (`references`), if it is young, if it is one of the newest of
its key that a rollback could go back to, or if one that stays was made from it. `plan` says what
would go and touches nothing. `collect` plans again under the locks of both trees (see `pins`),
renames what goes to a scratch name, which is one step and final, and then removes it in peace. A
crash in between leaves scratch names, which readers do not see and `sweep` removes.
"""

import contextlib
import shutil
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from pathlib import Path
from typing import Literal

from factory.errors import DamagedVersion, NamespaceError
from factory.keys import Key, parse
from factory.namespace.checks import not_passed
from factory.namespace.durable import remove_empty, sync
from factory.namespace.layout import Place, require_root
from factory.namespace.lock import Held, Lock, LockTimes
from factory.namespace.manifest import read_manifest
from factory.namespace.pins import needing
from factory.namespace.references import Reference, Searched
from factory.namespace.references import collect as references
from factory.namespace.runs import CLASSIFICATIONS
from factory.namespace.sweep import TRASH, places
from factory.namespace.version import Version

type Lineage = Literal["all", "sources"]

YOUNGEST = timedelta(hours=1)
"""Nothing younger goes, whatever was asked: a run may have made it and not read it yet."""


@dataclass(frozen=True, kw_only=True)
class Policy:
    """What is asked for."""

    keep: int = 3
    """So many of the newest versions of each key that a rollback could go back to."""

    older_than: timedelta = timedelta(days=14)
    """Only what was neither made, checked nor taken into use again for so long."""

    lineage: Lineage = "all"
    """What stays of that which versions named only by old runs were made from: all of it, or the
    sources, from which the rest could be made again."""

    within: Callable[[Key], bool] = lambda _: True
    """Of which keys versions may go."""

    folders: Sequence[Path] = ()
    """Outside the namespace: where the locks of mixes lie."""


@dataclass(frozen=True)
class Plan:
    """What may go, and why the rest stays."""

    going: list[Version]
    kept: Mapping[Version, str]
    """One reason for each version within the asked keys, the strongest."""


@dataclass
class Collected:
    """What was done."""

    removed: list[Version] = field(default_factory=list[Version])
    busy: dict[Key, str] = field(default_factory=dict[Key, str])
    """Keys that someone is writing: their versions stay until the next time."""


def plan(root: Path, policy: Policy, now: float | None = None) -> Plan:
    """Decide what may go; nothing is touched.

    Raises:
        NamespaceError: something that may name versions cannot be read.
        DamagedVersion: a version that is named cannot say what it was made from.
    """
    require_root(root)
    moment = time.time() if now is None else now
    published = [
        Version(place.key, name, place.version(name))
        for place in places(root, everything=True)
        for name in place.published()
    ]
    named = references(Searched(root, policy.folders, moment))
    again = _first(one for one in named if one.again)
    once = _first(one for one in named if not one.again)
    usable = {one: why for one in published if (why := again.get(one.id))}
    for version, why in _unnamed(published, policy, moment):
        usable.setdefault(version, why)
    used = {one: why for one in published if (why := once.get(one.id)) and one not in usable}
    ancestry = _Ancestry(root, frozenset(again.keys() | once.keys()))
    kept = ancestry.of(used, whole=policy.lineage == "all") | ancestry.of(usable, whole=True)
    inside = [version for version in published if policy.within(version.key)]
    return Plan(
        going=sorted((one for one in inside if one not in kept), key=str),
        kept={one: kept[one] for one in inside if one in kept},
    )


def collect(root: Path, policy: Policy, times: LockTimes) -> Collected:
    """Remove what may go.

    Raises:
        NamespaceError: as for `plan`, and nothing is removed then.
    """
    require_root(root)
    done = Collected()
    trash: list[Path] = []
    guards: list[Held] = []
    with contextlib.ExitStack() as stack:
        for classification in CLASSIFICATIONS:
            if (root / classification).is_dir():
                lock = needing(root, classification, "Removing old versions", times)
                guards.append(stack.enter_context(lock.hold()))
        for key, versions in _by_key(plan(root, policy).going).items():
            try:
                trash += _renamed(Place(root, key), versions, guards, times)
                done.removed += versions
            except NamespaceError as busy:
                done.busy[key] = str(busy)
    for path in trash:
        shutil.rmtree(path, ignore_errors=True)  # what cannot be removed now, a sweep will
    for key in {version.key for version in done.removed}:
        remove_empty([Place(root, key).versions, Place(root, key).inputs])
    return done


def space(versions: Sequence[Version]) -> int:
    """Bytes that removing these would free: a file that others link to as well frees none."""
    links: dict[tuple[int, int], list[int]] = {}
    for version in versions:
        for path in version.path.rglob("*"):
            status = path.lstat()
            entry = links.setdefault((status.st_dev, status.st_ino), [status.st_nlink, 0])
            entry[0] -= 1
            entry[1] = 0 if path.is_dir() else status.st_size
    return sum(size for others, size in links.values() if others <= 0)


@dataclass(frozen=True)
class _Ancestry:
    """What versions were made from."""

    root: Path
    named: frozenset[str]

    def of(self, starts: Mapping[Version, str], *, whole: bool) -> dict[Version, str]:
        """These versions and what they were made from, or of that only the sources."""
        kept = dict(starts)
        queue = list(starts)
        seen = set(starts)
        while queue:
            version = queue.pop()
            inputs = self._inputs(version)
            if whole or not inputs:
                kept.setdefault(version, "others that stay were made from it")
            new = [one for one in inputs if one not in seen and one.path.is_dir()]
            seen.update(new)
            queue += new
        return kept

    def _inputs(self, version: Version) -> list[Version]:
        try:
            inputs = read_manifest(version.path, str(version)).inputs
        except DamagedVersion:
            if version.id in self.named:
                raise
            return []  # nobody can use it, so nothing has to stay for it
        places = {Place(self.root, parse(key)): name for key, name in inputs.items()}
        return [Version(place.key, name, place.version(name)) for place, name in places.items()]


def _first(named: Iterable[Reference]) -> dict[str, str]:
    found: dict[str, str] = {}
    for one in named:
        found.setdefault(one.version, one.by)
    return found


def _unnamed(
    published: Sequence[Version], policy: Policy, now: float
) -> Iterator[tuple[Version, str]]:
    """Versions that stay although nothing names them."""
    age = max(policy.older_than, YOUNGEST)
    for key, versions in _by_key(published).items():
        if not policy.within(key):
            yield from ((version, "not asked about") for version in versions)
            continue
        for version in versions:
            if now - _changed(version) < age.total_seconds():
                yield version, f"younger than {age.total_seconds() / 86400:g} days"
        for version in _newest(versions, policy.keep):
            yield version, f"one of the newest {policy.keep}"


def _newest(versions: Sequence[Version], count: int) -> Iterator[Version]:
    """The newest of one key that could be current."""
    dated: list[tuple[str, Version]] = []
    for version in versions:
        with contextlib.suppress(NamespaceError):
            manifest = read_manifest(version.path, str(version))
            if manifest.limit is None:
                dated.append((manifest.created_at, version))
    found = 0
    for _, version in sorted(dated, key=lambda one: (one[0], one[1].id), reverse=True):
        if found == count:
            return
        with contextlib.suppress(NamespaceError):
            if not not_passed(version):
                found += 1
                yield version


def _changed(version: Version) -> float:
    """When it was made, checked, or found and taken into use again: each touches its directory."""
    try:
        return version.path.stat().st_mtime
    except FileNotFoundError:
        return 0.0


def _renamed(
    place: Place, versions: Sequence[Version], guards: Sequence[Held], times: LockTimes
) -> list[Path]:
    """Take versions away in one step each; nobody who holds a lock of the key is waited for."""
    now = replace(times, wait_seconds=0)
    subject = f"Removing versions of {place.key}"
    trash: list[Path] = []
    with (
        Lock(place.writing, subject, now).hold() as writing,
        Lock(place.recording, subject, now).hold(),
    ):
        for version in versions:
            for guard in (writing, *guards):
                guard.confirm()
            target = place.scratch(TRASH, f"{version.id}-{writing.token}")
            with contextlib.suppress(FileNotFoundError):
                version.path.rename(target)
                trash.append(target)
        gone = {version.id for version in versions}
        for entry in place.inputs.glob("*"):
            if entry.readlink().name in gone:
                entry.unlink(missing_ok=True)
        sync(place.versions)
    return trash


def _by_key(versions: Iterable[Version]) -> dict[Key, list[Version]]:
    found: dict[Key, list[Version]] = {}
    for version in versions:
        found.setdefault(version.key, []).append(version)
    return found
