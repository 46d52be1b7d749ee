"""KAI's real scheduler with the factory's gangs: who waits, who gives way, and how long it takes.

Only where `FACTORY_KAI_BIN` names its programs. The scenes are those of the tests
(`tests/cluster/kai_scenes.py`), each played several times.
"""

import statistics
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

from tests.cluster import kai_scenes
from tests.cluster.gangs import GRACE_SECONDS, Gangs, gangs
from tests.cluster.kai import NoKai, programs, running_kai
from tests.cluster.kai_scenes import Scene

ROUNDS = 5

SCENES: dict[str, Callable[[Gangs], Scene]] = {
    "waits whole": kai_scenes.waits_whole,
    "reclaims": kai_scenes.reclaims,
    "preempts": kai_scenes.preempts,
    "goes first": kai_scenes.goes_first,
    "is cancelled": kai_scenes.is_cancelled,
}

TIMES = [
    # scene, what was timed, in words
    ("waits whole", "says why", "a gang of 3 that does not fit: created to its reason in words"),
    (
        "waits whole",
        "has its place",
        f"... the other gang told to end ({GRACE_SECONDS} s grace) to all 3 pods bound",
    ),
    (
        "reclaims",
        "told to end",
        "training against a probe: created to all 3 of its pods told to end",
    ),
    ("reclaims", "known", "... to our verdict that the probe was evicted"),
    ("reclaims", "has its place", f"... to all 3 pods bound, of it {GRACE_SECONDS} s grace"),
    ("reclaims", "runs", "... to its driver running"),
    ("preempts", "told to end", "urgent training against training: created to all told to end"),
    ("preempts", "known", "... to our verdict that it was evicted"),
    ("preempts", "has its place", f"... to all 3 pods bound, of it {GRACE_SECONDS} s grace"),
    ("is cancelled", "nothing is left", "a waiting gang: deleted to nothing left of it"),
]


def run() -> str:
    """Play every scene in turn, and put the times into a table."""
    try:
        programs()
    except NoKai as missing:
        print(missing, file=sys.stderr)
        return ""
    played: dict[str, list[Scene]] = {name: [] for name in SCENES}
    with (
        tempfile.TemporaryDirectory() as folder,
        running_kai("bench") as plane,
        gangs(plane, Path(folder)) as runs,
    ):
        for _ in range(ROUNDS):
            for name, play in SCENES.items():
                played[name].append(play(runs))
                print(f"{name}: {played[name][-1].seconds}", file=sys.stderr)
    return table(played)


def table(played: dict[str, list[Scene]]) -> str:
    """The section of the page of benchmarks."""
    rounds = len(next(iter(played.values())))
    reason = played["waits whole"][-1].states["waits"].reason
    lines = [
        "## With KAI",
        "",
        f"KAI 0.14.7 and KubeRay 1.6.2 on a real API server, two nodes of 8 GPUs without kubelets "
        f"whose pods' states are played, scheduling every 0.3 s. Median of {rounds} rounds in turn "
        "(lowest to highest), in seconds, as seen by whoever looks ten times a second.",
        "",
        "| from, to | seconds |",
        "|---|---|",
    ]
    for scene, what, words in TIMES:
        values = [one.seconds[what] for one in played[scene]]
        lines.append(f"| {words} | {_spread(values)} |")
    lines += ["", "| what has to hold | times |", "|---|---|"]
    lines += [f"| {words} | {held} of {rounds} |" for words, held in _held(played)]
    return "\n".join([*lines, "", f"The words of the gang that waits: `{reason}`."])


def _held(played: dict[str, list[Scene]]) -> list[tuple[str, int]]:
    def count(scene: str, holds: Callable[[Scene], bool]) -> int:
        return sum(map(holds, played[scene]))

    def evicted(scene: Scene) -> bool:
        return scene.states["loser"].verdict == "evicted"

    return [
        (
            "a gang that does not fit has no pod on a node, and all 3 at once when it does",
            count("waits whole", lambda one: one.pods_placed_too_early == 0),
        ),
        ("the probe's verdict is `evicted`, in favour of the training", count("reclaims", evicted)),
        ("the lower training's verdict is `evicted`", count("preempts", evicted)),
        (
            "of two trainings that wait, the one of higher priority goes first, though it came "
            "later",
            count("goes first", lambda one: one.states["lower"].phase == "queued"),
        ),
        (
            "of a waiting gang that was deleted nothing is left",
            count("is cancelled", lambda one: "nothing is left" in one.seconds),
        ),
    ]


def _spread(values: list[float]) -> str:
    return f"{statistics.median(values):.1f} ({min(values):.1f} to {max(values):.1f})"


if __name__ == "__main__":
    print(run())
