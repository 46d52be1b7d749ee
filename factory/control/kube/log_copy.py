"""A driver's log as it lies in the run's directory: a copy, byte for byte, of what heads had.

A head sends its log from the first byte, every time. What the copy has already is compared and
passed over, so that nothing is doubled, whoever wrote it and however its end was cut off. Where a
log is another one (KubeRay made a new head, which starts the driver again), or is not what lies
here, a marker line is written and all of it follows: nothing is replaced.

Beside the copy lies a file of one line for each head: where its log begins, and whose it is.
"""

import json
import os
import weakref
from dataclasses import dataclass

from factory.control.kube.fields import count, text
from factory.errors import NamespaceError
from factory.namespace import RunDirectory
from factory.namespace.run_files import contents, opened

PARTS = ".parts"
LARGEST_PARTS_BYTES = 1 << 20
COPY_BYTES = 1 << 18


@dataclass(frozen=True)
class _Part:
    """Where the log of one head begins in the copy, and whose it is, where that is known."""

    at: int = 0
    owner: str = ""


class LogCopy:
    """The copy, and how far the log that comes now has been followed in it."""

    def __init__(self, run: RunDirectory, name: str) -> None:
        self._run = run
        self._name = name
        folder = name.rpartition("/")[0]
        if folder:
            run.directory(folder)
        self._file = opened(run.path, name, os.O_RDWR | os.O_CREAT | os.O_APPEND)
        weakref.finalize(self, os.close, self._file)  # it is read to the end of the run's step
        self._part = self._last_part()
        self._position = 0

    @property
    def size(self) -> int:
        """Bytes in it."""
        return os.fstat(self._file).st_size

    def read(self, offset: int, limit: int) -> bytes:
        """At most `limit` bytes from `offset` on."""
        return os.pread(self._file, limit, offset)

    def begin(self, owner: str) -> None:
        """The log of that head comes now, from its first byte."""
        self._position = 0
        if owner == self._part.owner:
            return
        if self._part.owner:
            self._mark(owner, f"another head begins here: {owner}")
        elif not self.size:
            self._note(_Part(0, owner))
        else:
            self._part = _Part(self._part.at, owner)  # what lies here decides

    def take(self, block: bytes) -> int:
        """The next bytes of the log; how many of them are new here."""
        known = self.read(self._part.at + self._position, len(block))
        if known != block[: len(known)]:
            self._begin_anew()
            known = b""
        new = block[len(known) :]
        self._append(new)
        self._position += len(block)
        return len(new)

    def _begin_anew(self) -> None:
        """What was passed over as known belongs to the other log, and to this one too."""
        begin, length = self._part.at, self._position
        self._mark(self._part.owner, "the log is another one than above, and all of it follows")
        for offset in range(begin, begin + length, COPY_BYTES):
            self._append(self.read(offset, min(COPY_BYTES, begin + length - offset)))

    def _mark(self, owner: str, why: str) -> None:
        size = self.size
        if size and self.read(size - 1, 1) != b"\n":
            self._append(b"\n")
        self._append(f"=== {why} ===\n".encode())
        self._note(_Part(self.size, owner))

    def _note(self, part: _Part) -> None:
        self._part = part
        line = json.dumps({"at": part.at, "owner": part.owner})
        self._run.append(self._name + PARTS, line)

    def _append(self, data: bytes) -> None:
        rest = memoryview(data)
        while rest:
            rest = rest[os.write(self._file, rest) :]

    def _last_part(self) -> _Part:
        """The last line that holds; pods may write in the directory, and a crash cuts lines off."""
        try:
            data = contents(self._run.path, self._name + PARTS, LARGEST_PARTS_BYTES)
        except (FileNotFoundError, NamespaceError):
            return _Part()
        for line in reversed(data.splitlines()):
            try:
                found = json.loads(line)
            except ValueError:
                continue
            at, owner = count(found, "at"), text(found, "owner")
            if 0 <= at <= self.size and owner:
                return _Part(at, owner)
        return _Part()
