"""A tokenizer of Qwen's kind, and no network: whatever encodes has to find its files here."""

import socket
from pathlib import Path

import pytest

from factory.data.encoding import Encoder, Tokenizer, load
from tests.data.encoding import qwen_like


@pytest.fixture(autouse=True)
def _no_network(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing may connect or look up a name."""

    def refuse(*_: object) -> None:
        raise AssertionError("a tokenizer asked the network")

    for name in ("connect", "connect_ex"):
        monkeypatch.setattr(socket.socket, name, refuse)
    monkeypatch.setattr(socket, "getaddrinfo", refuse)


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return qwen_like.write(tmp_path_factory.mktemp("tokenizer") / "qwen-like")


@pytest.fixture(scope="session")
def qwen(folder: Path) -> Tokenizer:
    return load(folder)


@pytest.fixture(scope="session")
def encoder(qwen: Tokenizer) -> Encoder:
    return Encoder(qwen)
