"""Every fault in real containers, and what came of each run.

Two nodes with kubelets, one run at a time; a fault strikes at a moment that is drawn anew each
time. `TIMES` of each make more than twenty.
"""

import sys
import tempfile
import time
from collections import defaultdict
from pathlib import Path
from random import Random

from tests.bench.fault_table import Rows, again_by_kuberay, on_dead_heads, rows_of
from tests.cluster.builds import NoGo
from tests.cluster.faults_in_containers import FAULTS
from tests.cluster.hurried import hurried_dagster
from tests.cluster.kubelets import NoContainers, running_nodes
from tests.cluster.reckoning import played
from tests.cluster.scenes_in_containers import Machinery, machinery

SEED, TIMES = 20, 1


def run() -> str:
    """The table of the page of benchmarks; nothing where no containers run."""
    begun = time.monotonic()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        try:
            with (
                running_nodes("faults") as machines,
                hurried_dagster(folder) as instance,
                machinery(machines, instance, folder) as made,
            ):
                rows = _played(made)
        except (NoGo, NoContainers) as missing:
            print(f"No containers here: {missing}", file=sys.stderr)
            return ""
    return "\n".join(_section(rows, time.monotonic() - begun))


def _played(made: Machinery) -> Rows:
    rows: Rows = defaultdict(list)
    for number in range(TIMES):
        for fault in FAULTS:
            begun = time.monotonic()
            try:
                with made.scene(Random(f"{SEED} {number} {fault}")) as scene:
                    found = played(fault, scene)
            except (AssertionError, LookupError) as missed:  # it could not strike
                print(f"{fault}: not played: {missed!r}", file=sys.stderr)
                continue
            rows[fault.kind, fault.when].append(found)
            told = f"{found.end} {found.counts()}\n{found.why}" if not found.clean else found.end
            print(f"{fault}: {told} in {time.monotonic() - begun:.0f} s", file=sys.stderr)
    return rows


def _section(rows: Rows, seconds: float) -> list[str]:
    every = [found for some in rows.values() for found in some]
    return [
        "## Faults, in real containers",
        "",
        "Two kubelets with containers of their own, KubeRay's operator and Ray: the head on one "
        "node, its worker on the other. The driver asks its worker before each of its numbered "
        "lines and messages. The factory looks ten times as often as it does otherwise, and Ray "
        "gives a node up after 20 s. What is counted is the same as on a cluster without "
        f"kubelets: {on_dead_heads(every)} lines were lost with a head that died, and "
        f"{again_by_kuberay(every)} times KubeRay started a driver again on a new head before "
        "anybody looked, which the claim of the first on its attempt kept out. "
        "A head whose network is cut for good is not among them: KubeRay 1.6.2, which asks "
        "through the API server, waits for its answer without an end in sight, and does nothing "
        "for any run meanwhile. "
        f"{len(every)} of {TIMES * len(FAULTS)} runs came to the moment of their fault, in "
        f"{seconds / 60:.0f} minutes.",
        "",
        *rows_of(rows),
    ]
