"""What tasks on other processes tell: rows read so far, what was printed, what was raised.

All of it lies in the work directory of the step, in the tree of its dataset: it may hold private
text, which must not pass through Ray, whose logs and object store lie elsewhere.
"""

import contextlib
import json
import os
import sys
import time
import traceback
from collections.abc import Generator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from factory import errors
from factory.data.engines import Work
from factory.data.shards import Shard
from factory.errors import FactoryError, StepError

SECONDS_BETWEEN = 1.0


@dataclass(frozen=True)
class Reports:
    """The directory of reports of one phase."""

    folder: Path

    @classmethod
    def beginning(cls, work: Work) -> "Reports":
        """An empty directory beside the finished shards of this work."""
        work.reports.mkdir(exist_ok=True)
        for old in work.reports.iterdir():
            old.unlink()
        return cls(work.reports)

    def plan(self, shards: Sequence[Shard]) -> None:
        """Write down what the shards are: their numbers are all that a task is given."""
        for shard in shards:
            self._file(shard.number, "shard").write_text(json.dumps(asdict(shard)))

    def shard(self, number: int) -> Shard:
        """What a shard is."""
        value: dict[str, Any] = json.loads(self._file(number, "shard").read_text())
        return Shard(value["number"], tuple(value["names"]), value["size"], value["limit"])

    def rows(self) -> int:
        """How many rows all tasks have read so far."""
        total = 0
        for file in self.folder.glob("*.rows"):
            with contextlib.suppress(ValueError):  # just being written
                total += int(file.read_text())
        return total

    def counter(self, number: int) -> "Counter":
        """Counts the rows of a shard where `rows` finds them."""
        return Counter(self._file(number, "rows"))

    @contextlib.contextmanager
    def output(self, number: int) -> Generator[None]:
        """Send what is printed meanwhile, by libraries too, into a file of the shard's own."""
        with self._file(number, "output").open("w", encoding="utf-8", errors="replace") as file:
            saved = {descriptor: os.dup(descriptor) for descriptor in (1, 2)}
            try:
                for descriptor in saved:
                    os.dup2(file.fileno(), descriptor)
                with contextlib.redirect_stdout(file), contextlib.redirect_stderr(file):
                    yield
            finally:
                for descriptor, before in saved.items():
                    os.dup2(before, descriptor)
                    os.close(before)

    def failed(self, number: int, error: Exception) -> None:
        """Keep what was raised on a shard."""
        value = {
            "kind": type(error).__name__,
            "ours": isinstance(error, FactoryError),
            "message": str(error),
            "outside": error.outside if isinstance(error, FactoryError) else "",
            "errno": error.errno if isinstance(error, OSError) else None,
            "filename": str(error.filename) if isinstance(error, OSError) else None,
            "traceback": "".join(traceback.format_exception(error)),
        }
        complete = self._file(number, "failing")
        complete.write_text(json.dumps(value))
        complete.replace(self._file(number, "failed"))

    def raise_first(self) -> None:
        """Raise what the task of some shard raised, if any did."""
        for file in sorted(self.folder.glob("*.failed")):
            self.raise_failure(int(file.stem))

    def raise_failure(self, number: int) -> None:
        """Print what the task of a shard printed, and raise what it raised."""
        with contextlib.suppress(FileNotFoundError):
            output = self._file(number, "output").read_text(encoding="utf-8", errors="replace")
            sys.stdout.write(output)
        try:
            value: dict[str, Any] = json.loads(self._file(number, "failed").read_text())
        except FileNotFoundError:
            return
        raise _error(number, value)

    def _file(self, number: int, kind: str) -> Path:
        return self.folder / f"{number}.{kind}"


class Counter:
    """Writes a number now and then."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._rows = 0
        self._last = 0.0

    def __call__(self, rows: int) -> None:
        """Count so many rows more."""
        self._rows += rows
        if time.monotonic() - self._last >= SECONDS_BETWEEN:
            self.flush()

    def flush(self) -> None:
        """Write what was counted."""
        self._last = time.monotonic()
        with contextlib.suppress(OSError):  # a full disk stops the work elsewhere
            self._file.write_text(str(self._rows))


def _error(number: int, value: dict[str, Any]) -> Exception:
    kind = getattr(errors, value["kind"], None) if value["ours"] else None
    if kind is not None:
        error: FactoryError = kind(value["message"])
        error.outside = value["outside"]
    elif value["errno"] is not None:
        return OSError(value["errno"], os.strerror(value["errno"]), value["filename"])
    else:
        error = StepError(f"Shard {number}: {value['kind']}: {value['message']}")
    error.add_note(value["traceback"])
    return error
