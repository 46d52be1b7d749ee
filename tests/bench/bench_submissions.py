"""Submissions at random before a real API server, and some of them taken up by the operator.

Strict dry-runs of each RayJob, its Secret and both of its pod templates as Pods, in namespaces that
enforce what the cluster's file says of pod security. Then RayJobs that are really made. And wrong
ones, which the factory has to refuse by itself: how many of them reach the server.
"""

import tempfile
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from random import Random

from factory.control.kube.submission import Submission
from tests.cluster import dry_runs, taken_up
from tests.cluster.control_plane import ControlPlane, running
from tests.control.kube import wrong
from tests.control.kube.random_submissions import pairs, submissions
from tests.control.kube.wrong_files import FILES
from tests.control.kube.wrong_launches import LAUNCHES

SEED = 500
TRIED, MADE, EACH = 500, 50, 3
AT_ONCE = 10

type Counts = dict[str, Counter[str]]


def run() -> str:
    """The tables of the page of benchmarks."""
    with running("bench") as plane, dry_runs.namespaces(plane.admin) as spaces:
        tried: Counts = {"tried": Counter(), "refused": Counter()}
        for one in submissions(SEED, TRIED):
            chosen = dry_runs.placed(one, spaces)
            tried["tried"][_kind(chosen)] += 1
            tried["refused"][_kind(chosen)] += bool(dry_runs.refused(plane.admin, chosen))
        made = _made(plane, spaces)
        left = taken_up.left(plane.admin, spaces.values())
    with tempfile.TemporaryDirectory() as folder:
        valid = list(pairs(SEED + 2, EACH))
        against = {
            "a cluster's file": wrong.count(FILES, Random(SEED), valid, Path(folder)),
            "a launch": wrong.count(LAUNCHES, Random(SEED), valid, Path(folder)),
        }
    return "\n".join([*_table(tried | made, len(left)), "", *_wrong(against)])


def _made(plane: ControlPlane, spaces: dict[str, str]) -> Counts:
    counts: Counts = {"made": Counter(), "taken up": Counter()}
    chosen = [dry_runs.placed(one, spaces) for one in submissions(SEED + 1, MADE, workers=3)]
    for first in range(0, MADE, AT_ONCE):
        some = chosen[first : first + AT_ONCE]
        for one in some:
            taken_up.make(plane.admin, one)
        for one in some:
            counts["made"][_kind(one)] += 1
            counts["taken up"][_kind(one)] += not taken_up.not_as_asked(plane.admin, one)
        for one in some:
            taken_up.remove(plane.admin, one)
    return counts


def _kind(submission: Submission) -> str:
    cluster = submission.cluster
    return f"{cluster.pod_security} | {cluster.scheduler} | {submission.queue.submission}"


def _table(counts: Counts, left: int) -> list[str]:
    columns = ("tried", "refused", "made", "taken up")
    rows = [
        "| " + " | ".join([kind, *(str(counts[one][kind]) for one in columns)]) + " |"
        for kind in sorted(counts["tried"] | counts["made"])
    ]
    total = [str(counts[one].total()) for one in columns]
    return [
        "## Submissions at random",
        "",
        f"{TRIED} that the factory takes, each as four objects ({', '.join(dry_runs.KINDS)}) "
        "before a real API server: a strict dry-run in a namespace that enforces the level. "
        f"{MADE} more were made: taken up means that the RayJob is Initializing and its pods have "
        f"the labels, amounts and volumes asked for. After their deletion {left} objects are left.",
        "",
        "| pod security | scheduler | submission | tried | refused by the server | made "
        "| taken up |",
        "|---|---|---|---:|---:|---:|---:|",
        *rows,
        "| **all** | | | " + " | ".join(total) + " |",
    ]


def _wrong(against: Mapping[str, Sequence[wrong.Tried]]) -> list[str]:
    rows = [_row(where, found) for where, found in against.items()]
    every = [one for found in against.values() for one in found]
    return [
        "Wrong ones, each a valid one with one thing broken, handed in as `factory manifest "
        "--server` does; refused means before a request and in the words expected. The server's "
        "schema takes a mode that there is not, no entrypoint, more replicas at least than at "
        "most, a name of 60 characters and an empty image (`tests/cluster/test_submissions.py`); "
        "the factory makes none of these of anything.",
        "",
        "| broken in | kinds | tried | refused by the factory | requests to the server |",
        "|---|---:|---:|---:|---:|",
        *rows,
        _row("**all**", every),
    ]


def _row(where: str, found: Sequence[wrong.Tried]) -> str:
    counts = [sum(getattr(one, name) for one in found) for name in ("tried", "refused", "asked")]
    return f"| {where} | {len(found)} | " + " | ".join(map(str, counts)) + " |"
