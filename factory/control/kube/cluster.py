"""One attempt of a run as a RayJob, from before it is created until nothing of it is left.

What is seen is judged by `states`; here is when to look, what to write down, and how to end. A
cluster that does not answer ends nothing: the state says so, and the next look tries again.
"""

import contextlib
import threading
import time
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

from factory.control.answers import Verdict
from factory.control.backend import State
from factory.control.clocks import REACH_LIMIT_SECONDS
from factory.control.kube import pace, states
from factory.control.kube.api import Api
from factory.control.kube.driver_log import DriverLog
from factory.control.kube.fields import is_leaving
from factory.control.kube.last_seen import LastSeen
from factory.control.kube.looking import Lookout
from factory.control.kube.objects import BEYOND_GRACE_SECONDS, Objects
from factory.control.kube.observed import Observed
from factory.control.kube.ownership import hand_over
from factory.control.kube.pace import Pace
from factory.control.kube.pods import Manifest
from factory.control.kube.rayjob import rayjob
from factory.control.kube.record import Record
from factory.control.kube.submission import Submission
from factory.control.kube.told import told
from factory.errors import ClusterError, ClusterOutOfReach, FactoryError, RunFailed
from factory.namespace import RunDirectory

ABSENT_LOOKS = 2
"""Looks, one after the other, that must not see a RayJob which was there: one may be an old one."""

LAST_WORDS_SECONDS = 20.0
"""For the end of the driver's log, before its cluster goes."""

HEAD_LOG_BYTES = 2**16


class KubernetesCluster:
    """The RayJob of one attempt, and the Ray cluster that KubeRay makes of it."""

    def __init__(
        self,
        api: Api,
        submission: Submission,
        run_directory: RunDirectory,
        record: Record,
    ) -> None:
        self._api = api
        self._submission = submission
        self._run = run_directory
        self._record = record
        self._lookout = Lookout(api, submission)
        self._objects = Objects(api, submission, self._lookout)
        self._manifest: Manifest | None = None
        self.taken_up = record.begun
        """Whether a process before this one has begun it."""
        self._asked = record.begun
        """Whether anything may be on the cluster."""
        self._last = LastSeen(api, submission, self._objects, record.seen)
        self._found = states.State(phase="queued")
        self._state = State(phase="queued")
        self._pace = Pace()
        self._absent = 0
        self._unreachable_since: float | None = None
        self._stopping = threading.Lock()
        self._hurry = threading.Event()
        self._stopped = False
        attempt = submission.launch.attempt
        self._has_whole_log = False
        self._driver_log = DriverLog(
            run_directory,
            self._last.dashboard,
            self._last.job_id,
            name="logs/driver.log" if attempt == 1 else f"logs/driver-{attempt}.log",
        )

    @property
    def log(self) -> Path:
        """Where the driver's output is copied to."""
        return self._driver_log.path

    def submit(self, environment: Mapping[str, str]) -> None:
        """Have the RayJob made by the next `poll`, which goes on trying while nobody answers.

        Raises:
            SpecError: the cluster cannot run it.
            RunFailed: its pods could not write the run's directory.
        """
        submission = replace(self._submission, environment=environment)
        self._manifest = rayjob(submission)
        if not self.taken_up:  # else its pods have it since then, and write in it
            hand_over(self._run, submission.cluster)
        self._record.begin()
        self._driver_log.start()

    def poll(self) -> State:
        """Where the run is, from a look that is a few seconds old at most."""
        if not self._state.ended and self._pace.is_due:
            self._look()
        return self._state

    def read_log(self) -> DriverLog:
        """The driver's output."""
        return self._driver_log

    def facts(self) -> Mapping[str, str]:
        """What the run's page shows about the cluster."""
        cluster = self._submission.cluster
        found = {
            "cluster": cluster.name,
            "queue": self._submission.queue.name,
            "RayJob": f"{cluster.namespace}/{self._submission.name}",
            "image": self._submission.launch.image or "",
            "attempt": str(self._submission.launch.attempt),
        }
        nodes = ", ".join(filter(None, self._last.nodes()))
        of_now = {"nodes": nodes, "Ray dashboard": self._last.dashboard_address()}
        return found | {name: words for name, words in of_now.items() if words}

    def leave(self) -> None:
        """Let go of a run that goes on without this process."""
        self._driver_log.close()
        self._api.close()
        self._stopped = True

    def stop(self, grace_seconds: float) -> None:
        """Stop the driver, fetch the end of its log, delete everything, and prove it.

        Raises:
            RunFailed: something is left.
        """
        if not grace_seconds:
            self._hurry.set()
        with self._stopping:
            if self._stopped:
                return
            if self._asked:
                self._let_end(grace_seconds)
                self._fetch_last_words()
                self._keep_head_log()
                self._end()
                self._say_what_the_log_lacks()
            self._driver_log.close()
            self._api.close()
            self._stopped = True

    # Looking.

    def _look(self) -> None:
        if not self._have_objects():
            return
        observed, queues = self._lookout.look(self._last.seen)
        if self._is_absent(observed):
            self._pace.look_again(hurry=True)
            return
        self._last.keep(observed)
        found = states.state_of(replace(observed, paused=self._is_paused(observed)), queues)
        if found.verdict == "failed" and (given_up := self._last.given_up()):
            found = states.state_of(replace(observed, given_up=given_up), queues)
        nodes = [node or "no node" for node in self._last.nodes()]
        self._record.note(self._last.seen, found, nodes)
        self._found, self._state = found, told(found)
        hurry = self._state.phase in ("stopping", "unknown") or not observed.deployment_status
        self._pace.look_again(hurry=hurry)

    def _have_objects(self) -> bool:
        """Make them, or take up those that are there; false while the cluster does not answer."""
        if self._objects.token or self._manifest is None:
            return bool(self._objects.token)
        self._asked = True
        begun = self._last.seen.existed or self._last.seen.verdict is not None
        try:
            if begun:
                self._objects.find()  # where it is gone, the state says what that means
                return True
            self._objects.make(self._manifest)
        except ClusterError as error:
            if begun or isinstance(error, ClusterOutOfReach):  # what goes on there, goes on
                self._unreached(str(error))
            else:
                self._state = State(phase="failed", reason=str(error).rstrip("."))
            return False
        except RunFailed as error:
            self._leave_alone(error)
            raise
        self._last.seen = replace(self._last.seen, existed=True)
        self._record.made(self._last.seen)
        return True

    def _leave_alone(self, error: RunFailed) -> None:
        """What is there is not this attempt's to remove."""
        self._asked = False
        words = f"{self._submission.name} is of another run"
        self._record.end(self._last.seen, "failed", str(error), words)

    def _unreached(self, why: str) -> None:
        blind = Observed(
            name=self._submission.name, now=datetime.now(UTC), unreachable=why, seen=self._last.seen
        )
        self._state = told(states.state_of(replace(blind, paused=self._is_paused(blind))))
        self._pace.look_again(hurry=True)

    def _is_absent(self, observed: Observed) -> bool:
        """Whether a RayJob that was there is not, for the first time."""
        gone = self._last.seen.existed and observed.rayjob is None and not observed.unreachable
        self._absent = self._absent + 1 if gone else 0
        return 0 < self._absent < ABSENT_LOOKS

    def _is_paused(self, observed: Observed) -> bool:
        if not observed.unreachable:
            self._unreachable_since = None
            return False
        since = self._unreachable_since = self._unreachable_since or time.monotonic()
        return time.monotonic() - since > REACH_LIMIT_SECONDS

    # Ending.

    def _let_end(self, grace_seconds: float) -> None:
        """Tell a driver that runs to stop; give pods that are told to stop the time to save."""
        deadline = time.monotonic() + grace_seconds
        if not self._found.ended and grace_seconds:  # KubeRay is some seconds behind the driver
            self._find_driver(deadline)
            dashboard = self._last.dashboard()
            with contextlib.suppress(ClusterError):
                if dashboard is None or not dashboard.stop_job(self._last.job_id()):
                    return
                while time.monotonic() < deadline and not self._hurry.is_set():
                    job = dashboard.job_status(self._last.job_id())
                    if job is None or job.ended:
                        return
                    self._hurry.wait(pace.HURRY_SECONDS)
        elif self._found.verdict in ("evicted", "lost"):
            while time.monotonic() < deadline and not self._hurry.is_set():
                observed, _ = self._lookout.look(self._last.seen, thorough=True)
                if observed.unreachable or not any(map(is_leaving, observed.pods or ())):
                    return
                self._hurry.wait(pace.HURRY_SECONDS)

    def _find_driver(self, deadline: float) -> None:
        """Look for one that no look has shown, once the cluster answers.

        Raises:
            RunFailed: what is there is not this attempt's.
        """
        while not (self._last.shows_driver or self._is_answered()):
            if time.monotonic() >= deadline or self._hurry.wait(pace.HURRY_SECONDS):
                return

    def _is_answered(self) -> bool:
        """Take up what there is, without making any; false where nobody says what there is."""
        try:
            if not self._objects.token:
                self._objects.find()
        except RunFailed as error:
            self._leave_alone(error)
            raise
        except ClusterError:
            return False
        observed, _ = self._lookout.look(self._last.seen)
        self._last.keep(observed)
        return not observed.unreachable

    def _last_words_seconds(self) -> float:
        """A driver that never ran has said nothing, and a head that is gone says nothing more."""
        speaks = self._last.seen.driver_started and self._last.head_stays
        return LAST_WORDS_SECONDS if speaks else 0.0

    def _fetch_last_words(self) -> None:
        if not self._has_whole_log:  # what was there is gone where it is stopped once more
            self._has_whole_log = self._driver_log.finish(self._last_words_seconds())

    def _say_what_the_log_lacks(self) -> None:
        """Of a private run not why: what a dashboard answers may hold a line of the log."""
        if self._has_whole_log or not self._last.seen.driver_started:
            return
        private = self._submission.launch.classification == "private"
        why = "" if private else self._driver_log.problem
        why = why or "Its head is gone, or did not answer in time."
        self._record.say(f"{self.log} may lack the end of the driver's log. {why}")

    def _keep_head_log(self) -> None:
        """What the head's container printed, where the run did not do well."""
        head = self._last.head
        if self._found.verdict == "succeeded" or not head:
            return
        path = f"/api/v1/namespaces/{self._submission.cluster.namespace}/pods/{head}/log"
        with contextlib.suppress(FactoryError, OSError):
            data = self._api.read(path, container="ray-head", limitBytes=str(HEAD_LOG_BYTES))
            self._run.create(f"logs/ray/{head}.log", data)

    def _end(self) -> None:
        """Write down how it ended, delete everything of it, and prove that it is gone."""
        if not self._record.ended:
            ended: Verdict = "failed" if self._state.phase == "failed" else "cancelled"
            reason = self._state.reason if ended == "failed" else "it was stopped by the factory"
            words = f"attempt {self._submission.launch.attempt} is stopped"
            self._record.end(self._last.seen, ended, reason, words)
        grace = self._submission.cluster.grace_seconds
        self._objects.remove(grace + BEYOND_GRACE_SECONDS)
