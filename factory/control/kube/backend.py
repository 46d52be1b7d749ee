"""Runs on Kubernetes: each gets a RayJob of its own, and is taken up where another process left it.

Which attempt that is follows from the journal: the one that has not ended; or one that did well,
whose results are not on record yet; or else one more than the highest that is.
"""

import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

import dagster as dg

from factory.control.answers import FROM_OUTSIDE, Ended, Verdict, answer
from factory.control.clocks import Clock
from factory.control.clusters import Kubernetes
from factory.control.kube.api import Api, Patience, connect
from factory.control.kube.cluster import KubernetesCluster
from factory.control.kube.fields import moment
from factory.control.kube.handles import Handle, Journal
from factory.control.kube.looking import Lookout
from factory.control.kube.mounts import refuse_links
from factory.control.kube.objects import BEYOND_GRACE_SECONDS, Objects
from factory.control.kube.record import Record
from factory.control.kube.submission import Submission
from factory.control.next_attempt import next_attempt
from factory.control.owner import owner
from factory.errors import RunFailed
from factory.namespace import RunDirectory
from factory.settings import Settings
from factory.spec import Launch, RunSpec

PATIENCE = Patience(connect_seconds=5.0, answer_seconds=20.0, budget_seconds=5.0)
"""A look that is not answered is a state of its own, and soon followed by another look."""

_TO_BE_TOLD = frozenset[Verdict]({"succeeded", "gone"})
"""Ends that may be good ones: what the run said tells, which is in the namespace."""

type Connect = Callable[[Kubernetes], Api]


def _connect(cluster: Kubernetes) -> Api:
    return connect(cluster, patience=PATIENCE)


class KubernetesBackend:
    """Makes the RayJobs of one step's attempts on one cluster."""

    def __init__(
        self,
        settings: Settings,
        cluster: Kubernetes,
        instance: dg.DagsterInstance,
        run: dg.DagsterRun,
        step_key: str,
        *,
        connected: Connect = _connect,
    ) -> None:
        self._settings = settings
        self._cluster = cluster
        self._journal = Journal(instance, run, step_key)
        self._owner = owner(instance)
        self._connected = connected

    @property
    def root(self) -> Path:
        """The namespace as the pods see it."""
        return Path(self._cluster.tree.path)

    def adopted(self, spec: RunSpec) -> Launch | None:
        """The attempt to go on with, where a process that is gone has left one.

        From then on it is this run's to follow, and on record as that.

        Raises:
            RunFailed: it is of another spec, or another run follows it.
        """
        last = self._journal.last()
        launch = self._left(spec, last) if last is not None else None
        if last is None or launch is None:
            return None
        if other := self._journal.followed_by():
            raise RunFailed(
                f"Run {other} follows attempt {last.launch.attempt} of run {last.launch.run_id} "
                "already, or is about to. Look there; this run has changed nothing."
            )
        self._journal.take_up(last)
        return launch

    def _left(self, spec: RunSpec, last: Handle) -> Launch | None:
        """What there is to go on with after the last word of the journal.

        Raises:
            RunFailed: nothing, for this very run has failed or was cancelled.
        """
        if last.ended in _TO_BE_TOLD and self._journal.is_told(last):
            return None
        if last.ended is None or last.ended in _TO_BE_TOLD:
            _refuse_other(spec, last)
            return last.launch
        if last.ended in FROM_OUTSIDE and last.launch.spec == spec:
            follows = answer(spec.purpose, self._journal.history()).action
            if follows in ("retry", "resume"):
                return next_attempt(last.launch, self._directory_of(last.launch))
        elif last.ended not in FROM_OUTSIDE and last.run_id == self._journal.run_id:
            raise RunFailed(  # its process was killed before Dagster had heard of it
                f"Attempt {last.launch.attempt} has ended already: {last.reason or last.ended}."
            )
        return None

    def _directory_of(self, launch: Launch) -> RunDirectory:
        return RunDirectory(launch.classification, launch.run_id, self._settings.root)

    def next_attempt(self) -> int:
        """One more than the highest attempt on record."""
        last = self._journal.last()
        return 1 if last is None else last.launch.attempt + 1

    def spent(self) -> dict[Clock, float]:
        """Seconds on the clocks of what other processes have begun."""
        last = self._journal.last()
        if last is None:
            return {}
        ran = self._journal.ran_seconds()
        if last.ended is not None:
            return {"run": ran}
        started = moment({"at": last.driver_started}, "at")
        if started is not None:
            return {"run": ran + max(0.0, time.time() - started.timestamp())}
        return {"run": ran, "queue": max(0.0, time.time() - last.submitted_at)}

    def history(self) -> list[Ended]:
        """The attempts that have ended, as far as they are on record."""
        return self._journal.history()

    def shown(self, attempt: int) -> Mapping[str, int]:
        """The lines that the run's page has of who followed the attempt before, each how often."""
        return self._journal.shown(attempt)

    def start(self, launch: Launch, run_directory: RunDirectory) -> KubernetesCluster:
        """An attempt that is not submitted yet, or one that a process before this one has begun.

        Raises:
            RunFailed: an attempt before it is still there, and cannot be removed.
            ClassificationError: the run's directory is reached through a link.
            ClusterError: there is no way to ask the cluster.
        """
        refuse_links(run_directory)
        last = self._journal.last()
        api = self._connected(self._cluster)
        try:
            if last is not None and last.launch.attempt < launch.attempt:
                self._remove(api, last)
            submission = self._submission(launch)
            same = last if last is not None and last.launch.attempt == launch.attempt else None
            return KubernetesCluster(
                api, submission, run_directory, Record(self._journal, submission, same)
            )
        except BaseException:
            api.close()
            raise

    def _remove(self, api: Api, ended: Handle) -> None:
        """What a process that was killed between record and deletion has left."""
        before = replace(self._submission(ended.launch), root_run_id=ended.root_run_id)
        lookout = Lookout(api, before)
        grace = self._cluster.grace_seconds + BEYOND_GRACE_SECONDS
        Objects(api, before, lookout).remove(grace)

    def _submission(self, launch: Launch) -> Submission:
        return Submission(
            launch=launch,
            cluster=self._cluster,
            root_run_id=self._journal.root_run_id,
            owner=self._owner,
            deployment=self._settings.deployment,
            step_key=self._journal.step_key,
        )


def _refuse_other(spec: RunSpec, last: Handle) -> None:
    if spec != last.launch.spec:
        raise RunFailed(
            f"Attempt {last.launch.attempt} of run {last.launch.run_id} goes on as RayJob "
            f"{last.name} on cluster {last.launch.spec.cluster}, with another spec than this one. "
            "Take it up with its own spec, or cancel it first (`factory orphans --delete`)."
        )
