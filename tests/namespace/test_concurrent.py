"""Several processes write at once: one key's writers queue, different keys' do not meet."""

import itertools
import json
import subprocess
import sys
from pathlib import Path

from factory.keys import public
from factory.namespace import Namespace

WRITER = """
import json, sys, time
from pathlib import Path
from factory.keys import public
from factory.namespace import CheckRecord, LockTimes, Namespace, Provenance

root, key, writer, rounds, shared = sys.argv[1:]
key = public(key)
namespace = Namespace(Path(root), times=LockTimes(wait_seconds=60))
spans, reused = [], 0
for number in range(int(rounds)):
    content = f"content {number}" if shared == "shared" else f"content {writer} {number}"
    with namespace.write(key, inputs=[], input_id=content, source="public",
                         provenance=Provenance(run_id=writer, identity="i"), parameters={},
                         code="", checks=["files"], licenses=[]) as staging:
        start = time.monotonic()
        for part in range(5):
            (staging.path / f"{part}.txt").write_text(content)
        time.sleep(0.002)
        staging.describe(content_id=content)
        spans.append((start, time.monotonic()))
    reused += staging.reused
    passed = CheckRecord(passed=True, blocking=True, summary="", checked_at="")
    namespace.record_checks(staging.version, {"files": passed, f"by {writer}": passed})
    namespace.promote(staging.version)
    assert namespace.current(key) is not None
    for text in {path.read_text() for path in namespace.current(key).path.glob("*.txt")}:
        assert text.startswith("content")
print(json.dumps({"spans": spans, "reused": reused}))
"""


def writers(root: Path, keys: list[str], rounds: int, mode: str) -> list[dict]:
    started = [
        subprocess.Popen(
            [sys.executable, "-c", WRITER, str(root), key, f"w{number}", str(rounds), mode],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for number, key in enumerate(keys)
    ]
    results = [process.communicate() for process in started]
    for process, (_, errors) in zip(started, results, strict=True):
        assert process.returncode == 0, errors
    return [json.loads(output) for output, _ in results]


def test_writers_of_one_key_queue(root) -> None:
    key = public("text/plos/raw")
    reports = writers(root, [key.name] * 4, 8, "own")

    spans = sorted(tuple(span) for report in reports for span in report["spans"])
    for (_, end), (start, _) in itertools.pairwise(spans):
        assert end <= start, "two writers of one key were at work at the same time"
    namespace = Namespace(root)
    versions = namespace.versions(key)
    assert len(versions) == 32
    assert all(namespace.verify(version) == [] for version in versions)
    assert namespace.current(key) in versions


def test_writers_of_the_same_content_make_it_once(root) -> None:
    key = public("text/plos/raw")
    reports = writers(root, [key.name] * 4, 5, "shared")

    namespace = Namespace(root)
    versions = namespace.versions(key)
    assert len(versions) == 5
    assert sum(report["reused"] for report in reports) == 15
    assert all(namespace.verify(version) == [] for version in versions)
    for version in versions:
        names = set(namespace.checks(version))
        assert names == {"files", "by w0", "by w1", "by w2", "by w3"}, "no result was lost"


def test_writers_of_different_keys_do_not_wait(root, begin) -> None:
    keys = ["image/c/raw", "text/a/clean", "text/a/raw", "text/b/raw"]
    with begin(key=public("text/a/split")) as staging:
        writers(root, keys, 8, "own")
        (staging.path / "a").write_text("a")
        staging.describe(content_id="c")

    namespace = Namespace(root)
    assert namespace.verify(staging.version) == []
    for name in keys:
        assert len(namespace.versions(public(name))) == 8
        current = namespace.current(public(name))
        assert current is not None
        assert namespace.verify(current) == []


def test_of_two_keys_one_inside_the_other_at_most_one_is_written(root) -> None:
    started = [
        subprocess.Popen(
            [sys.executable, "-c", WRITER, str(root), key, "w", "3", "own"],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for key in ("text/plos", "text/plos/raw", "text/plos/energon/train")
    ]
    errors = [process.communicate()[1] for process in started]

    namespace = Namespace(root)
    written = [key.name for key in list(namespace.keys())]
    assert not ("text/plos" in written and len(written) > 1)
    for process, error in zip(started, errors, strict=True):
        assert process.returncode == 0 or "NamespaceError" in error
    for key in list(namespace.keys()):
        for version in namespace.versions(key):
            assert namespace.verify(version) == []
