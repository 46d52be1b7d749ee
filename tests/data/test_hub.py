"""The hub as a source: a small server that speaks its protocol, and local snapshots of it."""

import hashlib
import http.server
import json
import threading
import urllib.parse
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import huggingface_hub.constants
import pytest

from factory.data import Dataset, HuggingFace, Rejected
from factory.data.fetch import hub
from factory.data.fetch.errand import Errand
from factory.data.progress import silent
from factory.data.steps import steps
from factory.errors import DeclarationError, SourceError
from factory.keys import public
from tests.data.conftest import Runner

COMMIT = "c" * 40
REPO = "somebody/notes"
BODY = bytes(range(256)) * 2_000
FILES = {
    "README.md": b"about\n",
    "data/train.jsonl": b'{"id": 1}\n',
    "data/large.parquet": BODY,
    "data/deep/er/test.jsonl": b'{"id": 2}\n',
}
LARGE = {"data/large.parquet"}
"""Kept in LFS: known by their sha256."""

TOKEN = "hf_not_a_token_of_anybody"  # noqa: S105


def blob(content: bytes) -> str:
    return hashlib.sha1(b"blob %d\0" % len(content) + content, usedforsecurity=False).hexdigest()


@dataclass
class Site:
    """What the server has, does, and was asked."""

    files: dict[str, bytes] = field(default_factory=lambda: dict(FILES))
    sends: dict[str, bytes] = field(default_factory=dict[str, bytes])
    """Files that are sent with another content than the one that is listed."""

    refuses: tuple[int, str] | None = None
    drops: list[int] = field(default_factory=list[int])
    asked: list[str] = field(default_factory=list[str])
    ranges: list[str] = field(default_factory=list[str])
    tokens: set[str | None] = field(default_factory=set[str | None])

    def stated(self, name: str) -> str:
        content = self.files[name]
        return hashlib.sha256(content).hexdigest() if name in LARGE else blob(content)

    def listing(self) -> list[dict[str, object]]:
        entries: list[dict[str, object]] = [
            {"type": "directory", "oid": "d" * 40, "size": 0, "path": "data"}
        ]
        for name, content in self.files.items():
            entry = {"type": "file", "oid": blob(content), "size": len(content), "path": name}
            if name in LARGE:
                lfs = {"oid": self.stated(name), "size": len(content), "pointerSize": 130}
                entry |= {"lfs": lfs}
            entries.append(entry)
        return entries


@pytest.fixture
def site(monkeypatch: pytest.MonkeyPatch) -> Iterator[Site]:  # noqa: C901  one whole server
    state = Site()

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_HEAD(self) -> None:
            self._answer(body=False)

        def do_GET(self) -> None:
            self._answer(body=True)

        def _answer(self, *, body: bool) -> None:
            path = urllib.parse.unquote(urllib.parse.urlsplit(self.path).path)
            state.tokens.add(self.headers.get("Authorization"))
            state.asked.append(f"{self.command} {path}")
            if state.refuses is not None:
                self.send_response(state.refuses[0])
                self.send_header("X-Error-Code", state.refuses[1])
                self.send_header("Content-Length", "0")
                self.end_headers()
            elif path == f"/api/datasets/{REPO}/tree/{COMMIT}":
                self._send(json.dumps(state.listing()).encode(), {}, body=body)
            else:
                self._resolve(path, body=body)

        def _resolve(self, path: str, *, body: bool) -> None:
            name = path.removeprefix(f"/datasets/{REPO}/resolve/{COMMIT}/")
            headers = {"X-Repo-Commit": COMMIT, "ETag": f'"{state.stated(name)}"'}
            self._send(state.sends.get(name, state.files[name]), headers, body=body)

        def _send(self, content: bytes, headers: dict[str, str], *, body: bool) -> None:
            asked = self.headers.get("Range", "").removeprefix("bytes=").rstrip("-")
            start = int(asked) if asked.isdigit() else 0
            if start:
                state.ranges.append(asked)
                last = len(content) - 1
                headers = headers | {"Content-Range": f"bytes {start}-{last}/{len(content)}"}
            self.send_response(206 if start else 200)
            for key, value in headers.items():
                self.send_header(key, value)
            self.send_header("Content-Length", str(len(content) - start))
            self.end_headers()
            if not body:
                return
            cut = len(content) > 10_000 and state.drops
            self.wfile.write(
                content[start : start + state.drops.pop(0)] if cut else content[start:]
            )
            if cut:
                self.close_connection = True

        def log_message(self, *_: object) -> None:
            """Nothing."""

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    address = f"http://127.0.0.1:{server.server_port}"
    constants = huggingface_hub.constants
    template = constants.HUGGINGFACE_CO_URL_TEMPLATE.replace(constants.ENDPOINT, address)
    monkeypatch.setattr(constants, "HUGGINGFACE_CO_URL_TEMPLATE", template)
    monkeypatch.setattr(constants, "ENDPOINT", address)
    monkeypatch.setenv("HF_TOKEN", TOKEN)
    yield state
    server.shutdown()
    server.server_close()


type Fetch = Callable[..., Path]


@pytest.fixture
def fetch(tmp_path: Path) -> Fetch:
    scratch = tmp_path / "scratch"
    scratch.mkdir()

    def run(rows: str = "data/**/*.jsonl", mirror: Path | None = None) -> Path:
        source = HuggingFace(repo=REPO, revision=COMMIT, rows=rows)
        errand = Errand(
            scratch=scratch, mirror=mirror, drops=None, closed=(), inputs={}, say=silent
        )
        return hub.fetch(source, errand)

    return run


def files_in(folder: Path) -> dict[str, bytes]:
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file()
    }


def test_only_files_that_the_rows_ask_for_are_downloaded(site: Site, fetch: Fetch) -> None:
    found = files_in(fetch())
    wanted = {"README.md", "data/train.jsonl", "data/deep/er/test.jsonl"}
    assert found == {name: FILES[name] for name in wanted}
    assert not any("large" in one for one in site.asked)
    assert f"Bearer {TOKEN}" in site.tokens


def test_a_large_file_and_no_links(site: Site, fetch: Fetch) -> None:
    folder = fetch("**/*.parquet")
    assert files_in(folder)["data/large.parquet"] == BODY
    assert not any(path.is_symlink() for path in folder.rglob("*"))


def test_nothing_of_the_download_is_asked_for_twice(site: Site, fetch: Fetch) -> None:
    fetch()
    site.asked.clear()
    fetch()
    assert len(site.asked) == 1, "the listing only"


@pytest.mark.parametrize("name", ["data/train.jsonl", "data/large.parquet"])
def test_another_content_than_listed_is_refused(site: Site, fetch: Fetch, name: str) -> None:
    content = FILES[name]
    site.sends[name] = content[:-1] + b"x"
    with pytest.raises(SourceError, match="is not what hf://datasets/somebody/notes has"):
        fetch(name)


def test_a_cut_connection_is_taken_up_where_it_was(
    site: Site, fetch: Fetch, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(huggingface_hub.constants, "DOWNLOAD_CHUNK_SIZE", 100_000)
    site.drops = [250_000]
    assert files_in(fetch("**/*.parquet"))["data/large.parquet"] == BODY
    assert site.ranges == ["200000"]


@pytest.mark.parametrize(
    ("status", "code", "problem"),
    [
        (404, "RepoNotFound", "is not on the hub, or is private and needs a token"),
        (403, "GatedRepo", "is gated: accept its terms on the hub"),
        (404, "RevisionNotFound", f"has no commit {COMMIT}"),
        (418, "", "could not be fetched: the hub answers 418"),
    ],
)
def test_refusals_are_told_without_the_token(
    site: Site, fetch: Fetch, status: int, code: str, problem: str
) -> None:
    site.refuses = (status, code)
    with pytest.raises(SourceError, match=problem) as refused:
        fetch()
    assert TOKEN not in str(refused.value)
    assert refused.value.__cause__ is None
    assert refused.value.__context__ is None


def test_a_path_that_leaves_the_repository_is_refused(site: Site, fetch: Fetch) -> None:
    site.files["../../outside.jsonl"] = b"{}"
    with pytest.raises(SourceError, match=r"holds the path '\.\./\.\./outside\.jsonl'"):
        fetch()


def test_rows_that_fit_nothing(site: Site, fetch: Fetch) -> None:
    with pytest.raises(SourceError, match=r"fits the row pattern '\*\.xml'. It has 4 files"):
        fetch("*.xml")


@pytest.fixture
def snapshot(tmp_path: Path) -> Path:
    """A folder as `hf download --local-dir` leaves it."""
    folder = tmp_path / "snapshot"
    site = Site()
    for name, content in FILES.items():
        record = folder / hub.RECORDS / f"{name}.metadata"
        for path in (folder / name, record):
            path.parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content)
        record.write_text(f"{COMMIT}\n{site.stated(name)}\n1712656091.123\n")
    return folder


def test_a_local_snapshot(fetch: Fetch, snapshot: Path) -> None:
    assert files_in(fetch("**/*.parquet", snapshot)).keys() == {"data/large.parquet", "README.md"}


def test_what_the_library_leaves_is_such_a_snapshot(
    site: Site, fetch: Fetch, tmp_path: Path
) -> None:
    found = files_in(fetch())
    site.refuses = (500, "")
    download = (tmp_path / "scratch" / "hub").rename(tmp_path / "download")
    assert files_in(fetch("data/**/*.jsonl", download)) == found


def test_a_snapshot_of_another_commit_is_refused(fetch: Fetch, snapshot: Path) -> None:
    record = snapshot / hub.RECORDS / "data" / "train.jsonl.metadata"
    record.write_text(record.read_text().replace(COMMIT, "d" * 40))
    with pytest.raises(SourceError, match=rf"of commit {'d' * 40}, declared is {COMMIT}"):
        fetch(mirror=snapshot)


@pytest.mark.parametrize("name", ["data/train.jsonl", "data/large.parquet"])
def test_a_changed_snapshot_is_refused(fetch: Fetch, snapshot: Path, name: str) -> None:
    (snapshot / name).write_bytes(b"other")
    with pytest.raises(SourceError, match="is not what hf://datasets/somebody/notes has"):
        fetch(name, snapshot)
    (snapshot / name).unlink()
    with pytest.raises(SourceError, match="is not there, but"):
        fetch(name, snapshot)


def test_a_folder_without_records_is_told(fetch: Fetch, tmp_path: Path) -> None:
    with pytest.raises(SourceError, match="nothing is recorded in"):
        fetch(mirror=tmp_path)


def test_a_step_from_a_mirror(runner: Runner, snapshot: Path, tmp_path: Path) -> None:
    file = tmp_path / "mirrors.toml"
    file.write_text(f'[mirrors]\n"hf://datasets/{REPO}" = "{snapshot}"\n')
    runner.settings = runner.settings.model_copy(update={"mirrors": file})
    dataset = Dataset(
        key=public("text/notes"),
        license="CC0-1.0",
        source=HuggingFace(repo=REPO, revision=COMMIT, rows="data/**/*.jsonl"),
        clean=lambda row: Rejected("never"),
        split={"train": 1.0},
    )
    version = runner.step(steps(dataset)[0]).version
    assert not version.manifest.partial
    assert version.manifest.parameters["hub"] == f"hf://datasets/{REPO}"
    assert files_in(version.path / "files").keys() == {
        "README.md",
        "data/train.jsonl",
        "data/deep/er/test.jsonl",
    }


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"repo": "https://huggingface.co/x/y"}, "repository 'https:"),
        ({"repo": "a/b/c"}, "repository 'a/b/c' cannot be used"),
        ({"repo": "../x"}, "cannot be used"),
        ({"revision": "main"}, "revision 'main' cannot be used"),
        ({"revision": "c" * 39}, "all 40 hexadecimal digits"),
        ({"kind": "datasets"}, "kind 'datasets' is not"),
        ({"rows": "/x"}, "names no files inside"),
    ],
)
def test_what_cannot_be_declared(changes: dict[str, str], problem: str) -> None:
    declared = {"repo": REPO, "revision": COMMIT, "rows": "*.jsonl"} | changes
    with pytest.raises(DeclarationError, match=problem):
        HuggingFace(**declared)  # type: ignore[arg-type]
