"""Every fault of a cluster without kubelets, several times, and what came of each run.

Fresh clusters, one run at a time on each; a fault strikes at a moment that is drawn anew each time.
`TIMES` of each make more than three hundred.
"""

import multiprocessing
import sys
import tempfile
import time
from collections import defaultdict
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from random import Random

from tests.bench.fault_table import Rows, again_by_kuberay, on_dead_heads, rows_of
from tests.cluster.control_plane import running
from tests.cluster.fault import Fault
from tests.cluster.faults import FAULTS
from tests.cluster.hurried import hurried_dagster
from tests.cluster.reckoning import Reckoning, played
from tests.cluster.scenes import Scene, Theatre, theatre

SEED, TIMES, CLUSTERS = 300, 5, 3


def run() -> str:
    """The table of the page of benchmarks."""
    begun = time.monotonic()
    rows: Rows = defaultdict(list)
    with ProcessPoolExecutor(CLUSTERS, multiprocessing.get_context("spawn")) as pool:
        for some in pool.map(_on_cluster, range(CLUSTERS)):
            for what, found in some:
                rows[what].append(found)
    ordered = {(fault.kind, fault.when): rows[fault.kind, fault.when] for fault in FAULTS}
    return "\n".join(_table(ordered, time.monotonic() - begun))


def _on_cluster(which: int) -> list[tuple[tuple[str, str], Reckoning]]:
    """That cluster's share of all runs; each process has a factory of its own."""
    every = [(number, place) for number in range(TIMES) for place in range(len(FAULTS))]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        with (
            running(f"faults-{which}") as plane,
            hurried_dagster(folder) as instance,
            theatre(plane, instance, folder) as made,
        ):
            return [
                _played(made, number, FAULTS[place]) for number, place in every[which::CLUSTERS]
            ]


def _played(made: Theatre, number: int, fault: Fault[Scene]) -> tuple[tuple[str, str], Reckoning]:
    with made.scene(Random(f"{SEED} {number} {fault}")) as scene:
        found = played(fault, scene)
    if not found.clean:
        print(f"{fault}: {found.end} {found.counts()}\n{found.why}", file=sys.stderr)
    return (fault.kind, fault.when), found


def _table(rows: Rows, seconds: float) -> list[str]:
    every = [found for some in rows.values() for found in some]
    return [
        "## Faults, on a cluster without kubelets",
        "",
        "A real API server, controllers, scheduler and KubeRay's operator; pods are played, and "
        "the driver of each run is a process that says numbered lines and messages. The factory "
        "looks ten times as often as it does otherwise. How a run ended is its state and the "
        "number of its attempts. What a driver printed in its last moment on a head that died "
        f"is lost with that head, and is not counted as lost: {on_dead_heads(every)} lines. "
        "KubeRay makes a new head at once, and starts the driver of the same attempt there if "
        f"nobody has looked: {again_by_kuberay(every)} times. Runs doubled are two drivers at "
        "once, or one more than attempts for any other reason. "
        f"{len(every)} runs in {seconds / 60:.0f} minutes, on {CLUSTERS} such clusters at once.",
        "",
        *rows_of(rows),
    ]
