"""What came of a launch: lost and doubled, left and wrong, counted against what its drivers said.

What it said lies in the namespace: numbered lines in files of its own, messages in chunks. Lines
that a driver printed whose head died with it may never have left that head; they are told apart.
"""

import json
import re
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import dagster as dg

from factory.control.kube.handles import handles
from tests.cluster.fault import Expected, Fault
from tests.cluster.launching import STEP
from tests.cluster.under_way import UnderWay

_LINE = re.compile(r"line \d+ of (\S+)")


@dataclass(frozen=True, kw_only=True)
class Reckoning:
    """The counts of one launch, all of which should be 0, and its end."""

    messages_lost: int
    messages_doubled: int
    lines_lost: int
    lines_doubled: int
    lines_left_on_a_dead_head: int
    runs_doubled: int
    """Two drivers at once, or more than attempts, if it is not KubeRay that began another."""
    started_again_by_kuberay: int
    """Drivers that it started on a new head of the same attempt."""
    objects_left: int
    wrong: int
    """Whether the verdict is another than expected."""
    end: str
    """What came of it, in words."""
    why: str = ""
    """The last lines of the run's page, where something is wrong."""

    @property
    def clean(self) -> bool:
        """Whether nothing is lost, doubled, left or wrong."""
        return not any(self.counts().values())

    def counts(self) -> dict[str, int]:
        """What should be 0."""
        return {name: getattr(self, name) for name in COUNTED}


COLLECTED_SECONDS = 20.0

COUNTED = (
    "messages_lost",
    "messages_doubled",
    "lines_lost",
    "lines_doubled",
    "runs_doubled",
    "objects_left",
    "wrong",
)


@dataclass(frozen=True, kw_only=True)
class Client:
    """Where a client of clusters keeps what is counted."""

    attempts: Callable[[UnderWay], int]
    sent: Callable[[UnderWay], Counter[str]]
    """The messages of all drivers."""
    shown: str
    """What a line of the run's page begins with that shows one; a regular expression."""
    logs: Callable[[UnderWay], Iterable[Path]]
    """What it has read of drivers' logs."""
    left: Callable[[UnderWay], list[str]]
    """Objects that should be gone."""


def played[S: UnderWay](fault: Fault[S], scene: S) -> Reckoning:
    """Play a fault, wait for the run's end, and count."""
    fault.play(scene)
    scene.end()
    return counted(scene, fault.expected, FACTORY)


def counted(scene: UnderWay, expected: Expected, client: Client) -> Reckoning:
    """What came of a run that has ended."""
    runs = scene.runs()
    attempts = client.attempts(scene)
    page = [line for run in reversed(runs) for line in _page(scene.instance, run.run_id)]
    status = runs[0].status.value if runs else "none"
    wrong = _is_wrong(expected, status, attempts, page)
    lines, dead = _lines(scene, client.logs(scene))
    messages = _difference(client.sent(scene), _shown(page, client.shown))
    two_at_once = any(scene.root.rglob("two-at-once"))
    more = max(0, scene.drivers() - attempts)
    left = _staying(client, scene)
    counts = {
        "messages_lost": messages[0],
        "messages_doubled": messages[1],
        "lines_lost": lines[0],
        "lines_doubled": lines[1],
        "runs_doubled": max(int(two_at_once), 0 if expected.new_head else more),
        "objects_left": len(left),
        "wrong": int(wrong),
    }
    end = f"{status} in {attempts}"
    why = "" if not any(counts.values()) else "\n".join([*page[-12:], *left])
    return Reckoning(
        **counts,
        started_again_by_kuberay=more if expected.new_head else 0,
        lines_left_on_a_dead_head=dead,
        end=end,
        why=why,
    )


def _staying(client: Client, scene: UnderWay) -> list[str]:
    """What is left and stays.

    An operator that has not heard yet that a RayJob is gone may make its cluster once more, and the
    garbage collector removes that.
    """
    deadline = time.monotonic() + COLLECTED_SECONDS
    while (left := client.left(scene)) and time.monotonic() < deadline:
        time.sleep(0.5)
    return left


def _is_wrong(expected: Expected, status: str, attempts: int, page: Iterable[str]) -> bool:
    said = any(expected.words in line for line in page)
    return (status, attempts) != (expected.ends, expected.attempts) or not said


def _page(instance: dg.DagsterInstance, run_id: str) -> Iterator[str]:
    for entry in instance.all_logs(run_id):
        yield entry.user_message
        event = entry.dagster_event
        if event is not None and event.event_type == dg.DagsterEventType.STEP_FAILURE:
            error = event.step_failure_data.error
            while error is not None:
                yield error.message
                error = error.cause


def _attempts(scene: UnderWay) -> int:
    found = [handles(scene.instance, run.run_id, STEP) for run in scene.runs()]
    return len({handle.launch.attempt for some in found for handle in some})


def _sent(scene: UnderWay) -> Counter[str]:
    sent: Counter[str] = Counter()
    for path in scene.root.rglob("messages*/**/[0-9]*.jsonl"):
        for line in path.read_text().splitlines():
            payload: dict[str, str] = (json.loads(line)["params"] or {}).get("payload") or {}
            if "detail" in payload:
                sent[payload["detail"]] += 1
    return sent


def _shown(page: Iterable[str], shown: str) -> Counter[str]:
    return Counter(found[1] for line in page if (found := re.match(shown, line)))


def _logs(scene: UnderWay) -> Iterable[Path]:
    return scene.root.rglob("logs/driver*.log")


def _lines(scene: UnderWay, logs: Iterable[Path]) -> tuple[tuple[int, int], int]:
    """Lost and doubled; and those lost of drivers that died with their heads."""
    printed = Counter(line for lines in scene.said().values() for line in lines)
    read = Counter(
        line
        for path in logs
        for line in path.read_text(errors="replace").splitlines()
        if _LINE.fullmatch(line)
    )
    gone = scene.died_with_their_heads()
    dead = {line for line in printed if line.rpartition(" ")[2] in gone}
    lost, doubled = _difference(printed, read)
    on_heads = sum((Counter({line: printed[line] for line in dead}) - read).values())
    return (lost - on_heads, doubled), on_heads


def _difference(had: Counter[str], seen: Counter[str]) -> tuple[int, int]:
    """Lost; and seen more often than it was said, but for what a killed driver had not noted."""
    return (had - seen).total(), sum(count - 1 for count in seen.values() if count > 1)


def _left(scene: UnderWay) -> list[str]:
    namespace = scene.namespace
    core, ray = f"/api/v1/namespaces/{namespace}", f"/apis/ray.io/v1/namespaces/{namespace}"
    paths = [f"{ray}/rayjobs", f"{ray}/rayclusters", f"{core}/pods", f"{core}/secrets"]
    return [
        one["metadata"]["name"]
        for path in paths
        for one in scene.admin.items(path)
        if one.get("type", "Opaque") == "Opaque"
    ]


FACTORY = Client(
    attempts=_attempts,
    sent=_sent,
    shown=r"said: (message \d+ of \S+) ",
    logs=_logs,
    left=_left,
)
