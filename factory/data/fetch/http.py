"""One file over HTTP, held to its sha256: a download that breaks off resumes, or starts over.

What has arrived lies in `<name>.part` until its hash is the declared one; only then it gets its
name, so there is never half a file. A later try goes on from there if the server says, by ETag or
date, that the file is still the same.
"""

import errno
import http.client
import json
import os
import shutil
import time
import urllib.error
import urllib.request
from dataclasses import dataclass, field
from pathlib import Path

from factory.data.fetch.errand import Errand
from factory.data.fetch.hashes import sha256
from factory.data.progress import SECONDS_BETWEEN, Say
from factory.data.sources import Http
from factory.errors import SourceError

TRIES = 6
"""Tries in a row that bring nothing new before it gives up."""

SECONDS_BEFORE_RETRY = (0.2, 1.0, 3.0, 10.0, 20.0)
TIMEOUT_SECONDS = 60.0
CHUNK_BYTES = 1 << 18

_OF_THE_DISK = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EROFS, errno.EACCES})
"""Errors of this machine, which no other try at the server mends."""

_WORTH_RETRYING = frozenset({408, 425, 429, 500, 502, 503, 504})


def fetch(source: Http, errand: Errand) -> Path:
    """The folder that holds the file, under the name that the address gives it.

    Raises:
        SourceError: it cannot be fetched whole, or its hash is another one.
    """
    folder = errand.scratch / "file"
    folder.mkdir(exist_ok=True)
    target = folder / source.file
    if errand.mirror is not None:
        _copy_mirror(errand.mirror, target, source)
        return folder
    Download(source, errand.scratch / "download.part", errand.say).to(target)
    return folder


@dataclass
class Download:
    """One file on its way."""

    source: Http
    part: Path
    say: Say
    _failures: list[str] = field(default_factory=list[str], init=False)
    _restarted: bool = field(default=False, init=False)

    def to(self, target: Path) -> None:
        """Go on until the file is whole, then give it its name."""
        while True:
            before = self._size()
            problem = self._try()
            progressed = self._size() > before
            if (problem is None or not progressed) and self._arrived():
                self.part.replace(target)
                self._discard()
                return
            if problem is None:
                self._refuse_or_restart()
            else:
                self._note(problem, progressed=progressed)

    def _try(self) -> str | None:
        """One request; returns what broke it, or None when the server says that is all."""
        request = urllib.request.Request(self.source.url, headers=self._headers())  # noqa: S310
        try:
            with urllib.request.urlopen(request, timeout=TIMEOUT_SECONDS) as response:  # noqa: S310
                return self._receive(response)
        except urllib.error.HTTPError as error:
            return self._refusal(error)
        except (OSError, http.client.HTTPException) as error:
            if isinstance(error, OSError) and error.errno in _OF_THE_DISK:
                raise
            return f"{type(error).__name__}: {getattr(error, 'reason', None) or error}"

    def _headers(self) -> dict[str, str]:
        """Ask for the rest only where the server can confirm that it is the same file."""
        headers = {"Accept-Encoding": "identity", "User-Agent": "ai-factory"}
        size, validator = self._size(), self._validator()
        if size and validator:
            headers |= {"Range": f"bytes={size}-", "If-Range": validator}
        return headers

    def _receive(self, response: http.client.HTTPResponse) -> str | None:
        size = self._size()
        resumed = response.status == http.HTTPStatus.PARTIAL_CONTENT
        if resumed and not response.headers.get("Content-Range", "").startswith(f"bytes {size}-"):
            self._discard()
            return "the server sent another range than the one asked for"
        if not resumed:
            self._discard()
            size = 0
        self._remember(response)
        length = response.headers.get("Content-Length", "")
        expected = size + int(length) if length.isdigit() else None
        with self.part.open("ab") as file:
            self._copy(response, file.fileno(), expected)
        received = self._size()
        if expected is not None and received < expected:
            return f"the connection ended after {received:,} of {expected:,} bytes"
        return None

    def _copy(self, response: http.client.HTTPResponse, file: int, expected: int | None) -> None:
        last = time.monotonic()
        while chunk := response.read(CHUNK_BYTES):
            view = memoryview(chunk)
            while view:
                view = view[os.write(file, view) :]
            if time.monotonic() - last >= SECONDS_BETWEEN:
                last = time.monotonic()
                total = f" of {expected / 1e6:,.1f}" if expected else ""
                self.say(f"{self._size() / 1e6:,.1f}{total} MB of {self.source.url}")

    def _refusal(self, error: urllib.error.HTTPError) -> str:
        if error.code == http.HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE:
            self._discard()  # what lies here is longer than the file: start over
            return "the server has no such range"
        if error.code not in _WORTH_RETRYING:
            raise SourceError(
                f"{self.source.url} answers {error.code} {error.reason}. Is the address right? "
                "FACTORY_MIRRORS can name a local copy."
            ) from error
        return f"the server answers {error.code} {error.reason}"

    def _note(self, problem: str, *, progressed: bool) -> None:
        """Count a failure, and wait before the next try; progress wipes the slate clean."""
        if progressed:
            self._failures.clear()
        self._failures.append(problem)
        self.say(f"download interrupted: {problem}")
        if len(self._failures) >= TRIES:
            raise SourceError(
                f"{self.source.url} could not be fetched in {TRIES} tries; the last: {problem}. "
                f"{self._size():,} bytes have arrived; running the step again goes on from there "
                "where the server allows it. FACTORY_MIRRORS can name a local copy."
            )
        time.sleep(SECONDS_BEFORE_RETRY[len(self._failures) - 1])

    def _refuse_or_restart(self) -> None:
        """Another hash: start over once if the parts came one by one, else that is the file."""
        found, resumed = sha256(self.part), not self._restarted and self._was_resumed
        self._discard()
        if not resumed:
            raise SourceError(_other_hash(self.source, self.source.url, found))
        self._restarted = True
        self.say("what had arrived before was of another file: starting over")

    def _arrived(self) -> bool:
        return self.part.exists() and sha256(self.part) == self.source.sha256

    def _size(self) -> int:
        return self.part.stat().st_size if self.part.exists() else 0

    @property
    def _memory(self) -> Path:
        return self.part.with_suffix(".json")

    @property
    def _was_resumed(self) -> bool:
        return self._memory.exists() and bool(json.loads(self._memory.read_text())["tries"] > 1)

    def _validator(self) -> str | None:
        """The strong ETag or the date of what has arrived, if it is of this source."""
        if not self._memory.exists():
            return None
        memory = json.loads(self._memory.read_text())
        return memory["validator"] if memory["url"] == self.source.url else None

    def _remember(self, response: http.client.HTTPResponse) -> None:
        tag = response.headers.get("ETag", "")
        strong = tag if tag and not tag.startswith("W/") else None
        memory = {
            "url": self.source.url,
            "validator": strong or response.headers.get("Last-Modified"),
            "tries": 1,
        }
        if self._memory.exists():
            memory["tries"] = json.loads(self._memory.read_text())["tries"] + 1
        self._memory.write_text(json.dumps(memory), encoding="utf-8")

    def _discard(self) -> None:
        self.part.unlink(missing_ok=True)
        self._memory.unlink(missing_ok=True)


def _copy_mirror(mirror: Path, target: Path, source: Http) -> None:
    if not mirror.is_file():
        raise SourceError(
            f"The mirror {mirror} of {source.url} is no file. Name the file itself in "
            "FACTORY_MIRRORS, or put a mirror.toml into the folder."
        )
    found = sha256(mirror)
    if found != source.sha256:
        raise SourceError(_other_hash(source, f"the mirror {mirror}", found))
    shutil.copyfile(mirror, target)


def _other_hash(source: Http, place: str, found: str) -> str:
    return (
        f"{place} is not the file that was declared: its sha256 is {found}, declared is "
        f"{source.sha256}. Nothing of it was used. Has the publisher replaced the file? Look at "
        "it before you change the declaration."
    )
