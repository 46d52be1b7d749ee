"""Every fault of a cluster without kubelets, several times, and what came of each run.

A fresh cluster, one run at a time; a fault strikes at a moment that is drawn anew each time.
`TIMES` of each make more than three hundred.
"""

import sys
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Sequence
from pathlib import Path
from random import Random

import pytest

from factory.control import pipes
from factory.control.instance import ensure
from factory.control.kube import cluster as kube_cluster
from factory.settings import Settings
from tests.cluster.control_plane import running
from tests.cluster.faults import FAULTS
from tests.cluster.reckoning import COUNTED, Reckoning, played
from tests.cluster.scenes import Theatre, theatre

SEED, TIMES = 300, 5

type Rows = dict[tuple[str, str], list[Reckoning]]


def run() -> str:
    """The table of the page of benchmarks."""
    begun = time.monotonic()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        home = {"DAGSTER_HOME": str(folder / "home"), "FACTORY_STATE": str(folder / "state")}
        with (
            pytest.MonkeyPatch.context() as patched,
            running("faults") as plane,
            ensure(Settings.from_environment(home)) as instance,
            theatre(plane, instance, folder) as made,
        ):
            patched.setattr(kube_cluster, "LOOK_SECONDS", 0.5)
            patched.setattr(kube_cluster, "HURRY_SECONDS", 0.2)
            patched.setattr(pipes, "CANCEL_POLL_SECONDS", 0.5)
            rows = _played(made)
    return "\n".join(_table(rows, time.monotonic() - begun))


def _played(made: Theatre) -> Rows:
    rows: Rows = defaultdict(list)
    for number in range(TIMES):
        for fault in FAULTS:
            with made.scene(Random(f"{SEED} {number} {fault}")) as scene:
                found = played(fault, scene)
            rows[fault.kind, fault.when].append(found)
            if not found.clean:
                print(f"{fault}: {found.end} {found.counts()}\n{found.why}", file=sys.stderr)
    return rows


def _table(rows: Rows, seconds: float) -> list[str]:
    every = [found for some in rows.values() for found in some]
    columns = [name.replace("_", " ") for name in COUNTED]
    return [
        "## Faults, on a cluster without kubelets",
        "",
        "A real API server, controllers, scheduler and KubeRay's operator; pods are played, and "
        "the driver of each run is a process that says numbered lines and messages. The factory "
        "looks ten times as often as it does otherwise. How a run ended is its state and the "
        "number of its attempts. What a driver printed in its last moment on a head that died "
        f"is lost with that head, and is not counted as lost: {_on_heads(every)} lines. "
        "KubeRay makes a new head at once, and starts the driver of the same attempt there if "
        f"nobody has looked: {_again(every)} times. Runs doubled are two drivers at once, or one "
        "more than attempts for any other reason. "
        f"{len(every)} runs in {seconds / 60:.0f} minutes.",
        "",
        f"| fault | when | times | how they ended | {' | '.join(columns)} |",
        f"|---|---|---:|---|{'---:|' * len(columns)}",
        *(_row(kind, when, some) for (kind, when), some in rows.items()),
        _row("**all**", "", every),
    ]


def _row(kind: str, when: str, some: Sequence[Reckoning]) -> str:
    ends = Counter(found.end for found in some)
    told = ", ".join(f"{end}: {count}" for end, count in ends.most_common()) if when else ""
    sums = [str(sum(found.counts()[name] for found in some)) for name in COUNTED]
    return f"| {kind} | {when} | {len(some)} | {told} | {' | '.join(sums)} |"


def _on_heads(some: Sequence[Reckoning]) -> int:
    return sum(found.lines_left_on_a_dead_head for found in some)


def _again(some: Sequence[Reckoning]) -> int:
    return sum(found.started_again_by_kuberay for found in some)
