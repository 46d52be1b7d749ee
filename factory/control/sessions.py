"""The registry of local Ray sessions: who owns each, and what is left of those without an owner.

A local run belongs to the process that launched it and is never adopted. Each session is a file in
the state directory that names its owner; `sweep` ends what belongs to owners that are gone, and
leaves everything else alone. `local` makes the sessions, `processes` finds what belongs to one.
"""

import contextlib
import logging
import shutil
import uuid
from datetime import UTC, datetime
from pathlib import Path

from pydantic import BaseModel, ValidationError, field_validator

from factory.control.processes import Process, end_all
from factory.errors import RunFailed
from factory.namespace.manifest import wrong_fields
from factory.namespace.owner import Owner, this_process

SOCKET_ROOT = Path("/tmp")  # noqa: S108  a session's own directory in it is made with mode 0700
"""Where sessions keep their files. Ray puts sockets below it, whose paths may have 107 bytes."""


_PREFIX = "fy-"
_log = logging.getLogger(__name__)


class Session(BaseModel, frozen=True, extra="forbid"):
    """One local Ray cluster and its driver, as the registry remembers them."""

    id: str
    run_id: str
    owner: Owner
    directory: Path
    created_at: str

    @field_validator("directory")
    @classmethod
    def _is_ours(cls, directory: Path) -> Path:
        """It will be removed with all that is in it, so nothing but a session's own will do."""
        if not directory.is_absolute() or not directory.name.startswith(_PREFIX):
            raise ValueError(f"{directory} is not a session's directory")
        return directory

    def __str__(self) -> str:
        return f"session {self.id} of run {self.run_id}"


class Sessions:
    """The sessions of this machine that one state directory knows."""

    def __init__(self, state: Path, *, socket_root: Path = SOCKET_ROOT) -> None:
        self._records = state / "sessions"
        self._socket_root = socket_root

    def open(self, run_id: str) -> Session:
        """Register a session of this process and make its directory, for its owner's eyes only.

        The record is written first: whatever happens next, a sweep knows where to look.

        Raises:
            RunFailed: the state directory or the directory for sockets cannot be written.
        """
        session_id = uuid.uuid4().hex[:8]
        session = Session(
            id=session_id,
            run_id=run_id,
            owner=this_process(),
            directory=self._socket_root / f"{_PREFIX}{session_id}",
            created_at=datetime.now(UTC).isoformat(timespec="seconds"),
        )
        try:
            self._records.mkdir(parents=True, exist_ok=True)
            self._write(session)
            session.directory.mkdir(mode=0o700)
        except OSError as error:
            with contextlib.suppress(OSError):
                self._record(session_id).unlink(missing_ok=True)
            raise RunFailed(
                f"No Ray session for run {run_id}: {error.filename}: {error.strerror}. "
                f"A run needs to write in {self._records} and in {self._socket_root}."
            ) from error
        return session

    def close(self, session: Session) -> list[Process]:
        """End everything of a session and forget it. Returns the processes that could not be ended.

        A session of which something is left stays in the registry, for the next sweep.
        """
        left = end_all(session.id, session.directory)
        shutil.rmtree(session.directory, ignore_errors=True)
        if not left and not session.directory.exists():
            self._record(session.id).unlink(missing_ok=True)
        return left

    def all(self) -> list[Session]:
        """Every session on record. A record that nobody can read is named in the log."""
        found: list[Session] = []
        for path in sorted(self._records.glob("*.json")):
            try:
                found.append(Session.model_validate_json(path.read_bytes()))
            except FileNotFoundError:
                continue
            except ValidationError as error:
                _log.warning(
                    "%s is not a session's record and is passed over. Look for processes in %s, "
                    "then remove it. Wrong in it: %s.",
                    path,
                    self._socket_root,
                    wrong_fields(error),
                )
        return found

    def sweep(self) -> list[Session]:
        """End every session whose owner is gone. Returns those that were ended."""
        ended: list[Session] = []
        for session in self.all():
            if self.is_abandoned(session):
                self.close(session)
                ended.append(session)
        return ended

    def is_abandoned(self, session: Session) -> bool:
        """Whether its owner is gone.

        Certain for a process of this boot; another boot's processes are gone with it.
        """
        here = this_process()
        if session.owner.is_visible():
            return session.owner.is_gone()
        return session.owner.host == here.host and session.owner.boot_id != here.boot_id

    def _write(self, session: Session) -> None:
        scratch = self._records / f".{session.id}"
        scratch.write_text(session.model_dump_json(indent=2) + "\n", encoding="utf-8")
        scratch.replace(self._record(session.id))

    def _record(self, session_id: str) -> Path:
        return self._records / f"{session_id}.json"
