"""One revision of a real Git repository, byte for byte, and nothing that it asks for besides."""

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from factory.data import Git, raw
from factory.data.fetch import git as fetch_git
from factory.data.fetch.errand import Errand
from factory.data.progress import Ticker, silent
from factory.errors import SourceError

type Commit = Callable[..., str]


def git(folder: Path, *arguments: str) -> str:
    name = ("-c", "user.name=test", "-c", "user.email=test@example.org")
    command = ["git", "-C", str(folder), *name, "-c", "init.defaultBranch=main", *arguments]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    folder = tmp_path / "repository"
    folder.mkdir()
    git(folder, "init", "--quiet")
    return folder


@pytest.fixture
def commit(repository: Path) -> Commit:
    def make(**files: bytes) -> str:
        for name, content in files.items():
            (repository / name).write_bytes(content)
        git(repository, "add", "--all")
        git(repository, "commit", "--quiet", "--allow-empty", "-m", "change")
        return git(repository, "rev-parse", "HEAD")

    return make


@pytest.fixture
def fetch(tmp_path: Path, repository: Path) -> Callable[..., Path]:
    scratch = tmp_path / "scratch"
    scratch.mkdir()

    def run(revision: str, *, url: str = "", mirror: Path | None = None) -> Path:
        source = Git(url=url or repository.as_uri(), revision=revision, rows="**/*.jsonl")
        errand = Errand(
            scratch=scratch, mirror=mirror, drops=None, closed=(), inputs={}, say=silent
        )
        return fetch_git.fetch(source, errand)

    return run


def test_a_revision_that_no_branch_ends_at(fetch, commit):
    first = commit(a=b"first")
    commit(a=b"second")
    folder = fetch(first)
    assert (folder / "a").read_bytes() == b"first"
    assert [path.name for path in folder.iterdir()] == ["a"], "no .git"


def test_bytes_are_as_committed_whatever_attributes_say(fetch, commit):
    revision = commit(
        **{
            "crlf.txt": b"one\r\ntwo\n",
            ".gitattributes": b"* text eol=crlf ident export-ignore export-subst\n",
            "ident.txt": b"$Id$ $Format:%H$\n",
        }
    )
    folder = fetch(revision)
    stored = git(folder.parent.parent / "repository", "show", f"{revision}:ident.txt")
    assert (folder / "ident.txt").read_text().strip() == stored == "$Id$ $Format:%H$"
    assert b"\r\r" not in (folder / "crlf.txt").read_bytes()


def test_hooks_and_filters_do_not_run(fetch, commit, repository, tmp_path):
    marker = tmp_path / "ran"
    revision = commit(a=b"x", **{".gitattributes": b"* filter=evil\n"})
    git(repository, "config", "filter.evil.smudge", f"touch {marker}")
    for hook in ("post-checkout", "post-merge", "reference-transaction"):
        path = repository / ".git" / "hooks" / hook
        path.write_text(f"#!/bin/sh\ntouch {marker}\n")
        path.chmod(0o755)
    fetch(revision)
    assert not marker.exists()


def test_an_unknown_revision_is_told(fetch, commit):
    commit(a=b"x")
    with pytest.raises(SourceError, match=rf"has no commit {'ab' * 20}"):
        fetch("ab" * 20)


def test_a_tag_object_is_no_commit(fetch, commit, repository):
    commit(a=b"x")
    git(repository, "tag", "-a", "-m", "tag", "v1")
    with pytest.raises(SourceError, match="has no commit"):
        fetch(git(repository, "rev-parse", "v1^{tag}"))


def test_nothing_there(fetch, tmp_path):
    with pytest.raises(SourceError, match=r"could not be fetched(.|\n)*nowhere"):
        fetch("ab" * 20, url=(tmp_path / "nowhere").as_uri())


def test_a_server_that_wants_a_password_is_not_waited_for(fetch):
    with pytest.raises(SourceError, match="could not be fetched"):
        fetch("ab" * 20, url="http://127.0.0.1:9/private.git")


def test_a_pointer_into_lfs_is_refused(fetch, commit):
    pointer = b"version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n"
    with pytest.raises(SourceError, match="a is kept in Git LFS"):
        fetch(commit(a=pointer))


def test_submodules_are_left_out(fetch, commit, repository):
    first = commit(a=b"x")
    git(repository, "update-index", "--add", "--cacheinfo", f"160000,{first},sub")
    git(repository, "commit", "--quiet", "-m", "submodule")
    folder = fetch(git(repository, "rev-parse", "HEAD"))
    assert [path.name for path in folder.iterdir()] == ["a"]


def test_a_mirror_stands_in_and_is_held_to_the_revision(fetch, commit, repository, tmp_path):
    revision = commit(**{"a.jsonl": b"{}\n"})
    bare = tmp_path / "bare.git"
    git(tmp_path, "clone", "--quiet", "--bare", str(repository), str(bare))
    folder = fetch(revision, url="https://example.invalid/x", mirror=bare)
    assert (folder / "a.jsonl").exists()
    with pytest.raises(SourceError, match="has no commit"):
        fetch("cd" * 20, url="https://example.invalid/x", mirror=bare)


def test_links_inside_are_files_and_links_outside_are_refused(fetch, commit, repository, tmp_path):
    (repository / "link.jsonl").symlink_to("a.jsonl")
    folder = fetch(commit(**{"a.jsonl": b"{}\n"}))
    names = raw.wanted(folder, "*.jsonl")
    raw.take(folder, names, tmp_path / "taken", Ticker(silent, "files"))
    assert names == ["a.jsonl", "link.jsonl"]
    assert not (tmp_path / "taken" / "link.jsonl").is_symlink()
    assert (tmp_path / "taken" / "link.jsonl").read_bytes() == b"{}\n"
    for target in ("/etc/passwd", "../../outside"):
        (repository / "link.jsonl").unlink()
        (repository / "link.jsonl").symlink_to(target)
        with pytest.raises(SourceError, match=r"link.jsonl is a link that leads out"):
            raw.wanted(fetch(commit()), "*.jsonl")


def test_a_pattern_that_fits_nothing_lists_what_there_is(fetch, commit):
    folder = fetch(commit(**{"a.csv": b"", "b.csv": b"", "README": b""}))
    with pytest.raises(SourceError, match=r"has 3 files: 2 \.csv, 1 no ending"):
        raw.wanted(folder, "*.jsonl")


def test_licence_and_readme_are_kept_beside_the_rows(fetch, commit):
    files = dict.fromkeys(("a.jsonl", "LICENSE.txt", "readme.md", "NOTICE", "other.py"), b"{}")
    assert raw.wanted(fetch(commit(**files)), "*.jsonl") == [
        *("LICENSE.txt", "NOTICE", "a.jsonl", "readme.md"),
    ]
