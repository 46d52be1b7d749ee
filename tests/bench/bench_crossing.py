"""What following a run costs: time to its first message, and requests in a quiet minute.

A real API server, controllers, scheduler and KubeRay's operator; pods are played, drivers are
processes. The API server writes down what it is asked, so nothing is counted by who asks. All
intervals are the factory's own. Many runs at once are in `bench_many_runs`.
"""

import statistics
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from tests.bench import crossing_first
from tests.bench.crossing_first import Clock
from tests.cluster import many_runs, taken_up
from tests.cluster.api import eventually
from tests.cluster.audit import Asked, Audit
from tests.cluster.control_plane import ControlPlane, running
from tests.cluster.many_runs import ManyRuns

ROUNDS = 7
SETTLING_SECONDS = 20.0
QUIET_SECONDS = 120.0
PATIENCE_SECONDS = 120.0

type First = dict[str, list[Clock]]


def run() -> str:
    """The section of the page of benchmarks."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        audit = Audit(folder)
        with running("crossing", server_flags=audit.flags()) as plane:
            first = _first(plane, _made(folder / "first"))
            quiet = _quiet(plane, audit, _made(folder / "quiet"))
    return "\n\n".join([_HEAD, _of_first(first), _of_quiet(quiet)])


# Measures.


def _first(plane: ControlPlane, folder: Path) -> First:
    found: First = {"ours": [], "plain": []}
    with many_runs.many_runs(plane, folder, count=1) as made:
        crossing_first.let_watch(plane.admin, made.account.namespace)
        made.go()
        for number in range(ROUNDS + 1):
            for side in found if number % 2 == 0 else reversed(found):
                function = getattr(crossing_first, side)
                clock = made.pool.submit(function, made.launcher.as_argument()).result()
                _clear(made)
                print(f"{side}: {clock.seen - clock.began:.2f} s", file=sys.stderr)
                if number:  # the first ones import, and connect the API server to the dashboard
                    found[side].append(clock)
    return found


def _quiet(plane: ControlPlane, audit: Audit, folder: Path) -> list[Asked]:
    with many_runs.many_runs(plane, folder, count=1) as made:
        made.begin(1)
        assert eventually(made.opened, PATIENCE_SECONDS)
        time.sleep(SETTLING_SECONDS)
        begun = time.time()
        time.sleep(QUIET_SECONDS)
        asked = audit.asked(made.account.subject, begun, begun + QUIET_SECONDS)
        made.go()
        assert made.followers[0].result().is_whole
    return asked


def _clear(made: ManyRuns) -> None:
    """The plain client leaves everything behind."""
    for job in made.stage.rayjobs():
        namespace, name = job["metadata"]["namespace"], job["metadata"]["name"]
        made.stage.admin.delete(f"/apis/ray.io/v1/namespaces/{namespace}/rayjobs/{name}")
        made.stage.admin.delete(f"/api/v1/namespaces/{namespace}/secrets/{name}-token")
    assert eventually(lambda: not made.left(), taken_up.PATIENCE_SECONDS), made.left()


def _made(folder: Path) -> Path:
    folder.mkdir()
    return folder


# Words.


def _of_first(found: First) -> str:
    whole = {side: [one.seen - one.began for one in some] for side, some in found.items()}
    before = {side: [one.posted - one.began for one in some] for side, some in found.items()}
    after = {side: [one.seen - one.written for one in some] for side, some in found.items()}
    ratio = statistics.median(whole["ours"]) / statistics.median(whole["plain"])
    return "\n".join(
        [
            "### From the submission to the first message",
            "",
            f"Median of {ROUNDS} rounds in turn (lowest to highest), in seconds. The other side is "
            "the plainest client there can be, in the place of `kubectl create` and a watch, which "
            "would have to start a program: manifests (the same, but for names), TLS connections "
            "and token are ready before its clock begins; it posts Secret and RayJob, watches the "
            "RayJob, and looks for the message a hundred times a second. Ours counts from the call "
            "of `FactoryPipesClient.run` to Dagster's handler of messages: all that it writes down "
            "in Dagster, builds, and asks before and between is in it. Most of the time is "
            "KubeRay's, which looks at a RayJob every three seconds, and the start of the driver.",
            "",
            "| seconds | ours | plain client |",
            "|---|---|---|",
            f"| **from the submission to the first message** | {_spread(whole['ours'])} | "
            f"{_spread(whole['plain'])} |",
            f"| of it until the RayJob is posted | {_spread(before['ours'])} | "
            f"{_spread(before['plain'])} |",
            f"| of it from the message written to the message seen | {_spread(after['ours'])} | "
            f"{_spread(after['plain'])} |",
            "",
            f"The ratio is {ratio:.2f} where no cluster has to start, so that hardly anything is "
            "measured but the two clients. With a Ray cluster that starts it is in a section of "
            "its own.",
        ]
    )


def _of_quiet(asked: Sequence[Asked]) -> str:
    minutes = QUIET_SECONDS / 60
    kinds = Counter(f"{one.verb} {one.what}" for one in asked)
    return "\n".join(
        [
            "### A quiet minute",
            "",
            "A run whose driver runs and says nothing, its log followed through the API server's "
            f"proxy: requests of the factory's account in the API server's audit log, over "
            f"{minutes:.0f} minutes. A stream that goes on is no request.",
            "",
            "| request | a minute |",
            "|---|---:|",
            *(f"| {kind} | {count / minutes:.1f} |" for kind, count in kinds.most_common()),
            f"| **all** | **{len(asked) / minutes:.1f}** |",
        ]
    )


def _spread(values: Sequence[float]) -> str:
    return f"{statistics.median(values):.2f} ({min(values):.2f} to {max(values):.2f})"


_HEAD = """## Following runs on a cluster

A real API server, controllers, scheduler and KubeRay 1.6.2; pods are played, drivers are processes
that write messages and a log. The factory's intervals are its own, not the short ones of tests."""


if __name__ == "__main__":
    print(run())
