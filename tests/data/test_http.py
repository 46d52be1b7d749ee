"""Downloads from a real server that behaves badly: whole and right, or not at all."""

import hashlib
import http.server
import resource
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from factory.data import Http
from factory.data.fetch import http as fetch_http
from factory.data.fetch.errand import Errand
from factory.errors import SourceError

BODY = bytes(range(256)) * 4_000
SHA256 = hashlib.sha256(BODY).hexdigest()


@dataclass
class Site:
    """What the server does, and what it was asked."""

    address: str = ""
    body: bytes = BODY
    etag: str | None = '"one"'
    ranges: bool = True
    drops: list[int] = field(default_factory=list[int])
    """After how many bytes to break off, request by request."""

    claims: int | None = None
    """A Content-Length that is not true."""

    status: list[int] = field(default_factory=list[int])
    asked: list[str | None] = field(default_factory=list[str | None])
    shift: int = 0
    """By how much a range that is sent differs from the one asked for."""


@pytest.fixture
def site(monkeypatch: pytest.MonkeyPatch) -> Iterator[Site]:  # noqa: C901  one whole server
    monkeypatch.setattr(fetch_http, "SECONDS_BEFORE_RETRY", (0.0,) * fetch_http.TRIES)
    state = Site()

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            state.asked.append(self.headers.get("Range"))
            if state.status:
                self.send_error(state.status.pop(0))
                return
            start = self._start()
            if start > len(state.body):
                self.send_error(416)
                return
            part = state.body[start:]
            self.send_response(206 if start else 200)
            if start:
                shown = start + state.shift
                end, size = len(state.body) - 1, len(state.body)
                self.send_header("Content-Range", f"bytes {shown}-{end}/{size}")
            if state.etag:
                self.send_header("ETag", state.etag)
            self.send_header("Content-Length", str(state.claims or len(part)))
            self.end_headers()
            if state.drops:
                part = part[: state.drops.pop(0)]
            self.wfile.write(part)
            self.close_connection = True

        def _start(self) -> int:
            asked = self.headers.get("Range")
            same = self.headers.get("If-Range") == state.etag
            return int(asked[6:-1]) if asked and state.ranges and same else 0

        def log_message(self, *args: object) -> None:
            """Say nothing."""

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    state.address = f"http://127.0.0.1:{server.server_port}/data/rows%20one.jsonl?x=1"
    yield state
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture
def fetch(site: Site, tmp_path: Path) -> Callable[..., Path]:
    scratch = tmp_path / "scratch"
    scratch.mkdir()

    def run(mirror: Path | None = None, sha256: str = SHA256) -> Path:
        source = Http(url=site.address, sha256=sha256, rows="*.jsonl")
        errand = Errand(
            scratch=scratch, mirror=mirror, drops=None, closed=(), inputs={}, say=lambda _: None
        )
        return fetch_http.fetch(source, errand)

    return run


def test_a_file_gets_the_name_of_its_address(fetch, site):
    folder = fetch()
    assert [file.name for file in folder.iterdir()] == ["rows one.jsonl"]
    assert (folder / "rows one.jsonl").read_bytes() == BODY
    assert [file.name for file in folder.parent.iterdir()] == ["file"], "nothing else is left"


def test_an_interrupted_download_resumes_where_it_broke_off(fetch, site):
    site.drops = [300_000, 300_000]
    assert (fetch() / "rows one.jsonl").read_bytes() == BODY
    assert site.asked == [None, "bytes=300000-", "bytes=600000-"]


def test_a_server_without_ranges_is_asked_from_the_start(fetch, site):
    site.drops, site.ranges = [300_000, 500_000], False
    assert (fetch() / "rows one.jsonl").read_bytes() == BODY


def test_without_a_validator_nothing_is_resumed(fetch, site):
    site.drops, site.etag = [300_000], None
    assert (fetch() / "rows one.jsonl").read_bytes() == BODY
    assert site.asked == [None, None]


def test_a_weak_validator_does_not_count(fetch, site):
    site.drops, site.etag = [300_000], 'W/"one"'
    assert (fetch() / "rows one.jsonl").read_bytes() == BODY
    assert site.asked == [None, None]


def test_a_file_replaced_meanwhile_is_fetched_anew(fetch, site):
    other = b"x" * 500_000
    site.body, site.drops = other, [200_000]
    site.status = []
    with pytest.raises(SourceError, match="is not the file that was declared"):
        fetch()  # resumes, and is all of it another file
    site.body, site.etag = BODY, '"two"'
    assert (fetch() / "rows one.jsonl").read_bytes() == BODY


def test_a_changed_validator_sends_everything(fetch, site):
    site.body, site.drops = b"y" * 900_000, [100_000, 0, 0, 0, 0, 0, 0]
    with pytest.raises(SourceError, match="could not be fetched in 6 tries"):
        fetch()
    site.body, site.etag, site.drops = BODY, '"two"', []
    assert (fetch() / "rows one.jsonl").read_bytes() == BODY
    assert site.asked[-1] == "bytes=100000-"


def test_the_same_validator_for_another_file_starts_over(fetch, site):
    site.body, site.drops = b"z" * len(BODY), [100_000, 0, 0, 0, 0, 0, 0]
    with pytest.raises(SourceError):
        fetch()
    site.body, site.drops = BODY, []
    assert (fetch() / "rows one.jsonl").read_bytes() == BODY
    assert site.asked[-2:] == ["bytes=100000-", None]


def test_a_wrong_range_is_not_believed(fetch, site):
    site.drops, site.shift = [300_000], 7
    assert (fetch() / "rows one.jsonl").read_bytes() == BODY


def test_too_long_a_claim_is_told_by_the_hash(fetch, site):
    site.claims = len(BODY) + 500
    assert (fetch() / "rows one.jsonl").read_bytes() == BODY


def test_too_short_a_claim_is_told_by_the_hash(fetch, site):
    site.claims = len(BODY) - 500
    with pytest.raises(SourceError, match=f"declared is {SHA256}"):
        fetch()


def test_another_hash_leaves_no_file(fetch, site, tmp_path):
    site.body = b"not what was declared"
    found = hashlib.sha256(site.body).hexdigest()
    with pytest.raises(SourceError, match=f"sha256 is {found}, declared is {SHA256}"):
        fetch()
    assert not [path for path in (tmp_path / "scratch").rglob("*") if path.is_file()]


def test_a_later_run_goes_on_from_what_has_arrived(fetch, site):
    site.drops = [400_000, 0, 0, 0, 0, 0, 0]
    with pytest.raises(SourceError, match="400,000 bytes have arrived"):
        fetch()
    site.drops = []
    assert (fetch() / "rows one.jsonl").read_bytes() == BODY
    assert site.asked[-1] == "bytes=400000-"


def test_a_passing_trouble_is_waited_out(fetch, site):
    site.status = [503, 429]
    assert (fetch() / "rows one.jsonl").read_bytes() == BODY


def test_a_lasting_refusal_is_told_at_once(fetch, site):
    site.status = [404]
    with pytest.raises(SourceError, match="answers 404"):
        fetch()
    assert len(site.asked) == 1


def test_nobody_there(fetch, site):
    site.address = "http://127.0.0.1:9/rows.jsonl"
    with pytest.raises(SourceError, match=r"Connection refused.*FACTORY_MIRRORS"):
        fetch()


def test_an_empty_file_is_a_file(fetch, site):
    site.body = b""
    folder = fetch(sha256=hashlib.sha256(b"").hexdigest())
    assert (folder / "rows one.jsonl").read_bytes() == b""


def test_a_full_disk_is_no_trouble_of_the_server(fetch, site):
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (500_000, hard))
    try:
        with pytest.raises(OSError, match="File too large"):
            fetch()
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert len(site.asked) == 1
    assert (fetch() / "rows one.jsonl").read_bytes() == BODY
    assert site.asked[-1] == "bytes=500000-"


def test_a_mirror_is_held_to_the_same_hash(fetch, site, tmp_path):
    copy = tmp_path / "copy"
    copy.write_bytes(BODY)
    assert (fetch(mirror=copy) / "rows one.jsonl").read_bytes() == BODY
    assert site.asked == []
    copy.write_bytes(BODY[1:])
    with pytest.raises(SourceError, match=r"the mirror .*copy is not the file"):
        fetch(mirror=copy)
    with pytest.raises(SourceError, match=r"is no file\. Name the file itself"):
        fetch(mirror=tmp_path)
