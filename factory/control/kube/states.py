"""The one state machine of an attempt on Kubernetes: what was observed -> where it is, and why.

A pure function, so that every pair of statuses can be tried. It never decides on `jobStatus` alone,
which KubeRay leaves as it was when a deadline passes, and never takes a status that nobody has
documented for an end: such an attempt is `unknown`, and its clock goes on. Deleting what is left,
and asking again, are the caller's.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from factory.control.answers import Verdict
from factory.control.kube.evictions import Taken, evicted, lost
from factory.control.kube.failures import exit_code, how_it_failed, message_of
from factory.control.kube.fields import Object, is_leaving, label, short, text
from factory.control.kube.observed import (
    DEPLOYMENT_STATUSES,
    JOB_STATUSES,
    UNANSWERED,
    Observed,
)
from factory.control.kube.reasons import Trouble, killed_for_memory, troubles
from factory.control.kube.waiting import has_place, why_it_starts, why_it_waits
from factory.control.verdict import PREEMPTED, PREEMPTED_WORDS, REFUSED, SUPERSEDED

type Phase = Literal[
    "queued",
    "starting",
    "running",
    "stopping",
    "succeeded",
    "failed",
    "evicted",
    "lost",
    "cancelled",
    "gone",
    "unreachable",
    "unknown",
]


@dataclass(frozen=True, kw_only=True)
class State:
    """Where an attempt is, what it came to if it is over, and how that is known."""

    phase: Phase
    verdict: Verdict | None = None
    """None while the attempt goes on. `succeeded` still needs the driver's closing message."""
    reason: str = ""
    """In words, for the run's page; begins small and ends without a full stop."""
    advice: str = ""
    """What a person can do, where there is something."""
    evidence: tuple[str, ...] = ()
    exit_code: int | None = None
    """Of the driver, where Ray told it; negative for a signal."""
    paused: bool = False
    """Out of reach for longer than the cluster may be."""

    @property
    def waits(self) -> bool:
        """Time in this state counts against the limits of queue and start, not of the run."""
        return self.phase in ("queued", "starting")

    @property
    def ended(self) -> bool:
        """Nothing more will come of it; what is left of it can be removed."""
        return self.verdict is not None


_DRIVERS_OWN = frozenset({REFUSED, SUPERSEDED})


def state_of(observed: Observed, queues: Sequence[Object] = ()) -> State:
    """Where the attempt is. `queues` are KAI's, for the words of one that waits."""
    if observed.unreachable:
        return _unreachable(observed)
    state = _recorded(observed) or _absent(observed) or _of_rayjob(observed, queues)
    return replace(state, evidence=(*_statuses(observed), *state.evidence))


def _statuses(observed: Observed) -> tuple[str, ...]:
    if observed.rayjob is None:
        return (f"no RayJob {observed.name}",)
    reason = text(observed.rayjob, "status", "reason")
    return (
        f"jobDeploymentStatus={observed.deployment_status or '(none)'}, "
        f"jobStatus={observed.job_status or '(none)'}" + (f", reason={reason}" if reason else ""),
    )


def _unreachable(observed: Observed) -> State:
    paused = observed.paused
    why = short(observed.unreachable)
    return State(
        phase="unreachable",
        paused=paused,
        reason=f"the run is paused: its cluster has been out of reach for too long ({why}); what "
        "it does there goes on"
        if paused
        else f"its cluster does not answer ({why})",
        advice="It is taken up again when the cluster answers; `factory cluster check` says what "
        "is wrong"
        if paused
        else "",
    )


def _recorded(observed: Observed) -> State | None:
    """A verdict does not change: a cluster that its TTL removes was not evicted."""
    verdict = observed.seen.verdict
    if verdict is None:
        return None
    phase: Phase = verdict if observed.anything_left else "gone"
    if verdict == "cancelled" and observed.anything_left:
        phase = "stopping"
    return State(phase=phase, verdict=verdict, reason=observed.seen.reason)


def _absent(observed: Observed) -> State | None:
    """Its RayJob is not there: not yet, or not any more."""
    if observed.rayjob is not None:
        return None
    if not observed.seen.existed:
        return State(phase="queued", reason=why_it_waits(observed))
    if taken := evicted(observed):
        return _taken("evicted", taken)
    return State(
        phase="gone",
        verdict="gone",
        reason="its RayJob is gone, deleted by somebody else, or by KubeRay after its end",
        advice="`factory resume` goes on from the last checkpoint if it had not ended",
    )


def _of_rayjob(observed: Observed, queues: Sequence[Object]) -> State:
    if (observed.deployment_status, observed.job_status) == ("Complete", "SUCCEEDED"):
        gone = "" if observed.raycluster or observed.pods else "; its cluster is gone"
        reason = f"its driver ended well{gone}"
        return State(phase="succeeded", verdict="succeeded", reason=reason)
    ending = _ENDINGS.get(observed.deployment_status)
    if ending is not None:
        return ending(observed)
    return _alive(observed, queues)


def _complete(observed: Observed) -> State:
    if observed.job_status == "STOPPED":
        return State(
            phase="cancelled",
            verdict="cancelled",
            reason="its driver was stopped from outside the factory, in Ray",
            advice="`factory resume` goes on from the last checkpoint",
        )
    if observed.job_status == "FAILED":
        return _failed(observed)
    unknown = _unknown(observed, "KubeRay says Complete, but not how its driver ended")
    return _from_outside(observed) or unknown


def _failed(observed: Observed) -> State:
    """Many things make a job fail that are no failure of it; the driver's own refusal is one."""
    code = exit_code(observed)
    if code == SUPERSEDED and (taken := lost(observed)):
        # KubeRay has made another head and started the driver again, whom the first one's claim
        # on the attempt has kept out. What ended the attempt is the loss of the first.
        return replace(_taken("lost", taken), exit_code=code)
    if code not in _DRIVERS_OWN:
        taken = _from_outside(observed)
        if taken is not None:
            return replace(taken, exit_code=code)
        if code == PREEMPTED:
            return State(
                phase="evicted",
                verdict="evicted",
                reason=PREEMPTED_WORDS,
                exit_code=code,
            )
        if trouble := next((one for one in troubles(observed) if one.ends), None):
            return replace(_trouble(trouble), exit_code=code)
    return _own_failure(observed, code)


def _own_failure(observed: Observed, code: int | None) -> State:
    words, advice = how_it_failed(observed, code)
    return State(phase="failed", verdict="failed", reason=words, advice=advice, exit_code=code)


def _refused(observed: Observed) -> State:
    return _own_failure(observed, None)


_ENDINGS: dict[str, Callable[[Observed], State]] = {
    "Complete": _complete,
    "Failed": _failed,
    "ValidationFailed": _refused,
}


def _alive(observed: Observed, queues: Sequence[Object]) -> State:
    if taken := _from_outside(observed):
        return taken
    if is_leaving(observed.rayjob):
        return State(phase="stopping", reason="its RayJob is being deleted by somebody else")
    state = _phase(observed, queues)
    trouble = next((one for one in troubles(observed) if one.ends), None)
    if trouble is not None and state.phase != "running":  # a driver says itself what it misses
        return _trouble(trouble)
    return state


def _from_outside(observed: Observed) -> State | None:
    """Evicted or lost, unless the pods themselves did what they may not."""
    own = next((one for one in troubles(observed) if one.reason == "Evicted"), None)
    if own is not None:
        return _trouble(own)
    if taken := evicted(observed):
        return _taken("evicted", taken)
    memory = killed_for_memory(observed)
    ended = observed.deployment_status in _ENDINGS
    if memory is not None and (ended or _is_heads(memory, observed)):
        return _trouble(memory)
    if taken := lost(observed):
        return _taken("lost", taken)
    return None


def _is_heads(trouble: Trouble, observed: Observed) -> bool:
    return text(observed.head, "metadata", "name") == trouble.pod


def _taken(verdict: Literal["evicted", "lost"], taken: Taken) -> State:
    return State(phase=verdict, verdict=verdict, reason=taken.words, evidence=taken.evidence)


def _trouble(trouble: Trouble) -> State:
    return State(
        phase="failed",
        verdict="failed",
        reason=trouble.words,
        advice=trouble.advice,
        evidence=(f"{trouble.pod}: {trouble.reason}",),
    )


def _phase(observed: Observed, queues: Sequence[Object]) -> State:
    deployment, job = observed.deployment_status, observed.job_status
    if deployment not in DEPLOYMENT_STATUSES:
        return _unknown(observed, f"KubeRay reports {short(deployment, 60)!r}")
    if deployment == "Running":
        return _of_driver(observed, job)
    if deployment == "Retrying":
        return State(phase="queued", reason="KubeRay starts it again by itself (backoffLimit)")
    if deployment == "Waiting":
        return State(phase="starting", reason="KubeRay waits for a job that is submitted by hand")
    if deployment == "Initializing" and has_place(observed):
        return State(phase="starting", reason=why_it_starts(observed))
    return State(phase="queued", reason=why_it_waits(observed, queues))


def _of_driver(observed: Observed, job: str) -> State:
    if job == UNANSWERED:
        told = message_of(observed)
        words = f"its head does not answer KubeRay{f' ({told})' if told else ''}"
        return State(phase="unknown", reason=words)
    if job not in JOB_STATUSES:
        return _unknown(observed, f"KubeRay reports the job as {short(job, 60)!r}")
    if job not in ("", "PENDING"):
        return State(phase="running", reason=_running(observed))
    return State(phase="starting", reason=why_it_starts(observed))


def _unknown(observed: Observed, words: str) -> State:
    message = message_of(observed)
    return State(
        phase="unknown",
        reason=f"{words}{f' ({message})' if message else ''}; what that means is not known",
    )


def _running(observed: Observed) -> str:
    if observed.job_status != "RUNNING":
        return f"its driver has ended ({observed.job_status}); KubeRay has still to say how"
    leaving = [pod for pod in observed.pods or () if is_leaving(pod)]
    if leaving:
        kinds = sorted({label(pod, "ray.io/node-type") or "pod" for pod in leaving})
        return f"{len(leaving)} of its pods are told to stop ({', '.join(kinds)})"
    return ""
