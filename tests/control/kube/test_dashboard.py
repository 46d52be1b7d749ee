"""The dashboard of a run's head through faults, behind a proxy with TLS and two tokens."""

import contextlib
import socket
import ssl
import threading
import time
from collections.abc import Generator, Iterator
from dataclasses import replace
from http import HTTPStatus
from pathlib import Path

import pytest

from factory.control.kube.api import connect
from factory.control.kube.dashboard import Dashboard, Job
from factory.control.kube.link import Link
from factory.errors import ClusterError, ClusterOutOfReach, ClusterRefused
from tests.cluster.dashboard import Job as Scripted
from tests.cluster.dashboard import dashboard
from tests.cluster.dashboard_log import lines_of
from tests.control.a_cluster import a_cluster
from tests.control.kube.dashboards import (
    API_CANARY,
    JOB,
    PATIENCE,
    RAY_CANARY,
    RAY_CLUSTER,
    Proxied,
    proxied,
)


@contextlib.contextmanager
def dripping(begins: bytes, drips: bytes) -> Generator[int]:
    """The port of a server that answers everybody piece by piece, for ever."""

    def answer(connection: socket.socket) -> None:
        with connection, contextlib.suppress(OSError):
            connection.sendall(begins)
            while True:
                connection.sendall(drips)
                time.sleep(0.05)

    def accept() -> None:
        with contextlib.suppress(OSError):
            while True:
                made = server.accept()[0]
                threading.Thread(target=answer, args=(made,), daemon=True).start()

    with socket.create_server(("127.0.0.1", 0)) as server:
        threading.Thread(target=accept, daemon=True).start()
        yield server.getsockname()[1]


@pytest.fixture
def head(tmp_path: Path) -> Iterator[Proxied]:
    with proxied(tmp_path) as made:
        yield made


def job_of(head: Proxied) -> Job:
    found = head.client.job_status(JOB)
    assert found is not None
    return found


def test_a_job_is_asked_for_and_stopped_through_the_proxy(head: Proxied) -> None:
    found = head.client.job_status(JOB)
    assert found == Job(id=JOB, status="RUNNING", node_id="a" * 56)
    assert not job_of(head).ended
    assert head.client.stop_job(JOB)
    assert head.told.stopped == [JOB]
    assert job_of(head).ended
    assert head.client.address.endswith(
        f"/api/v1/namespaces/training/services/http:{RAY_CLUSTER}-head-svc:dashboard/proxy"
    )


def test_a_job_that_the_head_does_not_know_is_none_and_need_not_be_stopped(head: Proxied) -> None:
    assert head.client.job_status("another/../job") is None
    assert not head.client.stop_job("another")


def test_workers_that_ray_took_for_dead(head: Proxied, monkeypatch: pytest.MonkeyPatch) -> None:
    died = {"state": "DEAD", "state_message": "Unexpected termination: health check failed"}
    nodes = [
        {"node_ip": "10.0.0.2", "state": "ALIVE", "state_message": None, "is_head_node": False},
        {"node_ip": "10.0.0.3", "is_head_node": False, **died},
        {"node_ip": "10.0.0.4", "is_head_node": True, **died},
        {"node_ip": "10.0.0.5", **died, "state_message": "Expected termination: received SIGTERM"},
    ]
    answer = {"result": True, "data": {"result": {"total": 4, "result": nodes}}}
    monkeypatch.setattr(head.told, "answer", lambda *_: (HTTPStatus.OK, answer))
    said = ["Ray on 10.0.0.3: Unexpected termination: health check failed"]
    assert head.client.lost_workers() == said
    monkeypatch.setattr(head.told, "answer", lambda *_: (HTTPStatus.OK, {"data": "nothing"}))
    assert head.client.lost_workers() == []


def test_an_address_where_there_is_no_dashboard_is_an_error(
    head: Proxied, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(head.told, "answer", lambda *_: (HTTPStatus.NOT_FOUND, "404: Not Found"))
    with pytest.raises(ClusterRefused, match="404"):
        head.client.job_status(JOB)


def test_a_service_that_is_not_there_yet_is_no_error(
    head: Proxied, monkeypatch: pytest.MonkeyPatch
) -> None:
    said = {"kind": "Status", "message": f'services "{RAY_CLUSTER}-head-svc" not found'}
    monkeypatch.setattr(head.told, "answer", lambda *_: (HTTPStatus.NOT_FOUND, said))
    assert head.client.job_status(JOB) is None


def test_fields_of_another_kind_read_as_empty(
    head: Proxied, monkeypatch: pytest.MonkeyPatch
) -> None:
    strange = {"status": None, "message": ["x"], "driver_exit_code": "1", "driver_node_id": 7}
    monkeypatch.setattr(Scripted, "as_answer", lambda _: strange)
    assert head.client.job_status(JOB) == Job(id=JOB, status="")


def test_at_an_address_of_its_own_the_token_of_the_api_server_is_not_shown(tmp_path: Path) -> None:
    (tmp_path / "token").write_text(API_CANARY)
    with dashboard("127.0.0.1") as told:
        told.token = RAY_CANARY
        told.jobs[JOB] = Scripted(JOB, "x", status="RUNNING")
        template = f"http://127.0.0.1:{told.port}/{{cluster}}/proxy"
        cluster = a_cluster(
            ca=None,
            token={"file": str(tmp_path / "token")},
            dashboard={"route": "template", "template": template},
        )
        client = Dashboard(connect(cluster), cluster, RAY_CLUSTER, RAY_CANARY)
        assert client.job_status(JOB)
        assert not any(headers["Authorization"] for headers in told.asked)


@pytest.mark.parametrize("status", [403, 429, 500, 503])
def test_a_refusal_says_which_and_holds_no_token(
    head: Proxied, monkeypatch: pytest.MonkeyPatch, status: int
) -> None:
    said = {"error": f"you came with {RAY_CANARY} and {API_CANARY}"}
    monkeypatch.setattr(head.told, "answer", lambda *_: (HTTPStatus(status), said))
    with pytest.raises(ClusterError, match=f"was answered with {status}") as caught:
        head.client.job_status(JOB)
    assert RAY_CANARY not in str(caught.value)
    assert API_CANARY not in str(caught.value)
    assert isinstance(caught.value, ClusterRefused) == (status == 403)
    assert isinstance(caught.value, ClusterOutOfReach) == (status != 403)


def test_a_token_that_is_not_taken_is_a_refusal(head: Proxied) -> None:
    head.told.token = API_CANARY
    with pytest.raises(ClusterRefused) as caught:
        head.client.job_status(JOB)
    assert caught.value.status == 401


def test_a_token_that_no_header_can_hold_is_not_shown(head: Proxied) -> None:
    client = Dashboard(head.api, a_cluster(), RAY_CLUSTER, "canary\r\nX-More: 1", PATIENCE)
    with pytest.raises(ClusterError) as caught:
        client.job_status(JOB)
    assert "canary" not in str(caught.value)
    assert "canary" not in repr(client)


def test_a_page_in_front_of_it_is_no_dashboard(
    head: Proxied, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(head.told, "answer", lambda *_: (HTTPStatus.OK, ["a list"]))
    with pytest.raises(ClusterError, match="something else than a JSON object"):
        head.client.job_status(JOB)


def test_an_answer_without_an_end_of_its_size_is_not_taken(
    head: Proxied, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("factory.control.kube.link.LARGEST_ANSWER_BYTES", 100)
    monkeypatch.setattr(head.told, "answer", lambda *_: (HTTPStatus.OK, {"x": "y" * 200}))
    with pytest.raises(ClusterError, match="more than 100 bytes"):
        head.client.job_status(JOB)


def test_an_answer_nested_without_an_end_is_out_of_reach(
    head: Proxied, monkeypatch: pytest.MonkeyPatch
) -> None:
    def ask(*_: object) -> bytes:
        return b"[" * 200_000

    monkeypatch.setattr(Link, "ask", ask)
    with pytest.raises(ClusterOutOfReach, match="something else than a JSON object"):
        head.client.job_status(JOB)


def test_nobody_who_listens_is_out_of_reach(head: Proxied) -> None:
    head.told.stop()
    head.told.stop = lambda: None  # type: ignore[method-assign]
    with pytest.raises(ClusterOutOfReach, match="ConnectionRefusedError"):
        head.client.job_status(JOB)


def test_a_server_that_says_nothing_is_given_up() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        port = silent.getsockname()[1]
        template = f"http://127.0.0.1:{port}/{{cluster}}"
        cluster = a_cluster(ca=None, dashboard={"route": "template", "template": template})
        quick = replace(PATIENCE, answer_seconds=0.2)
        client = Dashboard(connect(cluster), cluster, RAY_CLUSTER, RAY_CANARY, quick)
        begun = time.monotonic()
        with pytest.raises(ClusterOutOfReach, match="TimeoutError"):
            client.job_status(JOB)
        assert time.monotonic() - begun < 30


@pytest.mark.parametrize("begins", [b"", b"HTTP/1.1 200 OK\r\nContent-Length: 999\r\n\r\n"])
def test_an_answer_that_drips_is_given_up(begins: bytes) -> None:
    """No read of it takes long, and a read is what a time-out of a socket is for."""
    with dripping(begins, b"HTTP/1.1 100 Continue\r\n\r\n") as port:
        template = f"http://127.0.0.1:{port}/{{cluster}}"
        cluster = a_cluster(ca=None, dashboard={"route": "template", "template": template})
        quick = replace(PATIENCE, connect_seconds=0.5, answer_seconds=0.5)
        client = Dashboard(connect(cluster), cluster, RAY_CLUSTER, RAY_CANARY, quick)
        begun = time.monotonic()
        with pytest.raises(ClusterOutOfReach):
            client.job_status(JOB)
        assert time.monotonic() - begun < 10
        with pytest.raises(ClusterOutOfReach):
            list(client.logs(Job(id=JOB, status="RUNNING", node_id="a"), 0.5))
        assert time.monotonic() - begun < 20


@pytest.mark.parametrize("address", ["http://127.0.0.1:abc", "http://[login"])
def test_an_address_that_is_none_is_out_of_reach(address: str) -> None:
    link = Link(address, dict, ssl.create_default_context, 1.0)
    with pytest.raises(ClusterOutOfReach):
        link.ask("GET", "/", 1.0)


def test_a_log_comes_as_it_is(head: Proxied) -> None:
    head.job.log.data = bytes(range(256)) * 5_000 + b"\r\nno line break at the end"
    assert b"".join(head.client.logs(job_of(head), 60)) == head.job.log.data
    head.job.log.data = b""
    assert list(head.client.logs(job_of(head), 60)) == []


def test_a_log_that_was_cut_off_is_no_whole_log(head: Proxied) -> None:
    head.job.log.data = lines_of(5_000)
    head.job.log.cuts = [100_000]
    with pytest.raises(ClusterOutOfReach):
        list(head.client.logs(job_of(head), 60))


def test_a_log_that_takes_too_long_is_given_up(head: Proxied) -> None:
    head.job.log.data = b"x" * (4 << 20)
    head.job.log.block_bytes = 64  # about as slow as the other side of the world
    begun = time.monotonic()
    with pytest.raises(ClusterOutOfReach, match="too slowly"):
        list(head.client.logs(job_of(head), 0.3))
    assert time.monotonic() - begun < 30


def test_the_log_of_a_node_that_is_gone_is_an_error(head: Proxied) -> None:
    gone = replace(job_of(head), node_id="b" * 56)
    with pytest.raises(ClusterOutOfReach, match="500"):
        list(head.client.logs(gone, 30))
    with pytest.raises(ClusterOutOfReach, match="500"):
        list(head.client.tail(gone))


def test_a_tail_says_when_nothing_comes_and_goes_on(
    head: Proxied, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("factory.control.kube.following.IDLE_SECONDS", 0.05)
    tail = head.client.tail(job_of(head))
    head.job.log.data = b"hal"
    got = next(block for block in tail if block)
    assert next(tail) == b""
    head.job.log.data = b"half a line\n"
    got += next(block for block in tail if block)
    assert got == b"half a line\n"
    head.job.log.ended = True
    with pytest.raises(ClusterOutOfReach):
        next(block for block in tail if block)


def test_a_tail_waits_for_a_log_that_is_still_empty(head: Proxied) -> None:
    """Ray does not begin its answer before the first byte."""
    tail = head.client.tail(job_of(head))
    assert next(tail) == b""
    head.job.log.data = b"at last\n"
    assert next(block for block in tail if block) == b"at last\n"
    tail.close()


def test_a_tail_that_is_left_ends_its_thread_and_its_connection(head: Proxied) -> None:
    head.job.log.data = b"x" * (8 << 20)
    before = threading.active_count()
    for taken in (0, 1, 50):
        tail = head.client.tail(job_of(head))
        for _ in range(taken):
            next(tail)
        tail.close()
    deadline = time.monotonic() + 30
    while any(thread.name == "dashboard" for thread in threading.enumerate()):
        assert time.monotonic() < deadline
        time.sleep(0.01)
    assert threading.active_count() <= before + 3  # those of the scripted server


def test_a_tail_that_is_not_taken_holds_only_a_few_blocks(head: Proxied) -> None:
    head.job.log.data = b"x" * (64 << 20)
    tail = head.client.tail(job_of(head))
    assert next(tail)
    time.sleep(0.3)
    assert head.job.log.served[-1] < 16 << 20
    tail.close()


def test_a_thread_that_fails_is_not_waited_for(
    head: Proxied, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object) -> None:
        raise AttributeError(RAY_CANARY)

    monkeypatch.setattr("factory.control.kube.link.Exchange.begin", broken)
    with pytest.raises(ClusterOutOfReach, match="AttributeError") as caught:
        next(head.client.tail(job_of_unasked()))
    assert RAY_CANARY not in str(caught.value)


def job_of_unasked() -> Job:
    return Job(id=JOB, status="RUNNING", node_id="a" * 56)
