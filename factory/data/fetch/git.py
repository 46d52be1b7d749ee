"""Files of one revision of a Git repository, exactly as committed.

Only that revision is fetched. Its files are read out of the object store instead of being checked
out, so no hook, filter, line-ending rule or submodule of the repository has a say.
"""

import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

from factory.data.fetch.closed import local_path, refuse_closed
from factory.data.fetch.command import run
from factory.data.fetch.errand import Errand
from factory.data.progress import Ticker
from factory.data.sources import Git
from factory.errors import SourceError
from factory.settings import inherited_environment

ALONE = {
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_ASKPASS": "true",
    "SSH_ASKPASS": "true",
    "GIT_SSH_COMMAND": "ssh -o BatchMode=yes",
    "GIT_OPTIONAL_LOCKS": "0",
}
"""Nobody is there to answer a question."""

QUIET = ("-c", "core.hooksPath=/dev/null", "-c", "credential.helper=", "-c", "gc.auto=0")


def fetch(source: Git, errand: Errand) -> Path:
    """The folder that holds the files of the revision.

    Raises:
        SourceError: the repository or the revision cannot be had.
    """
    store, files = errand.scratch / "objects.git", errand.scratch / "files"
    for folder in (store, files):
        shutil.rmtree(folder, ignore_errors=True)
    files.mkdir()
    address = str(errand.mirror or source.url)
    if (local := local_path(source.url)) is not None:
        refuse_closed(local, source.classification, errand)
    errand.say(f"fetching {source.revision[:12]} of {address}")
    _git("init", "--quiet", "--bare", store, say=errand)
    _fetch_revision(store, address, source, errand)
    _verify(store, source, address)
    _export(store, source.revision, files, Ticker(errand.say, "files written"))
    shutil.rmtree(store)
    return files


def _fetch_revision(store: Path, address: str, source: Git, errand: Errand) -> None:
    """First only this revision; a server that hands out none by name is asked for everything."""
    common = ("--git-dir", store, *QUIET, "fetch", "--quiet", "--no-tags")
    alone = "--no-recurse-submodules"
    status, _ = _git(*common, alone, "--depth", "1", address, source.revision, say=errand)
    if not status:
        return
    status, errors = _git(*common, alone, address, "+refs/*:refs/fetched/*", say=errand)
    if status:
        raise SourceError(
            f"The repository {address} could not be fetched. Is there a way to it from here? "
            f"FACTORY_MIRRORS can name a local copy.\n{_indented(errors)}"
        )


def _verify(store: Path, source: Git, address: str) -> None:
    """The name that the revision's own content gives it is the one that was declared."""
    name = f"{source.revision}^{{commit}}"
    command = ["git", "--git-dir", store, "rev-parse", "--verify", "--quiet", name]
    found = subprocess.run(  # noqa: S603
        command, capture_output=True, text=True, check=False, env=_environment()
    )
    if found.stdout.strip() != source.revision:
        raise SourceError(
            f"The repository {address} has no commit {source.revision}. "
            "Was the history rewritten, or the revision mistyped?"
        )


def _export(store: Path, revision: str, target: Path, ticker: Ticker) -> None:
    links: list[tuple[Path, bytes]] = []
    for name, mode, content in _entries(store, revision):
        path = target / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if mode == "120000":
            links.append((path, content))
        else:
            _refuse_pointer(name, content)
            path.write_bytes(content)
        ticker.tick()
    for path, content in links:  # last, so that no file is written through one
        path.symlink_to(os.fsdecode(content))
    ticker.report()


def _entries(store: Path, revision: str) -> Iterator[tuple[str, str, bytes]]:
    """Path, mode and content of every file and link of a commit; submodules have none."""
    git = ("git", "--git-dir", str(store))
    listing = subprocess.run(  # noqa: S603
        [*git, "ls-tree", "-r", "-z", revision], capture_output=True, check=True, env=_environment()
    ).stdout
    reader = subprocess.Popen(  # noqa: S603
        [*git, "cat-file", "--batch"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env=_environment(),
    )
    with reader:
        assert reader.stdin is not None  # noqa: S101  both are pipes
        assert reader.stdout is not None  # noqa: S101
        for line in listing.split(b"\0")[:-1]:
            head, _, path = line.partition(b"\t")
            mode, kind, identity = head.decode().split()
            if kind != "blob":
                continue
            reader.stdin.write(identity.encode() + b"\n")
            reader.stdin.flush()
            size = int(reader.stdout.readline().split()[2])
            content = reader.stdout.read(size + 1)[:size]
            yield _inside(os.fsdecode(path)), mode, content
        reader.stdin.close()


def _inside(name: str) -> str:
    parts = PurePosixPath(name).parts
    if name.startswith("/") or ".." in parts:
        raise SourceError(f"The repository holds the path {name!r}, which leaves it. Refused.")
    return name


def _refuse_pointer(name: str, content: bytes) -> None:
    if content.startswith(b"version https://git-lfs.github.com/spec/"):
        raise SourceError(
            f"{name} is kept in Git LFS, so the repository has only a pointer to it. "
            "Declare the file itself with Http."
        )


def _git(*arguments: str | Path, say: Errand) -> tuple[int, str]:
    return run(("git", *arguments), "git fetch", say.say, ALONE)


def _environment() -> dict[str, str]:
    return inherited_environment() | ALONE


def _indented(text: str) -> str:
    return "\n".join(f"  {line}" for line in text.splitlines()[-5:])
