"""What ended runs left behind, in every place where runs go: the clusters, and this machine.

`factory orphans` shows it, and the sensor of `sweeping` removes it. What an orphan is on a cluster
is in `kube.orphans`. On this machine a session whose owner is gone is one at once; one whose owner
lives, only if its run has ended and the grace time has passed.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime

from factory.control.clusters import Kubernetes
from factory.control.kube.api import Api, Patience, connect
from factory.control.kube.names import label_value
from factory.control.kube.orphans import Fate, Judge, Orphan
from factory.control.kube.remains import REMOVED, Remains
from factory.control.sessions import Session, Sessions
from factory.errors import ClusterError

PATIENCE = Patience(connect_seconds=3, answer_seconds=8, budget_seconds=8)
"""Other clusters wait for their turn."""

HERE = "this machine"


@dataclass(frozen=True, kw_only=True)
class Row:
    """One thing that was left behind."""

    cluster: str
    kind: str
    name: str
    run: str
    why: str
    since: datetime
    outcome: str = ""
    """What came of it, where it was to be removed."""
    gone: bool = False


@dataclass(frozen=True)
class Report:
    """What was found in one place."""

    rows: list[Row] = field(default_factory=list[Row])
    notes: list[str] = field(default_factory=list[str])
    """What a person should know beside it: what was left alone, what could not be looked at."""
    unseen: bool = False
    """Whether the place could not be looked at."""

    @property
    def left(self) -> list[Row]:
        """What was to be removed and is still there."""
        return [row for row in self.rows if row.outcome and not row.gone]


def on_cluster(cluster: Kubernetes, judge: Judge, remove_within: float | None = None) -> Report:
    """What was left on a cluster; with a number of seconds, it is removed within those.

    A cluster that cannot be asked is a note: the others are looked at all the same.
    """
    api: Api | None = None
    try:
        api = connect(cluster, patience=PATIENCE)
        remains = Remains(api, cluster.namespace, judge)
        found = remains.find(judge.begun(cluster.name))
        notes = [f"{cluster.name}: {note}" for note in found.notes]
        if remove_within is None:
            return Report([_row(cluster.name, one) for one in found.orphans], notes)
        rows = [
            replace(_row(cluster.name, one.orphan), outcome=one.words, gone=one.gone)
            for one in remains.remove(found.orphans, remove_within)
        ]
        return Report(rows, notes)
    except ClusterError as error:
        return Report(notes=[f"{cluster.name} could not be looked at: {error}"], unseen=True)
    finally:
        if api is not None:
            api.close()


def on_wrong(clusters: Mapping[str, str]) -> list[Report]:
    """What is said of clusters whose files are wrong, by name with the problem."""
    return [
        Report(notes=[f"{name} could not be looked at: {problem}"], unseen=True)
        for name, problem in clusters.items()
    ]


def on_this_machine(sessions: Sessions, judge: Judge, *, remove: bool = False) -> Report:
    """Local Ray sessions that nobody will end; removed if asked to."""
    report = Report()
    for session in sessions.all():
        run = label_value(session.run_id)
        fate = judge.known({run}).get(run)
        orphan = _judged(session, fate, judge, abandoned=sessions.is_abandoned(session))
        if orphan is not None:
            outcome = _ended(sessions, session) if remove else ""
            report.rows.append(replace(orphan, outcome=outcome, gone=outcome == REMOVED))
        elif fate is None:
            report.notes.append(f"{HERE}: {session} is left alone: its {session.owner} lives")
    return report


def _judged(session: Session, fate: Fate | None, judge: Judge, *, abandoned: bool) -> Row | None:
    """The session as an orphan, if it is one."""
    ended = fate.ended if fate else None
    row = Row(
        cluster=HERE,
        kind="Ray session",
        name=session.id,
        run=session.run_id,
        why=f"its {session.owner} is gone",
        since=datetime.fromisoformat(session.created_at),
    )
    if abandoned:
        return row
    if fate is None or ended is None or judge.clock() - ended < judge.grace:
        return None
    return replace(row, why=f"its run has ended ({fate.words})", since=ended)


def _ended(sessions: Sessions, session: Session) -> str:
    left = sessions.close(session)
    if left:
        return f"could not be ended: {', '.join(map(str, left))}"
    if session.directory.exists():
        return f"ended, but {session.directory} could not be removed"
    return REMOVED


def _row(cluster: str, orphan: Orphan) -> Row:
    return Row(
        cluster=cluster,
        kind=orphan.kind,
        name=orphan.name,
        run=orphan.run,
        why=orphan.why,
        since=orphan.since,
    )
