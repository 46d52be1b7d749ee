"""A namespace in a temporary directory, and the two things that most tests do with it."""

import itertools
import os
import subprocess
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path

import pytest

from factory.keys import Key, public
from factory.namespace import CheckRecord, LockTimes, Namespace, Provenance, Staging

type Write = Callable[..., Staging]

PROVENANCE = Provenance(run_id="run-1", identity="tester", image=None)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    path = tmp_path / "namespace"
    path.mkdir()
    return path


@pytest.fixture
def namespace(root: Path) -> Namespace:
    times = LockTimes(wait_seconds=0.3, lease_seconds=1.0, heartbeat_seconds=0.1)
    return Namespace(root, times=times)


@pytest.fixture
def key() -> Key:
    return public("text/plos/raw")


@pytest.fixture
def begin(namespace: Namespace, key: Key) -> Callable[..., AbstractContextManager[Staging]]:
    """`Namespace.write` with a value for every argument that is not given."""

    def start(**given) -> AbstractContextManager[Staging]:
        arguments = {
            "inputs": [],
            "input_id": "input",
            "provenance": PROVENANCE,
            "source": None if given.get("inputs") else "public",
            "parameters": {"seed": 1},
            "code": "c0de",
            "checks": ["files"],
            "licenses": ["CC BY 4.0"],
        }
        within = given.pop("namespace", namespace)
        return within.write(given.pop("key", key), **{**arguments, **given})

    return start


@pytest.fixture
def write(begin) -> Write:
    """Publish a version with these files, or with two small ones that hold `content`."""

    def publish(content: str = "one", *, files: dict[str, bytes] | None = None, **given) -> Staging:
        with begin(**given) as staging:
            for name, data in (files or {"a.txt": content.encode(), "deep/b.txt": b"b"}).items():
                path = staging.path / name
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(data)
            staging.describe(content_id=content, rows=2, columns={"id": "string"}, facts={"n": 1})
        return staging

    return publish


@pytest.fixture
def passed() -> CheckRecord:
    return record(passed=True)


@pytest.fixture
def failed() -> CheckRecord:
    return record(passed=False)


def record(*, passed: bool) -> CheckRecord:
    return CheckRecord(
        passed=passed, blocking=True, summary="", facts={}, checked_at="2026-01-01T00:00:00Z"
    )


@pytest.fixture
def mount(tmp_path: Path) -> Iterator[Callable[..., Path]]:
    """Mounts a small file system of its own; skips where this account may not."""
    mounted: list[Path] = []
    number = itertools.count()

    def make(kind: str = "tmpfs", options: str = "size=1m") -> Path:
        if os.geteuid() != 0:
            pytest.skip("mounting a file system needs root")
        path = tmp_path / f"mount{next(number)}"
        path.mkdir()
        result = run("mount", "-t", kind, "-o", options, kind, str(path))
        if result.returncode:
            pytest.skip(f"this machine refuses to mount {kind}: {result.stderr.strip()}")
        mounted.append(path)
        return path

    yield make
    for path in mounted:
        run("umount", "--lazy", str(path)).check_returncode()


def run(*command: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, capture_output=True, text=True, check=False)
