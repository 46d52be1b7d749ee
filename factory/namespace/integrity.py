"""Files against the manifest: what was published is there, whole, and nothing else is.

`table` makes the file table when a version is published, `verify` compares with it later,
`is_complete` is the cheap form that reads no file.
"""

import hashlib
import os
import shutil
import stat
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from factory.errors import DamagedVersion, NamespaceError
from factory.namespace.durable import sync
from factory.namespace.manifest import (
    DIGEST,
    MANIFEST,
    FileEntry,
    Manifest,
    is_as_published,
    read_manifest,
    version_id,
)

CHECKS = "_checks.json"
OUTSIDE_TABLE = frozenset({MANIFEST, DIGEST, CHECKS})
"""The files of a version that cannot be in its own file table."""

_PARALLEL_FILES = 16
"""File systems join syncs that arrive together; hashing is limited by cores all the same."""


@dataclass(frozen=True)
class Damage:
    """One way in which a version differs from its manifest."""

    path: str
    problem: str

    def __str__(self) -> str:
        return f"{self.path}: {self.problem}"


def table(directory: Path, linked: Mapping[str, FileEntry]) -> dict[str, FileEntry]:
    """Hash every file of a finished directory and bring it all to the disk.

    `linked` are the files that have other names elsewhere, with what they must hold.

    Raises:
        DamagedVersion: a linked file holds something else.
        NamespaceError: something in it cannot be published: a link, a device, a reserved name.
    """
    files: list[str] = []
    directories: list[Path] = [directory]
    for entry in _walk(directory):
        relative = os.path.relpath(entry.path, directory)
        if entry.is_dir(follow_symlinks=False):
            directories.append(Path(entry.path))
        elif problem := _unpublishable(entry, relative):
            raise NamespaceError(f"{entry.path} cannot be published: {problem}.")
        else:
            files.append(relative)
    with ThreadPoolExecutor(_PARALLEL_FILES) as pool:
        expected = [linked.get(name) for name in files]
        entries = list(pool.map(_sealed, [directory / name for name in files], expected))
        list(pool.map(sync, directories))
    return dict(sorted(zip(files, entries, strict=True)))


def verify(directory: Path, name: str, identity: tuple[str, str]) -> list[Damage]:
    """Every difference between a version and its manifest, by reading all of it.

    `identity` is the key and the version id that the directory's place says.
    """
    try:
        manifest = read_manifest(directory, name)
    except DamagedVersion as error:
        return [Damage(MANIFEST, str(error))]
    damage = _misplaced(manifest, identity)
    if not is_as_published(directory):
        damage.append(Damage(MANIFEST, f"is not what was published: {DIGEST} has another hash"))
    found: dict[str, os.DirEntry[str]] = {}
    for entry in _walk(directory):
        relative = os.path.relpath(entry.path, directory)
        if relative not in OUTSIDE_TABLE and not entry.is_dir(follow_symlinks=False):
            found[relative] = entry
    damage += [Damage(path, "is missing") for path in manifest.files if path not in found]
    damage += [
        Damage(path, "is not in the manifest") for path in found if path not in manifest.files
    ]
    with ThreadPoolExecutor(_PARALLEL_FILES) as pool:
        both = [path for path in manifest.files if path in found]
        entries = [found[path] for path in both]
        problems = pool.map(_difference, entries, [manifest.files[path] for path in both])
        damage += [
            Damage(path, problem)
            for path, problem in zip(both, problems, strict=True)
            if problem is not None
        ]
    return sorted(damage, key=lambda one: one.path)


def is_complete(directory: Path, manifest: Manifest) -> bool:
    """Whether every file of the manifest is there with its size."""
    for relative, expected in manifest.files.items():
        try:
            status = (directory / relative).lstat()
        except OSError:
            return False
        if not stat.S_ISREG(status.st_mode) or status.st_size != expected.size:
            return False
    return True


def _walk(directory: Path | str) -> Iterator[os.DirEntry[str]]:
    with os.scandir(directory) as entries:
        for entry in entries:
            yield entry
            if entry.is_dir(follow_symlinks=False):
                yield from _walk(entry.path)


def _unpublishable(entry: os.DirEntry[str], relative: str) -> str | None:
    if relative in OUTSIDE_TABLE:
        return "the namespace writes a file of that name itself"
    if entry.is_symlink():
        return "it is a symbolic link, whose target is not part of the version; copy the file"
    if not entry.is_file(follow_symlinks=False):
        return "it is neither a file nor a directory"
    try:
        relative.encode()
    except UnicodeEncodeError:
        return "its name is not UTF-8, which the manifest needs"
    return None


def _sealed(path: Path, expected: FileEntry | None) -> FileEntry:
    """Hash and sync one file, which from now on nobody else can change through another name."""
    if expected is None and path.lstat().st_nlink > 1:  # installers link from their cache
        own = path.with_name(f".{path.name[:200]}.own")
        shutil.copy2(path, own)
        own.replace(path)
    with path.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
        os.fsync(file.fileno())
        entry = FileEntry(size=os.fstat(file.fileno()).st_size, sha256=digest)
    if expected is not None and entry != expected:
        raise DamagedVersion(
            f"{path.name} was taken over from elsewhere and is not what was written there: it has "
            f"{entry.size:,} bytes and another content. Nothing was published. "
            "`factory verify` finds the damaged version; materialize that one again."
        )
    return entry


def _difference(entry: os.DirEntry[str], expected: FileEntry) -> str | None:
    if not entry.is_file(follow_symlinks=False):
        return "is a symbolic link, not a file" if entry.is_symlink() else "is not a file"
    size = entry.stat(follow_symlinks=False).st_size
    if size != expected.size:
        return f"has {size:,} bytes, the manifest says {expected.size:,}"
    try:
        with Path(entry.path).open("rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        return f"cannot be read ({error.strerror})"
    return None if digest == expected.sha256 else "has other content than the manifest says"


def _misplaced(manifest: Manifest, identity: tuple[str, str]) -> list[Damage]:
    key, version = identity
    if (manifest.key, manifest.version) != identity:
        stated = f"{manifest.key}@{manifest.version}"
        return [Damage(MANIFEST, f"is of {stated}, but the directory is {key}@{version}")]
    if version_id(manifest.input_id, manifest.content_id) != version:
        return [Damage(MANIFEST, "its input and content id do not give the version id")]
    return []
