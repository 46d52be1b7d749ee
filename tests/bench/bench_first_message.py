"""From submission to first message, where a Ray cluster has to start: beside a plain client.

Two nodes with real containers; nothing is played. The two sides in turn, by the clocks and the
plain client of `crossing_first`.
"""

import statistics
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from random import Random

from factory.control.instance import ensure
from factory.settings import Settings
from tests.bench import crossing_first
from tests.cluster.api import eventually
from tests.cluster.builds import NoGo
from tests.cluster.kubelets import NoContainers, running_nodes
from tests.cluster.scenes_in_containers import Machinery, SceneInContainers, machinery

ROUNDS, GOAL = 3, 1.1
PATIENCE_SECONDS = 120.0

type Seconds = dict[str, list[float]]


def run() -> str:
    """The section of the page of benchmarks; nothing where no containers run."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        home = {"DAGSTER_HOME": str(folder / "home"), "FACTORY_STATE": str(folder / "state")}
        try:
            with (
                running_nodes("first") as machines,
                ensure(Settings.from_environment(home)) as instance,
                machinery(machines, instance, folder) as made,
            ):
                return _section(_measured(made))
        except (NoGo, NoContainers) as missing:
            print(f"No containers here: {missing}", file=sys.stderr)
            return ""


def _measured(made: Machinery) -> Seconds:
    found: Seconds = {"ours": [], "plain": []}
    namespace = made.here.cluster["namespace"]
    crossing_first.let_watch(made.machines.plane.admin, namespace)
    for number in range(ROUNDS + 1):
        for side in found if number % 2 == 0 else reversed(found):
            with made.scene(Random(number)) as scene:
                scene.go()
                clock = getattr(crossing_first, side)(scene.launcher.as_argument())
                _clear(scene)
            print(f"{side}: {clock.seen - clock.began:.2f} s", file=sys.stderr)
            if number:  # the first ones import
                found[side].append(clock.seen - clock.began)
    return found


def _clear(scene: SceneInContainers) -> None:
    """The plain client leaves everything behind. KubeRay stops the job by the Secret's token."""
    jobs = [job["metadata"] for job in scene.rayjobs()]
    for job in jobs:
        path = f"/apis/ray.io/v1/namespaces/{job['namespace']}/rayjobs/{job['name']}"
        scene.admin.delete(path)
    assert eventually(lambda: not scene.rayjobs() and not scene.pods(), PATIENCE_SECONDS)
    for job in jobs:
        path = f"/api/v1/namespaces/{job['namespace']}/secrets/{job['name']}-token"
        scene.admin.delete(path)


def _section(found: Seconds) -> str:
    ratio = statistics.median(found["ours"]) / statistics.median(found["plain"])
    verdict = "reached" if ratio <= GOAL else "**missed**"
    return "\n".join(
        [
            "## The first message, where a Ray cluster starts",
            "",
            f"Median of {ROUNDS} rounds in turn (lowest to highest), in seconds, from the "
            "submission to the first message of a driver in a container, on a Ray cluster of two "
            "nodes that is made for it. What the sides are, and what each does more or less than "
            "the other, is in the section of what following a run costs; there pods are played, "
            "so that next to nothing but the two clients is measured.",
            "",
            "| ours | plain client |",
            "|---|---|",
            f"| {_spread(found['ours'])} | {_spread(found['plain'])} |",
            "",
            f"Goal: a ratio of at most {GOAL}; {verdict} with {ratio:.2f}.",
        ]
    )


def _spread(values: Sequence[float]) -> str:
    return f"{statistics.median(values):.2f} ({min(values):.2f} to {max(values):.2f})"
