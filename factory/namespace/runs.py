"""Run directories: the second and last way to write into the namespace.

`<root>/<classification>/runs/<run id>` is not versioned: a run adds files and lines, and never
replaces one. Versions of assets are in `staging`.
"""

import contextlib
import errno
import io
import os
import re
import stat
import time
import uuid
from collections.abc import Generator
from dataclasses import dataclass
from pathlib import Path

from factory.errors import NamespaceError
from factory.keys import Classification
from factory.namespace.durable import make_directories, sync, write_new
from factory.namespace.failures import explained

RUNS = "runs"
OPENED = ".opened"
"""Written once when a run directory is made; its time orders runs."""

CLASSIFICATIONS: tuple[Classification, ...] = ("public", "private")

_NOT_OURS = frozenset({errno.ELOOP, errno.ENOTDIR, errno.EISDIR, errno.ENXIO})
_WRITE_SECONDS = 0.2
"""Longer than any process is held up within one write of a line."""
_RUN_ID = re.compile(r"[a-z0-9][a-z0-9-]{0,63}")
_SEGMENT = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._=-]{0,199}")


@dataclass(frozen=True)
class RunDirectory:
    """One run's own directory. Append-only; names are relative and cannot lead out of it."""

    classification: Classification
    run_id: str
    root: Path

    def __post_init__(self) -> None:
        if self.classification not in CLASSIFICATIONS:
            raise NamespaceError(f"A run is public or private, not {self.classification!r}.")
        if not _RUN_ID.fullmatch(self.run_id):
            raise NamespaceError(
                f"Run id {self.run_id[:80]!r} cannot be a directory: it must be 1 to 64 of a-z, "
                "0-9 and -, not starting with -."
            )

    @property
    def path(self) -> Path:
        """The directory itself."""
        return self.root / self.classification / RUNS / self.run_id

    def exists(self) -> bool:
        """Whether it was opened; a link to somewhere else is no run directory."""
        return self.path.is_dir() and not self.path.is_symlink()

    @property
    def opened_at(self) -> float:
        """When the directory was made, in seconds since the epoch, by the file server's clock."""
        try:
            return (self.path / OPENED).stat().st_mtime
        except FileNotFoundError:
            return self.path.stat().st_mtime

    def directory(self, name: str) -> Path:
        """The directory of that name inside the run's, made where missing."""
        with explained(self.root, f"writing {self}"), self._inside(_segments(name)) as descriptor:
            os.fsync(descriptor)
        return self.path / name

    def append(self, name: str, line: str) -> None:
        """Add one line to a file, in one write, so that lines of several processes do not mix.

        On NFS that holds for the processes of one machine: let each machine write its own file.
        """
        if "\n" in line:
            raise NamespaceError(
                f"{self}: a line for {name} holds a line break; append one by one."
            )
        *folders, file = _segments(name)
        # Without blocking, as a pipe that nobody empties would.
        flags = os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_NONBLOCK
        with explained(self.root, f"writing {self}"), self._inside(folders) as descriptor:
            opened = self._open(file, flags, descriptor)
            with os.fdopen(opened, "rb+", buffering=0) as raw:
                if not stat.S_ISREG(os.fstat(opened).st_mode):
                    raise self._not_ours(file)
                data = f"{_line_break_missing(raw)}{line}\n".encode()
                written = raw.write(data)
                if written < len(data):
                    raw.write(data[written:])  # raises what stopped the first

    def create(self, name: str, data: bytes) -> Path:
        """Write a whole file once: readers see all of it or nothing, and it never changes.

        Raises:
            NamespaceError: it exists already.
        """
        *folders, file = _segments(name)
        scratch = self.path / f".creating-{uuid.uuid4().hex}"
        with explained(self.root, f"writing {self}"), self._inside(folders) as descriptor:
            try:
                write_new(scratch, data)
                os.link(scratch, file, dst_dir_fd=descriptor, follow_symlinks=False)
                os.fsync(descriptor)
            except FileExistsError:
                raise NamespaceError(
                    f"{self}: {name} exists already, and a run never replaces a file. "
                    "Write another name, or append."
                ) from None
            finally:
                scratch.unlink(missing_ok=True)
        return self.path / name

    def _open(self, name: str, flags: int, parent: int | None = None, *, make: bool = False) -> int:
        try:
            if make:
                with contextlib.suppress(FileExistsError):
                    os.mkdir(name, dir_fd=parent)
            return os.open(name, flags, 0o666, dir_fd=parent)
        except OSError as error:
            if error.errno in _NOT_OURS:
                raise self._not_ours(name) from None
            if error.errno == errno.ENOENT:
                raise NamespaceError(
                    f"{self} does not exist in {self.root}: open it first."
                ) from None
            error.filename = str(self.path / name)
            raise

    def _not_ours(self, name: str) -> NamespaceError:
        return NamespaceError(
            f"{self}: {name} is a link or not of the kind asked for. Only what the run made itself "
            "is written to; choose another name."
        )

    @contextlib.contextmanager
    def _inside(self, folders: list[str]) -> Generator[int]:
        """A descriptor of that folder, made where missing, reached without following a link."""
        flags = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW
        descriptor = self._open(str(self.path), flags)
        try:
            for folder in folders:
                inner = self._open(folder, flags, descriptor, make=True)
                os.close(descriptor)
                descriptor = inner
            yield descriptor
        finally:
            os.close(descriptor)

    def __str__(self) -> str:
        return f"{self.classification}/{RUNS}/{self.run_id}"


def _line_break_missing(raw: io.FileIO) -> str:
    """What closes a line that a crash or a full disk cut off, so that the next one stays whole.

    An open end that does not grow is such a line; one that grows is someone else's write under way.
    """
    seen, since = 0, time.monotonic()
    while size := os.fstat(raw.fileno()).st_size:
        if os.pread(raw.fileno(), 1, size - 1) == b"\n":
            break
        if size != seen:
            seen, since = size, time.monotonic()
        elif time.monotonic() - since > _WRITE_SECONDS:
            return "\n"
        time.sleep(0.001)
    return ""


def open_run(root: Path, classification: Classification, run_id: str) -> RunDirectory:
    """The directory of that run, made if it is not there yet.

    Raises:
        NamespaceError: the id cannot be a directory name, or the run is in the other tree.
    """
    run = RunDirectory(classification, run_id, root)
    for other in CLASSIFICATIONS:
        if other != classification and RunDirectory(other, run_id, root).exists():
            raise NamespaceError(f"Run {run_id} is {other} already; it cannot be {classification}.")
    with explained(root, f"opening {run}"):
        make_directories(run.path, root)
        with contextlib.suppress(FileExistsError):
            write_new(run.path / OPENED, b"")
            sync(run.path)
    return run


def find_run(root: Path, run_id: str) -> RunDirectory:
    """The directory of a run that exists.

    Raises:
        NamespaceError: neither tree has it.
    """
    for classification in CLASSIFICATIONS:
        run = RunDirectory(classification, run_id, root)
        if run.exists():
            return run
    raise NamespaceError(f"No run {run_id} in {root}. `factory runs list` shows those there are.")


def list_runs(root: Path) -> list[RunDirectory]:
    """Every run that this account may read, newest first."""
    runs = [
        RunDirectory(classification, path.name, root)
        for classification in CLASSIFICATIONS
        for path in _entries(root / classification / RUNS)
        if _RUN_ID.fullmatch(path.name) and _may_read(path)
    ]
    return sorted(runs, key=lambda run: (run.opened_at, run.run_id), reverse=True)


def record_path(run: RunDirectory) -> Path:
    """The record of the first attempt that left one: an attempt can end before it has begun.

    It need not be there yet.
    """
    first = run.path / "record.json"
    later = {
        int(number): path
        for path in run.path.glob("record.*.json")
        if (number := path.name.split(".")[1]).isdecimal()
    }
    return later[min(later)] if later and not first.exists() else first


def _may_read(path: Path) -> bool:
    return os.access(path, os.R_OK | os.X_OK) and path.is_dir() and not path.is_symlink()


def _entries(directory: Path) -> list[Path]:
    try:
        return list(directory.iterdir())
    except (FileNotFoundError, PermissionError):
        return []


def _segments(name: str) -> list[str]:
    segments = name.split("/")
    for segment in segments:
        if not _SEGMENT.fullmatch(segment):
            raise NamespaceError(
                f"{name[:80]!r} is not a name inside a run's directory: the segment "
                f"{segment[:80]!r} must be of letters, digits, and . _ = - after the first, "
                "and there is no way up."
            )
    return segments
