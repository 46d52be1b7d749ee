"""The state of a RayJob in the words that all kinds of cluster share."""

from collections.abc import Mapping

from factory.control.answers import Verdict
from factory.control.backend import Phase, State
from factory.control.kube import states

_PHASES: Mapping[states.Phase, Phase] = {
    "queued": "queued",
    "starting": "starting",
    "running": "running",
    "stopping": "stopping",
    "unreachable": "unreachable",
    "unknown": "unknown",
}
_VERDICTS: Mapping[Verdict, Phase] = {
    "succeeded": "succeeded",
    "failed": "failed",
    "evicted": "evicted",
    "lost": "lost",
    "cancelled": "failed",
    "gone": "gone",
}


def told(found: states.State) -> State:
    """What the follower of any run is told of it."""
    return State(
        phase=_VERDICTS[found.verdict] if found.verdict else _PHASES.get(found.phase, "unknown"),
        reason=found.reason,
        advice=found.advice,
        evidence=found.evidence,
        exit_code=found.exit_code,
    )
