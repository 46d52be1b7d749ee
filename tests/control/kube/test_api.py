"""One cluster's API server through faults, and a token that appears nowhere."""

import base64
import logging
import traceback
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from factory.control.kube.api import Api, Patience, Pod, connect
from factory.errors import ClusterError, ClusterOutOfReach, ClusterRefused
from tests.cluster.certificates import write_server_identity
from tests.control.a_cluster import a_cluster
from tests.control.kube.a_server import Reply, Request, Server, serving

CANARY = "canary-6f1d0c-token"
QUICK = Patience(connect_seconds=20, answer_seconds=20, budget_seconds=2.5, first_wait_seconds=0.02)
PODS = "/api/v1/namespaces/training/pods"

type Connected = Callable[..., Api]


class Clock:
    """The client's clock: only what it waits between its tries takes time."""

    def __init__(self) -> None:
        self.waits: list[float] = []

    def monotonic(self) -> float:
        return sum(self.waits)

    def sleep(self, seconds: float) -> None:
        self.waits.append(seconds)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    made = Clock()
    monkeypatch.setattr("factory.control.kube.api.time", made)
    return made


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    with serving(tmp_path) as running:
        yield running


@pytest.fixture
def token(tmp_path: Path) -> Path:
    path = tmp_path / "token"
    path.write_text(f"{CANARY}\n")
    return path


@pytest.fixture
def connected(server: Server, token: Path, caplog: pytest.LogCaptureFixture) -> Iterator[Connected]:
    """A client of the server; the token must be in no log, however much is logged."""
    caplog.set_level(logging.DEBUG)
    made: list[Api] = []

    def make(patience: Patience = QUICK, pod: Pod | None = None, **changes: Any) -> Api:
        fields = {"api_server": server.address, "ca": {"file": str(server.ca)}, **changes}
        fields["token"] = {"file": None, **fields.get("token", {"file": str(token)})}
        made.append(connect(a_cluster(**fields), pod=pod, patience=patience))
        return made[-1]

    yield make
    for api in made:
        api.close()
        assert CANARY not in repr(vars(api))
    logged = [record.getMessage() for record in caplog.get_records("call")]
    assert not [line for line in logged if CANARY in line]


def fails(what: Callable[[], Any], kind: type[ClusterError] = ClusterError) -> str:
    """The error's message. The token is neither in it nor in what is printed of it."""
    with pytest.raises(kind) as caught:
        what()
    assert CANARY not in "".join(traceback.format_exception(caught.value))
    assert "gpu-west" in str(caught.value)
    return str(caught.value)


def test_a_request_carries_the_token_and_gets_an_object(
    server: Server, connected: Connected
) -> None:
    server.replies = [Reply(body={"items": [{"a": 1}]}), Reply(201, {"made": True})]
    api = connected()
    assert api.items(PODS, labelSelector="a=b,c") == [{"a": 1}]
    assert api.create(PODS, {"x": "y"}, dryRun="All") == {"made": True}
    assert server.requests == [
        Request("GET", f"{PODS}?labelSelector=a%3Db%2Cc", CANARY, None),
        Request("POST", f"{PODS}?dryRun=All", CANARY, {"x": "y"}),
    ]


def test_a_deletion(server: Server, connected: Connected) -> None:
    api = connected()
    api.delete(f"{PODS}/a", {"propagationPolicy": "Foreground"})
    assert [(one.method, one.body) for one in server.requests] == [
        ("DELETE", {"propagationPolicy": "Foreground"}),
    ]


def test_a_token_that_is_replaced_is_used_at_once(
    server: Server, connected: Connected, token: Path
) -> None:
    api = connected()
    api.get("/version")
    token.write_text("second")
    api.get("/version")
    assert [one.token for one in server.requests] == [CANARY, "second"]


def test_401_is_tried_once_with_a_token_read_anew(
    server: Server, connected: Connected, tmp_path: Path
) -> None:
    source = tmp_path / "printed"
    source.write_text("first")
    api = connected(token={"exec": {"command": ["cat", str(source)]}})
    api.get("/version")
    source.write_text("second")
    api.get("/version")  # nothing says that it ends, so it is kept
    server.replies = [Reply(401), Reply(body={"ok": True})]
    assert api.get("/version") == {"ok": True}
    assert [one.token for one in server.requests] == ["first", "first", "first", "second"]


def test_401_twice_is_the_end(server: Server, connected: Connected) -> None:
    server.answer = lambda _: Reply(401, {"message": f"Unauthorized {CANARY}"})
    said = fails(lambda: connected().get("/version"), ClusterRefused)
    assert "GET /version: the token is not taken (401)" in said
    assert len(server.requests) == 2


def test_429_waits_as_long_as_it_was_asked_to(
    server: Server, connected: Connected, clock: Clock
) -> None:
    server.replies = [Reply(429, headers={"Retry-After": "2"}), Reply(body={"ok": True})]
    assert connected().get("/version") == {"ok": True}
    assert clock.waits == [2.0]


def test_429_for_longer_than_the_budget_is_not_waited_for(
    server: Server, connected: Connected, clock: Clock
) -> None:
    server.replies = [Reply(429, {"message": "too many"}, headers={"Retry-After": "3600"})]
    said = fails(lambda: connected().get("/version"), ClusterOutOfReach)
    assert "busy (429) after 1 try" in said
    assert "too many" in said
    assert clock.waits == []


@pytest.mark.parametrize("fault", [Reply(503), Reply(500), Reply(dropped=True)])
def test_a_fault_that_passes_is_no_fault(
    server: Server, connected: Connected, fault: Reply
) -> None:
    server.replies = [fault, fault, fault, Reply(body={"ok": True})]
    assert connected().get("/version") == {"ok": True}
    assert len(server.requests) == 4


@pytest.mark.parametrize(
    ("fault", "words"),
    [
        (Reply(503, {"message": f"overloaded by {CANARY}"}), "failed (503)"),
        (Reply(dropped=True), "(the connection was cut). See whether"),
        (Reply(after_seconds=1), "(it did not answer in time). See whether"),
    ],
    ids=["503", "dropped", "slow"],
)
def test_a_fault_that_stays_is_out_of_reach_within_the_budget(
    server: Server, connected: Connected, clock: Clock, fault: Reply, words: str
) -> None:
    server.answer = lambda _: fault
    impatient = replace(QUICK, answer_seconds=0.3 if fault.after_seconds else 20.0)
    said = fails(lambda: connected(impatient).get("/version"), ClusterOutOfReach)
    assert words in said
    assert "GET /version" in said
    assert len(clock.waits) > 1
    assert sum(clock.waits) <= QUICK.budget_seconds


def test_nobody_listens(server: Server, connected: Connected) -> None:
    said = fails(lambda: connected(api_server="https://127.0.0.1:1").get("/version"))
    assert "See whether https://127.0.0.1:1 is up" in said


def test_another_authority_is_told_at_once(
    server: Server, connected: Connected, clock: Clock, tmp_path: Path
) -> None:
    other = tmp_path / "other"
    other.mkdir()
    write_server_identity(other, "another", ["127.0.0.1"])
    said = fails(lambda: connected(ca={"file": str(other / "ca.crt")}).get("/version"))
    assert "does not prove to be that cluster" in said
    assert "`api_server` and `ca`" in said
    assert clock.waits == []
    assert server.requests == []  # so the token went nowhere


def test_the_machines_own_authorities_do_not_know_it(server: Server, connected: Connected) -> None:
    assert "does not prove" in fails(lambda: connected(ca=None).get("/version"))
    assert server.requests == []


def test_another_name_in_the_certificate(server: Server, connected: Connected) -> None:
    address = server.address.replace("127.0.0.1", "localhost")
    assert "does not prove" in fails(lambda: connected(api_server=address).get("/version"))


def test_an_authority_in_the_file_itself(server: Server, connected: Connected) -> None:
    assert connected(ca={"inline": server.ca.read_text(), "file": None}).get("/version") == {}


def test_two_clusters_have_clients_of_their_own(
    server: Server, connected: Connected, tmp_path: Path
) -> None:
    folder = tmp_path / "east"
    folder.mkdir()
    (folder / "token").write_text("of-east")
    with serving(folder) as east:
        changes = {"api_server": east.address, "ca": {"file": str(east.ca)}}
        both = [connected(), connected(token={"file": str(folder / "token")}, **changes)]
        for api in (*both, *both):
            api.get("/version")
        assert [one.token for one in east.requests] == ["of-east"] * 2
        assert [one.token for one in server.requests] == [CANARY] * 2


def test_a_redirect_is_not_followed(server: Server, connected: Connected, tmp_path: Path) -> None:
    folder = tmp_path / "elsewhere"
    folder.mkdir()
    with serving(folder) as elsewhere:
        server.answer = lambda _: Reply(
            302, headers={"Location": f"{elsewhere.address}/x?token={CANARY}"}
        )
        said = fails(lambda: connected().get("/version"))
        assert "sends elsewhere (302, to https://127.0.0.1)" in said
        assert elsewhere.requests == []
    assert len(server.requests) == 1


@pytest.mark.parametrize("body", [b"<html>log in</html>", b"[]", b"\xff\xfe", b""])
def test_what_is_no_object(server: Server, connected: Connected, body: bytes) -> None:
    server.answer = lambda _: Reply(body=body)
    said = fails(lambda: connected().get("/version"))
    assert f"See whether {server.address} is its API server" in said
    assert connected().read("/version") == body  # a log may be anything


def test_a_refusal_has_its_status_and_the_servers_words(
    server: Server, connected: Connected
) -> None:
    for status, words in ((404, "not found"), (409, "exists"), (422, "is invalid")):
        server.answer = lambda _, s=status, w=words: Reply(s, {"message": f"x {w} {CANARY}"})
        with pytest.raises(ClusterRefused) as refused:
            connected().get(PODS)
        assert refused.value.status == status
        assert words in str(refused.value)
        assert CANARY not in str(refused.value)
    assert len(server.requests) == 3


def test_403_names_the_command_that_lists_what_is_needed(
    server: Server, connected: Connected
) -> None:
    server.answer = lambda _: Reply(403, {"message": "pods is forbidden"})
    said = fails(lambda: connected().get(PODS), ClusterRefused)
    assert "pods is forbidden. `factory cluster check gpu-west`" in said


def test_an_authority_that_cannot_be_read(connected: Connected, tmp_path: Path) -> None:
    said = fails(lambda: connected(ca={"file": str(tmp_path / "none")}))
    assert "certificate authority cannot be read" in said
    (tmp_path / "text").write_text("no certificate")
    said = fails(lambda: connected(ca={"file": str(tmp_path / "text")}))
    assert "is no PEM certificate" in said


@pytest.fixture
def pod(server: Server, tmp_path: Path) -> Pod:
    """What the kubelet gives to the factory's pod, whose cluster is the server too."""
    folder = tmp_path / "serviceaccount"
    folder.mkdir()
    (folder / "token").write_text("of-the-pod")
    (folder / "ca.crt").write_bytes(server.ca.read_bytes())
    (folder / "namespace").write_text("factory\n")
    return Pod(folder, server.address)


def test_in_a_pod_address_authority_and_token_are_there(
    server: Server, connected: Connected, pod: Pod
) -> None:
    api = connected(pod=pod, api_server=None, ca=None, token={"in_cluster": True})
    api.get("/version")
    pod.token.write_text("renewed")
    api.get("/version")
    assert [one.token for one in server.requests] == ["of-the-pod", "renewed"]


def test_a_token_in_a_secret_beside_the_factory(
    server: Server, connected: Connected, pod: Pod
) -> None:
    held = [CANARY]

    def answer(request: Request) -> Reply:
        if "/secrets/" in request.path:
            return Reply(body={"data": {"token": base64.b64encode(held[0].encode()).decode()}})
        return Reply(200 if request.token == held[0] else 401)

    server.answer = answer
    api = connected(pod=pod, token={"secret": {"name": "gpu-west"}})
    api.get("/version")
    api.get("/version")
    held[0] = "second"
    api.get("/version")
    asked = [(one.path, one.token) for one in server.requests]
    secret = ("/api/v1/namespaces/factory/secrets/gpu-west", "of-the-pod")
    old, new = ("/version", CANARY), ("/version", "second")
    assert asked == [secret, old, old, old, secret, new]


def test_a_secret_that_is_not_there(server: Server, connected: Connected, pod: Pod) -> None:
    server.answer = lambda _: Reply(404, {"message": "secrets x not found"})
    api = connected(pod=pod, token={"secret": {"name": "x"}})
    with pytest.raises(ClusterRefused) as refused:
        api.get(PODS)
    assert refused.value.status == 0  # it is not the pods that are not there
    assert "secrets x not found" in str(refused.value)
    server.answer = lambda _: Reply(body={"data": {"other": "eA=="}})
    assert "Secret x, entry token, and there is none" in fails(lambda: api.get(PODS))


def test_outside_of_a_pod(connected: Connected, tmp_path: Path) -> None:
    nowhere = Pod(tmp_path / "none")
    said = fails(lambda: connected(pod=nowhere, token={"secret": {"name": "x"}}))
    assert "runs in no pod" in said
    said = fails(lambda: connected(pod=nowhere, token={"in_cluster": True}).get(PODS))
    assert "token cannot be read" in said
