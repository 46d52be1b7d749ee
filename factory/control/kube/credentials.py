"""Tokens: where a cluster's file says that its token is read from, and when it is read again.

A token is held here and in a request's header, and nowhere else: it is in no `repr`, no error and
no log, and neither is what a program prints when it does not print one.
"""

import base64
import json
import re
import subprocess
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Protocol

from factory.control.clusters.access import IN_CLUSTER, Exec, SecretKey
from factory.control.kube.fields import mapping, moment, text
from factory.control.kube.foreign_json import json_object
from factory.errors import ClusterError
from factory.settings import inherited_environment

EXEC_SECONDS = 60.0
"""What a program gets to print a token."""

MARGIN_SECONDS = 60.0
"""A token is asked for anew so long before its end, as clocks differ and requests take time."""

SECRET_SECONDS = 60.0
"""A Secret is read again after so long: nothing tells that it has changed."""

_EXEC_INFO = json.dumps(
    {
        "apiVersion": "client.authentication.k8s.io/v1",
        "kind": "ExecCredential",
        "spec": {"interactive": False},
    }
)
_TOKEN = re.compile(r"[!-~]+")


@dataclass(frozen=True)
class Pod:
    """What Kubernetes gives to the pod that the factory runs in."""

    folder: Path = Path("/var/run/secrets/kubernetes.io/serviceaccount")
    address: str = IN_CLUSTER

    @property
    def token(self) -> Path:
        """The pod's token, which the kubelet renews."""
        return self.folder / "token"

    @property
    def ca(self) -> Path:
        """The authority of its cluster."""
        return self.folder / "ca.crt"

    def namespace(self) -> str:
        """The Kubernetes namespace of the factory.

        Raises:
            ClusterError: this is no pod.
        """
        try:
            return (self.folder / "namespace").read_text(encoding="utf-8").strip()
        except OSError:
            raise ClusterError(
                f"this process runs in no pod ({self.folder} is not there), so it has neither a "
                "Secret beside it nor a token of its own. Use `token: {file: PATH}`."
            ) from None


class Tokens(Protocol):
    """A source of tokens."""

    def token(self) -> str:
        """The token that counts now.

        Raises:
            ClusterError: there is none; says where it was looked for.
        """
        ...

    def renew(self) -> None:
        """The server did not take the last one: do not hand it out again without looking."""
        ...


class FileTokens:
    """A file, which whoever renews the token replaces. It is read for every request."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def token(self) -> str:
        """The file's content.

        Raises:
            ClusterError: it cannot be read, or holds no token.
        """
        try:
            content = self._path.read_bytes()
        except OSError as error:
            raise ClusterError(
                f"its token cannot be read from {self._path} ({error.strerror}). Put one there, "
                "readable by whoever runs the factory."
            ) from None
        return _checked(content, str(self._path))

    def renew(self) -> None:
        """Nothing is kept."""


class _Kept(ABC):
    """A token that costs something to have: kept until shortly before its end."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._token: str | None = None
        self._until = 0.0

    def token(self) -> str:
        """The token that is kept, or a new one.

        Raises:
            ClusterError: there is no new one.
        """
        with self._lock:
            if self._token is None or time.time() >= self._until:
                self._token = None
                self._token, self._until = self._ask()
            return self._token

    def renew(self) -> None:
        """Forget it."""
        with self._lock:
            self._token = None

    @abstractmethod
    def _ask(self) -> tuple[str, float]:
        """A new token, and when it is to be asked for again."""


class ExecTokens(_Kept):
    """What a program prints: a token, or an `ExecCredential` with one and its end."""

    def __init__(self, program: Exec) -> None:
        super().__init__()
        self._program = program

    def _ask(self) -> tuple[str, float]:
        name = self._program.command[0]
        try:
            done = subprocess.run(  # noqa: S603  the cluster's file names it, and is reviewed
                self._program.command,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                check=False,
                timeout=EXEC_SECONDS,
                env={
                    **inherited_environment(),
                    "KUBERNETES_EXEC_INFO": _EXEC_INFO,
                    **self._program.environment,
                },
            )
        except subprocess.TimeoutExpired:
            raise ClusterError(
                f"{name} printed no token within {EXEC_SECONDS:g} s. Run it by hand: it may wait "
                "for somebody to log in."
            ) from None
        except OSError as error:
            raise ClusterError(
                f"{name}, which prints its token, cannot be run ({error.strerror}). Install it, or "
                "write its whole path under `token.exec.command`."
            ) from None
        if done.returncode:
            raise ClusterError(
                f"{name}, which prints its token, ended with code {done.returncode}. Run it by "
                "hand to see why; what it printed may be secret, and is not shown."
            )
        return _printed(done.stdout, name)


class SecretTokens(_Kept):
    """An entry of a Secret, which `read` gives as the API server has it."""

    def __init__(self, entry: SecretKey, read: Callable[[], Any]) -> None:
        super().__init__()
        self._entry = entry
        self._read = read

    def _ask(self) -> tuple[str, float]:
        where = f"Secret {self._entry.name}, entry {self._entry.key}"
        encoded = text(self._read(), "data", self._entry.key)
        if not encoded:
            raise ClusterError(f"its token is to be in {where}, and there is none. Add it.")
        try:
            content = base64.b64decode(encoded, validate=True)
        except ValueError:
            raise ClusterError(f"{where} is not in base64. Make the Secret anew.") from None
        return _checked(content, where), time.time() + SECRET_SECONDS


def expiry(token: str) -> datetime | None:
    """When a token ends, if it is a JSON web token that says so; nobody has proved its word."""
    parts = token.split(".")
    if len(parts) != 3:
        return None
    try:
        padded = parts[1] + "=" * (-len(parts[1]) % 4)
        ends = mapping(json_object(base64.urlsafe_b64decode(padded))).get("exp")
        return datetime.fromtimestamp(ends, UTC) if isinstance(ends, int | float) else None
    except (ValueError, OverflowError, OSError):
        return None


def _printed(output: bytes, name: str) -> tuple[str, float]:
    credential = json_object(output)
    if credential:
        token = _checked(text(credential, "status", "token").encode(), f"what {name} prints")
        ends = moment(credential, "status", "expirationTimestamp") or expiry(token)
    else:
        token = _checked(output, f"what {name} prints")
        ends = expiry(token)
    return token, float("inf") if ends is None else ends.timestamp() - MARGIN_SECONDS


def _checked(content: bytes, where: str) -> str:
    """The token, if that is what it is: anything else would end up in an error about a header."""
    token = content.decode("utf-8", "replace").strip()
    if not token:
        raise ClusterError(f"{where} holds no token. Put one there.")
    if not _TOKEN.fullmatch(token):
        raise ClusterError(f"{where} holds more than one word, so it is no token. Put one there.")
    return token
