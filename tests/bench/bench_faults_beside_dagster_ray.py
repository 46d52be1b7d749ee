"""Ten faults of a cluster without kubelets: our client, and dagster-ray's before the same stage.

Both have the same API server, operator, nodes and gateway, and a driver that says the same; a fault
strikes both at the same moments, which are drawn. One run at a time, the two sides in turn.
"""

import sys
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path
from random import Random

from tests.bench.peer_client import DAGSTER_RAY, PeerTheatre, clear, grant, settle
from tests.bench.peer_dashboard import rays_own
from tests.cluster.control_plane import running
from tests.cluster.fault import Fault
from tests.cluster.faults import FAULTS
from tests.cluster.hurried import LOOK_SECONDS, hurried_dagster
from tests.cluster.reckoning import COUNTED, Reckoning, counted, played
from tests.cluster.scenes import Scene, Theatre, theatre
from tests.cluster.under_way import NUMBERS

SEED, TIMES = 10, 3
KINDS = (
    "no fault",
    "Dagster process killed",
    "API server killed and restarted",
    "operator killed and restarted",
    "connection refused",
    "409: answer of the create lost",
    "410",
    "429 with Retry-After",
    "503",
    "stale reads",
    "token expired, then renewed",
    "token rotated",
)
OURS_ONLY = {
    "before the Secret",
    "Secret",
    "before the deletion",
    "while removing",
}
"""Moments that a client does not have which makes no Secret and deletes nothing."""
SIDES = ("ours", "dagster-ray")


def _nothing(scene: Scene) -> None:
    scene.launch()
    scene.go()


CONTROL = Fault("no fault", "never", _nothing)

type Rows = dict[tuple[str, str], list[Reckoning]]


def run() -> str:
    """The table of the page of benchmarks."""
    begun = time.monotonic()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        with (
            running("beside") as plane,
            hurried_dagster(folder) as instance,
            theatre(plane, instance, folder) as made,
            rays_own(made.told) as dashboard,
        ):
            grant(made.account)
            rows = _rows(made, _of_the_peer(made, dashboard))
    return "\n".join(_table(rows, time.monotonic() - begun))


def drawn(kind: str) -> list[Fault[Scene]]:
    """`TIMES` faults of a kind, at as many different moments as it has."""
    all_of_it = [
        one for one in [CONTROL, *FAULTS] if one.kind == kind and one.when not in OURS_ONLY
    ]
    mixed = Random(f"{SEED} {kind}").sample(all_of_it, len(all_of_it))
    return [mixed[number % len(mixed)] for number in range(TIMES)]


def _of_the_peer(made: Theatre, dashboard: str) -> PeerTheatre:
    """In the same namespace, with scenes that are numbered apart."""
    return PeerTheatre(
        account=made.account,
        instance=made.instance,
        folder=made.folder,
        told=made.told,
        gateway=made.gateway,
        door=made.door,
        scenes=1000,
        dashboard=dashboard,
    )


def _rows(ours: Theatre, peer: PeerTheatre) -> Rows:
    rows: Rows = defaultdict(list)
    for number in range(TIMES):
        for fault in (drawn(kind)[number] for kind in KINDS):
            for side in SIDES if number % 2 == 0 else reversed(SIDES):
                random = Random(f"{SEED} {number} {fault}")
                if side == "ours":
                    found = _ours(ours, fault, random)
                else:
                    found = _peers(peer, fault, random)
                rows[fault.kind, side].append(found)
                told = "" if found.clean else f" {found.counts()}\n{found.why}"
                print(f"{fault}: {side}: {found.end}{told}", file=sys.stderr)
    return rows


def _ours(made: Theatre, fault: Fault[Scene], random: Random) -> Reckoning:
    with made.scene(random) as scene:
        return played(fault, scene)


def _peers(made: PeerTheatre, fault: Fault[Scene], random: Random) -> Reckoning:
    with made.scene(random) as scene:
        fault.play(scene)
        scene.end()
        settle(scene)
        found = counted(scene, fault.expected, DAGSTER_RAY)
        clear(scene)
        return found


def _table(rows: Rows, seconds: float) -> list[str]:
    names = [name.replace("_", " ") for name in COUNTED]
    return [
        _HEAD.format(
            numbers=NUMBERS,
            version=version("dagster-ray"),
            look=LOOK_SECONDS,
            times=TIMES,
            runs=sum(map(len, rows.values())),
            minutes=seconds / 60,
        ),
        f"| fault | client | times | how the runs ended | {' | '.join(names)} |",
        f"|---|---|---:|---|{'---:|' * len(names)}",
        *(_row(kind, side, rows[kind, side]) for kind in KINDS for side in SIDES),
        *(_row("**all**", side, [r for kind in KINDS for r in rows[kind, side]]) for side in SIDES),
    ]


def _row(kind: str, side: str, some: Sequence[Reckoning]) -> str:
    ends = Counter(found.end.partition(" ")[0] for found in some)
    told = ", ".join(f"{end}: {count}" for end, count in ends.most_common())
    sums = [str(sum(found.counts()[name] for found in some)) for name in COUNTED]
    return f"| {kind} | {side} | {len(some)} | {told} | {' | '.join(sums)} |"


_HEAD = """## Ten faults, beside dagster-ray

A real API server, controllers, scheduler and KubeRay's operator; pods are played, and the driver of
each run is a process that says {numbers} numbered lines and messages. Ours is `FactoryPipesClient`,
the other `PipesKubeRayJobClient` of dagster-ray {version}: with the same RayJob but for our Secret,
its own message reader on Ray's log tail, the API server through the same gateway, a token that is
read anew for each request (by an exec plugin of its kubeconfig), and a look every {look} seconds as
ours. The same faults strike both at the same moments, drawn, {times} of each kind, one run at a
time. Only the API is faulty, never the way to the dashboard. A message counts as shown where it is
in Dagster's event log; a line where it is in the driver's log of the run's directory (ours) or in
the step's stdout that Dagster keeps (dagster-ray). A run that failed is not executed again. One
whose process was killed is launched again; what its first driver said and nobody showed is lost,
though a second driver says as much. No fault here touches a driver, and each ends well: the verdict
is wrong where the run is said to have failed, or has not ended in two minutes. Moments that
only ours has (its Secret, its deletion) are left out.

What they do differently by design: ours records an attempt before it creates the RayJob, whose name
follows from the run, asks again after errors that pass, and takes up what a killed process has left
behind; messages lie in the namespace until they are read. dagster-ray's client gives each RayJob a
random name, and reads messages and lines from one tail that begins once the job runs. Its op fails
at the first error of the API that the Kubernetes client does not repeat by itself, and the RayJob
goes on without it. It deletes no RayJob: one that has ended is left to KubeRay, which removes its
cluster later, and is not counted as left. {runs} runs in {minutes:.0f} minutes.
"""
