"""Objects of a store: whole and as declared, or not at all; and no word about who asked."""

import hashlib
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import fsspec
import httpx
import pytest
from moto.server import ThreadedMotoServer

from factory.data import S3, Dataset, Fsspec, Rejected
from factory.data.fetch import objects
from factory.data.fetch.errand import Errand
from factory.data.progress import silent
from factory.data.steps import steps
from factory.errors import DeclarationError, SourceError
from factory.keys import private
from tests.data.conftest import Find, Runner

BODY = bytes(range(256)) * 2_000
SMALL = b'{"id": 1}\n'
SECRET, KEY_ID = "not-a-secret-of-anybody", "AKIAIOSFODNN7EXAMPLE"


def sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


@dataclass
class Wire:
    """A connection to a server that breaks: after how many bytes, connection by connection."""

    target: tuple[str, int]
    cuts: list[int] = field(default_factory=list[int])
    sent: int = 0
    address: str = ""

    def serve(self, listener: socket.socket) -> None:
        with suppress(OSError):
            while True:
                client, _ = listener.accept()
                threading.Thread(target=self._join, args=(client,), daemon=True).start()

    def _join(self, client: socket.socket) -> None:
        with client, socket.create_connection(self.target) as server:
            back = threading.Thread(target=self._answer, args=(server, client), daemon=True)
            back.start()
            with suppress(OSError):
                while data := client.recv(1 << 16):
                    server.sendall(data)
            with suppress(OSError):
                server.shutdown(socket.SHUT_WR)
            back.join()

    def _answer(self, server: socket.socket, client: socket.socket) -> None:
        with suppress(OSError):
            while data := server.recv(1 << 12):
                self.sent += len(data)
                if self.cuts and self.sent > self.cuts[0]:
                    del self.cuts[0]
                    break
                client.sendall(data)
        with suppress(OSError):
            client.shutdown(socket.SHUT_RDWR)


@pytest.fixture(scope="module")
def moto() -> Iterator[tuple[str, int]]:
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    yield server.get_host_and_port()
    server.stop()


@pytest.fixture
def bucket(moto: tuple[str, int], monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., None]]:
    """An empty bucket `corpus`; call it to put an object there."""
    address = f"http://{moto[0]}:{moto[1]}"
    for name, value in {
        "AWS_ENDPOINT_URL": address,
        "AWS_ACCESS_KEY_ID": KEY_ID,
        "AWS_SECRET_ACCESS_KEY": SECRET,
        "AWS_DEFAULT_REGION": "us-east-1",
        "AWS_EC2_METADATA_DISABLED": "true",
        "AWS_CONFIG_FILE": "/nowhere",
        "AWS_SHARED_CREDENTIALS_FILE": "/nowhere",
    }.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(objects, "SECONDS_BEFORE_RETRY", (0.0, 0.0))
    monkeypatch.setattr(objects, "CHUNK_BYTES", 1 << 16)

    def post(path: str, data: bytes, method: str = "POST") -> None:
        open_to_all = {"x-amz-acl": "public-read"}
        answer = httpx.request(method, f"{address}{path}", content=data, headers=open_to_all)
        answer.raise_for_status()

    post("/moto-api/reset", b"")
    post("/corpus", b"", "PUT")
    yield lambda name, content: post(f"/corpus/{name}", content, "PUT")
    post("/moto-api/reset-auth", b"Infinity")


@pytest.fixture
def wire(moto: tuple[str, int], bucket: object, monkeypatch: pytest.MonkeyPatch) -> Iterator[Wire]:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        made = Wire(moto)
        monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://127.0.0.1:{listener.getsockname()[1]}")
        threading.Thread(target=made.serve, args=(listener,), daemon=True).start()
        yield made
        listener.shutdown(socket.SHUT_RDWR)


type Fetch = Callable[..., Path]


@pytest.fixture
def fetch(tmp_path: Path) -> Fetch:
    scratch = tmp_path / "scratch"
    scratch.mkdir()

    def run(source: Fsspec, mirror: Path | None = None) -> Path:
        errand = Errand(
            scratch=scratch, mirror=mirror, drops=None, closed=(), inputs={}, say=silent
        )
        return objects.fetch(source, errand)

    return run


def s3(contents: dict[str, bytes] | None = None, **changes: object) -> S3:
    declared = {name: sha256(content) for name, content in (contents or {}).items()}
    fields = {"url": "s3://corpus/v1", "classification": "private", "rows": "**/*.jsonl"}
    return S3(**fields | {"files": declared} | changes)  # type: ignore[arg-type]


FILES = {"a/big.jsonl": BODY, "b.jsonl": SMALL, "README.md": b"about", "a/c.csv": b"no"}


@pytest.fixture
def full(bucket: Callable[..., None]) -> None:
    for name, content in FILES.items():
        bucket(f"v1/{name}", content)


def test_objects_that_the_rows_ask_for(full: None, fetch: Fetch) -> None:
    folder = fetch(s3(FILES))
    found = {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file()
    }
    assert found == {name: FILES[name] for name in ("a/big.jsonl", "b.jsonl", "README.md")}


def test_two_names_of_one_content(bucket: Callable[..., None], fetch: Fetch) -> None:
    for name in ("one", "two"):
        bucket(f"v1/{name}.jsonl", SMALL)
    folder = fetch(s3({"one.jsonl": SMALL, "two.jsonl": SMALL}))
    assert sorted(path.name for path in folder.iterdir()) == ["one.jsonl", "two.jsonl"]


def test_an_empty_object(bucket: Callable[..., None], fetch: Fetch) -> None:
    bucket("v1/empty.jsonl", b"")
    assert (fetch(s3({"empty.jsonl": b""})) / "empty.jsonl").read_bytes() == b""


def test_another_content_is_refused_and_not_kept(full: None, fetch: Fetch, tmp_path: Path) -> None:
    with pytest.raises(SourceError, match=r"s3://corpus/v1/b\.jsonl is not the file that was dec"):
        fetch(s3(FILES | {"b.jsonl": b"other"}))
    kept = {path.name for path in (tmp_path / "scratch" / "parts").iterdir()}
    assert sha256(SMALL) not in kept
    assert not any(name.endswith(".part") for name in kept)


def test_a_missing_object_is_told(full: None, fetch: Fetch) -> None:
    with pytest.raises(SourceError, match=r"s3://corpus/v1/d\.jsonl is not there"):
        fetch(s3(FILES | {"d.jsonl": SMALL}))


def test_a_missing_bucket_is_told(bucket: object, fetch: Fetch) -> None:
    with pytest.raises(SourceError, match=r"s3://nothing/b\.jsonl is not there"):
        fetch(s3({"b.jsonl": SMALL}, url="s3://nothing"))


def silent_about_identity(error: BaseException) -> None:
    assert error.__cause__ is None
    assert error.__context__ is None
    assert SECRET not in str(error)
    assert KEY_ID not in str(error)


def test_access_denied_is_told_without_saying_who(
    full: None, fetch: Fetch, moto: tuple[str, int]
) -> None:
    httpx.post(f"http://{moto[0]}:{moto[1]}/moto-api/reset-auth", content=b"0")
    with pytest.raises(SourceError, match="may not be read with the credentials") as refused:
        fetch(s3(FILES))
    silent_about_identity(refused.value)


def test_no_credentials_are_told(full: None, fetch: Fetch, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("AWS_ACCESS_KEY_ID")
    monkeypatch.delenv("AWS_SECRET_ACCESS_KEY")
    with pytest.raises(SourceError, match=r"needs credentials .* declare anonymous=True") as told:
        fetch(s3(FILES))
    silent_about_identity(told.value)
    assert (fetch(s3(FILES, anonymous=True)) / "b.jsonl").read_bytes() == SMALL


def test_a_connection_that_is_cut_is_taken_up_again(full: None, fetch: Fetch, wire: Wire) -> None:
    wire.cuts = [100_000, 300_000]
    assert (fetch(s3({"a/big.jsonl": BODY})) / "a" / "big.jsonl").read_bytes() == BODY
    assert not wire.cuts


def test_what_arrived_before_a_failure_is_not_asked_for_again(
    full: None, fetch: Fetch, wire: Wire, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = s3({"a/big.jsonl": BODY})
    calls = 0
    original = objects._Store._range

    def broken(self: objects._Store, path: str, start: int, end: int) -> bytes:
        nonlocal calls
        calls += 1
        if calls > 4:
            raise ConnectionError("gone")
        return original(self, path, start, end)

    monkeypatch.setattr(objects._Store, "_range", broken)
    with pytest.raises(SourceError, match=r"could not be fetched in 3 tries \(ConnectionError\)"):
        fetch(source)
    monkeypatch.setattr(objects._Store, "_range", original)
    before = wire.sent
    assert (fetch(source) / "a" / "big.jsonl").read_bytes() == BODY
    assert wire.sent - before < len(BODY) - 3 * objects.CHUNK_BYTES


def test_parts_of_another_object_do_not_end_in_the_file(
    full: None, fetch: Fetch, tmp_path: Path
) -> None:
    parts = tmp_path / "scratch" / "parts"
    parts.mkdir()
    for wrong in (b"x" * 1000, b"x" * 2 * len(BODY)):
        (parts / f"{sha256(BODY)}.part").write_bytes(wrong)
        assert (fetch(s3({"a/big.jsonl": BODY})) / "a" / "big.jsonl").read_bytes() == BODY
        (parts / sha256(BODY)).unlink()


def test_nobody_listens(fetch: Fetch, bucket: object, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:9")
    monkeypatch.setenv("AWS_MAX_ATTEMPTS", "1")
    monkeypatch.setattr(objects, "SECONDS_BEFORE_RETRY", ())
    with pytest.raises(SourceError, match="could not be fetched in 1 tries") as told:
        fetch(s3({"b.jsonl": SMALL}))
    silent_about_identity(told.value)


def manifest(content: str, name: str = "SHA256SUMS") -> dict[str, object]:
    return {"files": None, "manifest": name, "manifest_sha256": sha256(content.encode())}


def test_hashes_from_a_manifest(full: None, bucket: Callable[..., None], fetch: Fetch) -> None:
    lines = f"{sha256(BODY)}  ./a/big.jsonl\n{sha256(SMALL)} *b.jsonl\n{sha256(b'no')}  a/c.csv\n"
    bucket("v1/SHA256SUMS", lines.encode())
    folder = fetch(s3(**manifest(lines)))
    assert sorted(path.name for path in folder.rglob("*.*")) == ["b.jsonl", "big.jsonl"]


@pytest.mark.parametrize(
    ("lines", "problem"),
    [
        ("no manifest\n", "line 1: not a sha256"),
        (f"{'a' * 64}  ../b.jsonl\n", r"line 1: Path '\.\./b\.jsonl' must be a path below"),
        (f"{'a' * 64}  /etc/b.jsonl\n", "line 1: Path '/etc/b.jsonl' must be a path below"),
        (f"{'a' * 64}  b.csv\n", "No file of the source fits"),
        ("", "No file of the source fits"),
    ],
)
def test_a_manifest_that_cannot_be_used(
    bucket: Callable[..., None], fetch: Fetch, lines: str, problem: str
) -> None:
    bucket("v1/SHA256SUMS", lines.encode())
    with pytest.raises(SourceError, match=problem):
        fetch(s3(**manifest(lines)))


def test_a_manifest_that_was_replaced_is_refused(
    full: None, bucket: Callable[..., None], fetch: Fetch
) -> None:
    bucket("v1/SHA256SUMS", f"{sha256(SMALL)}  b.jsonl\n".encode())
    with pytest.raises(SourceError, match="v1/SHA256SUMS is not the file that was declared"):
        fetch(s3(**manifest("other")))


def stored(url: str, rows: str = "*.jsonl", **files: bytes) -> Fsspec:
    declared = {f"{name}.jsonl": sha256(content) for name, content in files.items()}
    return Fsspec(url=url, rows=rows, classification="public", files=declared)


def test_other_stores(fetch: Fetch, tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_bytes(SMALL)
    fsspec.filesystem("memory").pipe("/corpus/a.jsonl", BODY)
    assert (fetch(stored(f"file://{tmp_path}", a=SMALL)) / "a.jsonl").read_bytes() == SMALL
    assert (fetch(stored("memory://corpus/", a=BODY)) / "a.jsonl").read_bytes() == BODY


def test_a_mirror_with_the_same_paths(fetch: Fetch, tmp_path: Path) -> None:
    mirror = tmp_path / "mirror"
    mirror.mkdir()
    (mirror / "a.jsonl").write_bytes(SMALL)
    source = stored("s3://nobody-has-this/bucket", a=SMALL)
    assert (fetch(source, mirror) / "a.jsonl").read_bytes() == SMALL
    with pytest.raises(SourceError, match=r"mirror/a\.jsonl is not the file that was declared"):
        fetch(stored("s3://nobody-has-this/bucket", a=BODY), mirror)


def test_a_store_that_nothing_reads(fetch: Fetch) -> None:
    with pytest.raises(SourceError, match="is of a protocol that fsspec does not know"):
        fetch(stored("nothing://bucket", a=SMALL))


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"classification": "secret"}, "classification is 'secret'"),
        ({"files": None}, "one of the two"),
        ({"manifest": "SUMS", "manifest_sha256": "a" * 64}, "one of the two"),
        ({"files": None, "manifest": "SUMS"}, "sha256 of SUMS '' cannot be used"),
        ({"files": None, "manifest": "../S", "manifest_sha256": "a" * 64}, "must be a path below"),
        ({"files": {"../a.jsonl": "a" * 64}}, "must be a path below"),
        ({"files": {"a.jsonl": "abc"}}, "sha256 of a.jsonl 'abc' cannot be used"),
        ({"files": {"a.csv": "a" * 64}}, "no declared file fits the rows"),
        ({"files": {}}, "no declared file fits the rows"),
        ({"url": "s3://me:hidden@host/b"}, "The url cannot be used"),
        ({"url": "s3://bucket/a?X-Amz-Signature=hidden"}, "The url cannot be used"),
        ({"url": "simplecache::s3://bucket"}, "is not of S3"),
        ({"url": "https://host/b"}, "is not of S3"),
    ],
)
def test_what_cannot_be_declared(changes: dict[str, object], problem: str) -> None:
    with pytest.raises(DeclarationError, match=problem) as refused:
        s3({"a.jsonl": SMALL}, **changes)
    assert "hidden" not in str(refused.value)


def test_the_classification_must_be_declared() -> None:
    with pytest.raises(TypeError, match="classification"):
        S3(url="s3://corpus", rows="*.jsonl", files={"a.jsonl": "a" * 64})  # type: ignore[call-arg]


def test_only_files_that_count_are_parameters() -> None:
    with_other = s3({"b.jsonl": SMALL, "c.csv": SMALL})
    assert with_other.parameters() == s3({"b.jsonl": SMALL}).parameters()
    assert with_other.parameters() != s3({"b.jsonl": BODY}).parameters()


CANARY = b"canary-4711"


def letters(*, replaced: bool) -> Dataset:
    """A private dataset of two files in a store, one of which somebody may have replaced."""
    files = {f"{name}.jsonl": CANARY + name.encode() for name in ("one", "two")}
    store = fsspec.filesystem("memory")
    for name, content in files.items():
        store.pipe(f"/private/{name}", b"other" if replaced and "two" in name else content)
    source = Fsspec(
        url="memory://private",
        rows="*.jsonl",
        classification="private",
        files={name: sha256(content) for name, content in files.items()},
    )
    return Dataset(
        key=private("text/stored"),
        license="LicenseRef-test",
        source=source,
        clean=lambda row: Rejected("never"),
        split={"train": 1.0},
    )


def test_a_failed_private_download_lies_in_the_private_tree_only(
    runner: Runner, tmp_path: Path, files_with: Find
) -> None:
    with pytest.raises(SourceError, match=r"two\.jsonl is not the file that was declared"):
        runner.step(steps(letters(replaced=True))[0])
    found = files_with(tmp_path, CANARY)
    assert found, "what arrived is kept, to go on from there"
    assert all(path.is_relative_to(tmp_path / "root" / "private") for path in found)


def test_a_private_download_leaves_nothing_but_the_version(
    runner: Runner, tmp_path: Path, files_with: Find
) -> None:
    with suppress(SourceError):
        runner.step(steps(letters(replaced=True))[0])
    version = runner.step(steps(letters(replaced=False))[0]).version
    assert all(path.is_relative_to(version.path) for path in files_with(tmp_path, CANARY))
