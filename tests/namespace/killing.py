"""Kills a writer, again and again, and looks at what is left. Prints a JSON report.

A process of its own, because it forks: a fork of an interpreter that has imported everything costs
milliseconds, and the parent has one thread only.

    killing.py ROOT random KILLS SEED     SIGKILL after a random time within a whole cycle
    killing.py ROOT points SCENARIO       SIGKILL before the first, second, ... file operation
    killing.py ROOT collect               the same while old versions are removed
"""

import collections
import functools
import json
import os
import random
import shutil
import signal
import sys
import time
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

from factory.keys import public
from factory.namespace import CheckRecord, Namespace, Provenance, Version, retention
from tests.forking import forked

KEY = public("text/plos/raw")
PASSED = CheckRecord(passed=True, blocking=True, summary="", facts={}, checked_at="")
RUN = "0f3c"


def cycle(namespace: Namespace, number: int) -> None:
    """A write, its check, its promotion, and a few lines of a run."""
    version = publish(namespace, number)
    namespace.record_checks(version, {"files": PASSED})
    namespace.promote(version)
    run = namespace.open_run("public", RUN)
    run.create(f"messages/{number}-{os.getpid()}.json", b"{}")
    run.append("monitor/steps.jsonl", "{}")


def publish(namespace: Namespace, number: int) -> Version:
    with namespace.write(
        KEY,
        inputs=[],
        input_id=f"input {number}",
        provenance=Provenance(run_id=RUN, identity="killing"),
        source="public",
        parameters={},
        code="",
        checks=["files"],
        licenses=[],
    ) as staging:
        for part in range(6):
            path = staging.path / f"part-{part % 2}" / f"{part}.bin"
            path.parent.mkdir(exist_ok=True)
            path.write_bytes(bytes([number % 256]) * 20_000)
        staging.describe(content_id="content")
    return staging.version


def outcome(namespace: Namespace, before: set[str], current: Version | None, ended: bool) -> str:
    """How far the killed writer got."""
    versions = namespace.root / f"{KEY}.versions"
    if ended:
        return "6 finished before the kill"
    if namespace.current(KEY) != current:
        return "5 current, run lines perhaps missing"
    if {version.id for version in namespace.versions(KEY)} != before:
        return "4 published, not current"
    if list(versions.glob(".staging-*")):
        return "3 staging left"
    if list(versions.glob(".writing/*")):
        return "2 lock left"
    return "1 nothing left"


def damaged(namespace: Namespace) -> list[str]:
    """Every version that differs from its manifest, the current one first."""
    current = namespace.current(KEY)
    versions = ([current] if current else []) + namespace.versions(KEY)
    return [str(version) for version in versions if namespace.verify(version)]


def leftovers(root: Path) -> list[str]:
    """Everything that only a writer at work should have."""
    found = [path for path in root.rglob(".*") if path.name not in {".inputs", ".opened"}]
    return [str(path.relative_to(root)) for path in found]


def kill_at_random(namespace: Namespace, kills: int, seed: int) -> dict:
    chance = random.Random(seed)
    start = time.perf_counter()
    for number in range(5):
        os.waitpid(forked(functools.partial(cycle, namespace, 1_000_000 + number)), 0)
    cycle_seconds = (time.perf_counter() - start) / 5
    outcomes: collections.Counter[str] = collections.Counter()
    report: dict[str, list[str]] = {"damaged": [], "leftovers": []}
    for number in range(kills):
        before = {version.id for version in namespace.versions(KEY)}
        current = namespace.current(KEY)
        pid = forked(functools.partial(cycle, namespace, number))
        time.sleep(chance.uniform(0, 1.2 * cycle_seconds))
        os.kill(pid, signal.SIGKILL)
        _, status = os.waitpid(pid, 0)
        ended = os.WIFEXITED(status) and os.WEXITSTATUS(status) == 0
        outcomes[outcome(namespace, before, current, ended)] += 1
        report["damaged"] += damaged(namespace)
        namespace.sweep(timedelta(0))
        report["leftovers"] += leftovers(namespace.root)
        for version in namespace.versions(KEY)[8:]:  # keep the verification of all of them short
            if version != namespace.current(KEY):
                shutil.rmtree(version.path)
    return {"outcomes": dict(sorted(outcomes.items())), "cycle_seconds": cycle_seconds, **report}


def kill_at_points(namespace: Namespace, scenario: str) -> dict:
    """Every file operation in turn; no sweep in between, so each writer finds a dead one's lock."""
    cycle(namespace, 0)
    report: dict[str, list[str]] = {"damaged": [], "leftovers": []}
    point = 0
    while True:
        point += 1
        number = point if scenario == "publish" else 0
        if scenario == "heal":
            victim = namespace.current(KEY)
            assert victim is not None
            (victim.path / "part-0/0.bin").write_bytes(b"damaged")
        child = forked(
            functools.partial(killed_at, point, functools.partial(cycle, namespace, number))
        )
        _, status = os.waitpid(child, 0)
        current = namespace.current(KEY)
        assert current is not None
        if scenario == "publish" or not os.WIFSIGNALED(status):
            report["damaged"] += damaged(namespace)
        if not os.WIFSIGNALED(status):
            report["exit"] = [str(os.WEXITSTATUS(status))]
            break
    namespace.sweep(timedelta(0))
    report["leftovers"] = leftovers(namespace.root)
    return {"points": point - 1, **report}


def kill_collecting(namespace: Namespace) -> dict:
    """No sweep in between: the next collection meets locks and trash of dead ones."""
    report: dict[str, list[str]] = {"damaged": [], "leftovers": [], "lost": []}
    cycle(namespace, 0)
    current = namespace.current(KEY)
    assert current is not None
    policy = retention.Policy(keep=0, older_than=timedelta(0))
    point = 0
    while True:
        point += 1
        if len(namespace.versions(KEY)) < 3:
            for number in (2 * point, 2 * point + 1):
                publish(namespace, number)
        for version in namespace.versions(KEY):
            os.utime(version.path, (1, 1))
        body = functools.partial(retention.collect, namespace.root, policy, namespace.times)
        child = forked(functools.partial(killed_at, point, body))
        _, status = os.waitpid(child, 0)
        report["damaged"] += damaged(namespace)
        if namespace.current(KEY) != current:
            report["lost"].append(f"{point}")
        if not os.WIFSIGNALED(status):
            report["exit"] = [str(os.WEXITSTATUS(status))]
            break
    report["left"] = [version.id for version in namespace.versions(KEY) if version != current]
    namespace.sweep(timedelta(0))
    report["leftovers"] = leftovers(namespace.root)
    return {"points": point - 1, **report}


def killed_at(point: int, body: Callable[[], object]) -> None:
    seen = 0

    def hook(event: str, _arguments: object) -> None:
        nonlocal seen
        if event == "open" or event.startswith(("os.", "shutil.")):
            seen += 1
            if seen == point:
                os.kill(os.getpid(), signal.SIGKILL)

    sys.addaudithook(hook)
    body()


def main() -> None:
    root, mode, *rest = sys.argv[1:]
    namespace = Namespace(Path(root))
    if mode == "random":
        report = kill_at_random(namespace, int(rest[0]), int(rest[1]))
    elif mode == "collect":
        report = kill_collecting(namespace)
    else:
        report = kill_at_points(namespace, rest[0])
    sys.stdout.write(json.dumps(report))


main()
