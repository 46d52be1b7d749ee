"""Many runs at once against one API server: whether all end well, and what they ask of it.

A real API server, controllers, scheduler and KubeRay's operator; pods are played, followers and
drivers are processes. All intervals are the factory's own.
"""

import statistics
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import wait
from dataclasses import dataclass
from pathlib import Path

from tests.cluster import many_runs
from tests.cluster.api import eventually
from tests.cluster.audit import Audit
from tests.cluster.control_plane import ControlPlane, running
from tests.cluster.many_runs import Followed, ManyRuns

RUNS = 100
SETTLING_SECONDS = 10.0
QUIET_SECONDS = 30.0
PATIENCE_SECONDS = 1800.0


@dataclass(frozen=True, kw_only=True)
class Crowd:
    """What came of many runs at once."""

    found: Sequence[Followed]
    drivers: int
    left: int
    phases: dict[str, tuple[float, int]]
    """Of each its seconds and its requests."""
    answers: Counter[int]
    own_mib: Sequence[float]


def run() -> str:
    """The section of the page of benchmarks."""
    with tempfile.TemporaryDirectory() as name:
        audit = Audit(Path(name))
        with running("many", server_flags=audit.flags()) as plane:
            return _of_crowd(_crowd(plane, audit, Path(name), RUNS))


def _crowd(plane: ControlPlane, audit: Audit, folder: Path, count: int) -> Crowd:
    with many_runs.many_runs(plane, folder, count=count) as made:
        times = [time.time()]
        made.begin(count)
        _until_opened(made, count)
        times.append(time.time())
        time.sleep(SETTLING_SECONDS)
        own = made.own_mib()
        times.append(time.time())
        time.sleep(QUIET_SECONDS)
        times.append(time.time())
        made.go()
        wait(made.followers, timeout=PATIENCE_SECONDS)
        times.append(time.time())
        left = len(made.left())
        found = [one.result() for one in made.followers]
        for one in found:
            if not one.is_whole:
                print(one, file=sys.stderr)
        user = made.account.subject
        spans = {
            "from the launch to the last driver's first message": times[0:2],
            "all run, and nothing happens": times[2:4],
            "from the last step to everything removed": times[3:5],
        }
        return Crowd(
            found=found,
            drivers=len(made.stage.drivers),
            left=left,
            phases={
                name: (end - begin, len(audit.asked(user, begin, end)))
                for name, (begin, end) in spans.items()
            },
            answers=Counter(one.status for one in audit.asked(user)),
            own_mib=own,
        )


def _until_opened(made: ManyRuns, count: int) -> None:
    if not eventually(lambda: made.opened() == count, PATIENCE_SECONDS):
        ended = [one.result() for one in made.followers if one.done()]
        raise RuntimeError(f"{made.opened()} of {count} drivers have opened; ended: {ended}")


def _of_crowd(crowd: Crowd) -> str:
    found = crowd.found
    took = max(one.ended for one in found) - min(one.began for one in found)
    rows = [
        ("runs that did well", f"{sum(one.success for one in found)} of {len(found)}"),
        ("drivers started more than once", str(crowd.drivers - len(found))),
        ("messages lost or doubled", str(sum(one.messages_wrong for one in found))),
        ("logs that are not as printed", str(sum(one.lines != many_runs.LINES for one in found))),
        ("objects left", str(crowd.left)),
        ("requests answered with 429", str(crowd.answers[429])),
        ("... with 5xx", str(sum(n for code, n in crowd.answers.items() if code >= 500))),
        ("seconds in all", f"{took:.0f}"),
        ("CPU-seconds of a follower", _spread([one.cpu_seconds for one in found])),
        ("MiB of a follower alone, all running", _spread(list(crowd.own_mib))),
        ("MiB of a follower at its peak, shared ones too", _spread([o.peak_mib for o in found])),
    ]
    phases = [
        f"| {name} | {seconds:.0f} | {asked} | {asked / seconds:.1f} |"
        for name, (seconds, asked) in crowd.phases.items()
    ]
    return "\n".join(
        [
            f"## {len(found)} runs at once",
            "",
            f"{len(found)} RayJobs on {len(found)} nodes, launched at once, each followed by a "
            "process of its own and run by a driver of its own, which waits until all have said "
            "their first message, and then goes on for forty seconds; control plane, followers, "
            "drivers and played pods share the cores. Followers are forked from one process, so "
            "that they share what they import; Dagster's own launcher lets each import for "
            "itself. Memory is "
            "median (lowest to highest).",
            "",
            "| | |",
            "|---|---:|",
            *(f"| {name} | {value} |" for name, value in rows),
            "",
            "| phase | seconds | requests of the followers | a second |",
            "|---|---:|---:|---:|",
            *phases,
        ]
    )


def _spread(values: Sequence[float]) -> str:
    return f"{statistics.median(values):.2f} ({min(values):.2f} to {max(values):.2f})"


if __name__ == "__main__":
    print(run())
