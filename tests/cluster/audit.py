"""What an API server was asked, as it writes it down itself: the audit log of service accounts."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

_POLICY = {
    "apiVersion": "audit.k8s.io/v1",
    "kind": "Policy",
    "omitStages": ["RequestReceived"],
    "rules": [
        {"level": "Metadata", "userGroups": ["system:serviceaccounts"]},
        {"level": "None"},
    ],
}


@dataclass(frozen=True, kw_only=True)
class Asked:
    """One request, whatever came of it."""

    at: float
    """Seconds since the epoch."""
    verb: str
    what: str
    """The resource, with its part if it has one."""
    name: str
    status: int
    agent: str


@dataclass(frozen=True)
class Audit:
    """The log of one API server, which was started with these flags."""

    folder: Path

    def flags(self) -> list[str]:
        """For the API server."""
        policy = self.folder / "policy.json"
        policy.write_text(json.dumps(_POLICY), encoding="utf-8")
        return [f"--audit-policy-file={policy}", f"--audit-log-path={self._log}"]

    @property
    def _log(self) -> Path:
        return self.folder / "audit.log"

    def asked(self, user: str, since: float = 0.0, until: float = float("inf")) -> list[Asked]:
        """The requests of one user, in that time. A long one counts once, from its beginning."""
        found = {
            event["auditID"]: _asked(event)
            for event in self._events()
            if event["user"]["username"] == user
        }
        return sorted(
            (one for one in found.values() if since <= one.at < until), key=lambda one: one.at
        )

    def _events(self) -> Iterator[dict[str, Any]]:
        with self._log.open(encoding="utf-8") as lines:
            for line in lines:
                if line.endswith("\n"):  # the server may be writing the last one
                    yield json.loads(line)


def _asked(event: dict[str, Any]) -> Asked:
    of: dict[str, str] = event.get("objectRef", {})
    answered: dict[str, Any] = event.get("responseStatus", {})
    part = of.get("subresource", "")
    resource = of.get("resource", "")
    return Asked(
        at=datetime.fromisoformat(event["requestReceivedTimestamp"]).timestamp(),
        verb=event["verb"],
        what=f"{resource}/{part}" if part else resource,
        name=of.get("name", ""),
        status=answered.get("code", 0),
        agent=event.get("userAgent", ""),
    )
