"""Attempts of a run: which driver holds it, and the word to stop.

A run that was preempted or killed goes on as its next attempt. Of a driver that lives on although
it was given up (a node that was cut off, a second submission by mistake) nothing more may reach the
run's directory. So each driver claims its attempt's number once, `attempts/0002.json`, and before
everything that the driver or its workers write they look whether a later one has been claimed.

Between that look and the write lies a moment; what is written then has a name of its attempt's own
(messages, records), or is checked by its hash when it is read (checkpoints).
"""

import os
import re
import time
from dataclasses import dataclass

from pydantic import BaseModel, ValidationError

from factory.errors import NamespaceError, Superseded
from factory.namespace.failures import explained
from factory.namespace.run_files import contents, listed
from factory.namespace.runs import RunDirectory

ATTEMPTS = "attempts"
_CLAIM = re.compile(r"(\d{4,})\.json")


class _Claim(BaseModel, frozen=True):
    """Who has claimed an attempt, and when."""

    host: str
    pid: int
    at: float


@dataclass(frozen=True)
class Attempt:
    """One attempt of a run, as its driver and its workers hold it."""

    run: RunDirectory
    number: int

    def claim(self) -> None:
        """Take the run over from earlier attempts, once.

        Raises:
            Superseded: another driver has claimed this attempt, or a later one.
        """
        self.check()
        claim = _Claim(host=os.uname().nodename, pid=os.getpid(), at=time.time())
        try:
            self.run.create(self._file("json"), (claim.model_dump_json() + "\n").encode())
        except NamespaceError as error:
            if not (self.run.path / self._file("json")).exists():
                raise
            raise Superseded(
                f"Attempt {self.number} of run {self.run.run_id} has a driver already "
                f"({self._holder()}), so this one may not write and ends. A run that is to go on "
                "is given its next attempt: `factory resume`."
            ) from error
        self.check()

    def check(self) -> None:
        """Return if this attempt still holds the run.

        Raises:
            Superseded: a later attempt has been claimed.
        """
        latest = last_attempt(self.run)
        if latest > self.number:
            raise Superseded(
                f"Attempt {self.number} of run {self.run.run_id} was replaced by attempt {latest}, "
                "so nothing that it writes counts any more. It ends."
            )

    def stop(self) -> None:
        """Leave word for the workers to save and end."""
        if not self.told_to_stop:
            self.run.create(self._file("stop"), b"")

    @property
    def told_to_stop(self) -> bool:
        """Whether there is such word."""
        return (self.run.path / self._file("stop")).exists()

    def _file(self, suffix: str) -> str:
        return f"{ATTEMPTS}/{self.number:04d}.{suffix}"

    def _holder(self) -> str:
        try:
            claim = _Claim.model_validate_json(contents(self.run.path, self._file("json")))
        except (OSError, NamespaceError, ValidationError):
            return "on a machine that is not known"
        return f"process {claim.pid} on {claim.host}"


def last_attempt(run: RunDirectory) -> int:
    """The highest attempt that a driver has claimed; 0 before the first.

    Raises:
        NamespaceError: the claims cannot be listed.
    """
    with explained(run.root, f"reading {run}"):
        names = listed(run.path, ATTEMPTS)
    claims = (_CLAIM.fullmatch(name) for name in names)
    return max((int(claim[1]) for claim in claims if claim), default=0)
