"""No test here may reach for the network, and deliveries are made of plain files."""

import hashlib
import json
import socket
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.deliveries import statement

type MakeDelivery = Callable[..., Path]


class NetworkAttempt(AssertionError):
    """Something asked for an address or a connection."""


@pytest.fixture(autouse=True)
def attempts(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """Connections and look-ups are refused and remembered, whether or not the caller minds."""
    made: list[str] = []

    def refuse(*args: Any, **kwargs: Any) -> None:
        made.append("attempt")
        raise NetworkAttempt

    for name in ("connect", "connect_ex", "sendto"):
        monkeypatch.setattr(socket.socket, name, refuse)
    for name in ("create_connection", "getaddrinfo", "gethostbyname"):
        monkeypatch.setattr(socket, name, refuse)
    yield made
    assert made == []


@pytest.fixture
def make_delivery(tmp_path: Path) -> MakeDelivery:
    """Write files and the statement that lists them."""

    def make(files: dict[str, str | bytes], **changes: Any) -> Path:
        folder = tmp_path / "delivery"
        folder.mkdir(exist_ok=True)
        hashes: dict[str, str] = {}
        for name, content in files.items():
            data = content.encode() if isinstance(content, str) else content
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)
            hashes[name] = hashlib.sha256(data).hexdigest()
        text = json.dumps(statement(hashes, **changes))
        (folder / "delivery.json").write_text(text, encoding="utf-8")
        return folder

    return make
