"""What no API server says, but something between may: it is no answer, and ends nothing."""

import gzip
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from factory.control.clusters import Kubernetes
from factory.control.kube import wire
from factory.control.kube.api import Api, Patience, connect
from factory.control.kube.checkup import checkup
from factory.control.kube.foreign_json import json_object
from factory.control.kube.looking import Lookout
from factory.control.kube.observed import Seen
from factory.errors import ClusterOutOfReach
from tests.control.a_cluster import a_cluster
from tests.control.kube.a_server import Reply, Server, serving
from tests.control.kube.submissions import submission

ONCE = Patience(connect_seconds=5.0, answer_seconds=5.0, budget_seconds=0.0)
QUICK = Patience(connect_seconds=0.5, answer_seconds=0.5, budget_seconds=0.0)
OK = b"HTTP/1.1 200 OK\r\n"
IMAGE = "x/y@sha256:" + "a" * 64

ODD = {
    "elsewhere": Reply(302, headers={"Location": "http://[login"}),
    "elsewhere at a port": Reply(301, headers={"Location": "https://x:abc/"}),
    "nested": Reply(body=b"[" * 200_000),
    "nested objects": Reply(body=b'{"a":' * 100_000),
    "a nested refusal": Reply(400, b"[" * 200_000),
    "a page": Reply(body=b"<html>log in</html>"),
    "a list": Reply(body=[1, 2]),
    "half of it": Reply(body=b'{"items": [{"metadata"'),
    "no text": Reply(body=b"\xff\xfe\x00"),
    "a long number": Reply(body=b'{"items": ' + b"9" * 5000 + b"}"),
    "not packed": Reply(body=b"not packed", headers={"Content-Encoding": "gzip"}),
    "packed otherwise": Reply(body=b"\x1f\x8b\x08", headers={"Content-Encoding": "deflate"}),
    "nothing": Reply(204, b""),
    "no HTTP": Reply(drips=b"SSH-2.0-x\r\n"),
}

DRIPS = {
    "a body": Reply(begins=OK + b"Content-Length: 999999\r\n\r\n{", drips=b" "),
    "a body without a length": Reply(begins=OK + b"Connection: close\r\n\r\n{}", drips=b" "),
    "a body of no length": Reply(begins=OK + b"Content-Length: abc\r\n\r\n{", drips=b" "),
    "chunks": Reply(begins=OK + b"Transfer-Encoding: chunked\r\n\r\n", drips=b"1\r\n \r\n"),
    "a refusal": Reply(begins=b"HTTP/1.1 403 no\r\nContent-Length: 99999\r\n\r\n{", drips=b" "),
    "headers": Reply(begins=OK, drips=b"X"),
    "wait": Reply(drips=b"HTTP/1.1 100 Continue\r\n\r\n"),
}


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    (tmp_path / "token").write_text("canary-2b7e-token")
    with serving(tmp_path) as running:
        yield running


def of(server: Server) -> dict[str, Any]:
    ca = str(server.ca)
    token = {"file": str(server.ca.parent / "token")}
    return {"api_server": server.address, "ca": {"file": ca}, "token": token}


def client(server: Server, patience: Patience = ONCE) -> Api:
    return connect(a_cluster(**of(server)), patience=patience)


def seen(server: Server, reply: Reply, patience: Patience = ONCE) -> str:
    """Why a look at an attempt saw nothing."""
    server.answer = lambda _: reply
    chosen = submission(cluster=of(server))
    return Lookout(connect(chosen.cluster, patience=patience), chosen).look(Seen())[0].unreachable


@pytest.mark.parametrize("odd", ODD.values(), ids=ODD)
def test_a_look_that_gets_an_odd_answer_has_seen_nothing(server: Server, odd: Reply) -> None:
    assert "gpu-west" in seen(server, odd)


@pytest.mark.parametrize("drip", DRIPS.values(), ids=DRIPS)
def test_an_answer_that_drips_is_cut_off(server: Server, drip: Reply) -> None:
    begun = time.monotonic()
    assert "did not end in time" in seen(server, drip, QUICK)
    assert time.monotonic() - begun < 10
    server.answer = lambda _: Reply(body={"gitVersion": "v1"})
    assert client(server).get("/version") == {"gitVersion": "v1"}


@pytest.mark.parametrize("odd", ODD.values(), ids=ODD)
def test_a_check_of_a_cluster_says_so_in_its_table(server: Server, odd: Reply) -> None:
    server.answer = lambda _: odd

    def connected(cluster: Kubernetes) -> Api:
        return connect(cluster, patience=ONCE)

    [line] = checkup(a_cluster(**of(server)), IMAGE, connected)
    assert (line.what, line.state) == ("address", "failed")


def test_a_whole_answer_has_a_largest_size(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wire, "LARGEST_ANSWER_BYTES", 1 << 20)
    most = b'{"a":"' + b"x" * ((1 << 20) - 8) + b'"}'
    server.answer = lambda _: Reply(body=most)
    assert len(client(server).get("/version")["a"]) == len(most) - 8
    server.answer = lambda _: Reply(body=most + b" ")
    with pytest.raises(ClusterOutOfReach, match="more than 1,048,576 bytes"):
        client(server).get("/version")


@pytest.mark.parametrize("status", [200, 403, 302])
def test_what_is_packed_counts_as_it_is_unpacked(
    server: Server, monkeypatch: pytest.MonkeyPatch, status: int
) -> None:
    """A thousandth of it is sent, also with a refusal."""
    monkeypatch.setattr(wire, "LARGEST_ANSWER_BYTES", 1 << 20)
    bomb = gzip.compress(b'{"message":"' + b"x" * (8 << 20) + b'"}')
    assert len(bomb) < 1 << 14
    server.answer = lambda _: Reply(status, bomb, {"Content-Encoding": "gzip", "Location": "/x"})
    with pytest.raises(ClusterOutOfReach, match="more than 1,048,576 bytes"):
        client(server).get("/version")


def test_what_is_packed_is_read(server: Server) -> None:
    packed = gzip.compress(b'{"gitVersion": "v1"}')
    server.answer = lambda _: Reply(body=packed, headers={"Content-Encoding": "gzip"})
    assert client(server).get("/version") == {"gitVersion": "v1"}


def test_a_connection_is_kept(server: Server) -> None:
    """A look costs two requests, and a handshake would cost more than both."""
    api = client(server)
    for _ in range(3):
        api.get("/version")
    assert server.connections == 1


def test_text_of_an_object_can_be_written_down() -> None:
    found = json_object(b'{"message": "\\ud800 \\uD83D\\uDE00", "\\udfff": 1}')
    assert found == {"message": "? \U0001f600", "?": 1}
