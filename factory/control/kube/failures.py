"""How a driver failed, from what KubeRay wrote down. Whether it failed at all is for `states`.

Ray puts the end of the driver's log into its message. That part is never repeated here: of a
private run it may hold a patient's words.
"""

import re

from factory.control.kube.fields import short, text
from factory.control.kube.observed import Observed
from factory.control.verdict import describe_exit

_FAILURES = {
    "SubmissionFailed": (
        "its driver could not be submitted",
        "Look at the head's log; most often its dashboard did not answer, or the Ray versions of "
        "image and driver differ",
    ),
    "DeadlineExceeded": (
        "the factory's backstop has passed, which is longer than all its limits together "
        "(activeDeadlineSeconds); nobody had ended the run at its limit, for example because its "
        "cluster was out of reach",
        "`factory resume RUN` goes on from the last checkpoint",
    ),
    "PreRunningDeadlineExceeded": (
        "KubeRay's own deadline for a start has passed (preRunningDeadlineSeconds)",
        "Take preRunningDeadlineSeconds away; the limit of a start is the factory's",
    ),
    "JobDeploymentStatusTransitionGracePeriodExceeded": (
        "KubeRay gave up waiting for the job to end after its submitter had ended",
        "`factory resume` goes on from the last checkpoint",
    ),
    "JobStatusCheckTimeoutExceeded": (
        "KubeRay could not ask the head about the job for too long",
        "`factory resume` goes on from the last checkpoint; see whether the head was overloaded",
    ),
    "ValidationFailed": (
        "KubeRay refused its RayJob",
        "Correct the field that the message names",
    ),
}
_EXIT_CODE = re.compile(r"failed with exit code (-?[0-9]{1,5})\b")
_LOGS = re.compile(r"[,.]? *(?:last available logs|no logs available)", re.IGNORECASE)


def how_it_failed(observed: Observed, code: int | None) -> tuple[str, str]:
    """What happened, and what to do about it where that is known."""
    if code is not None:
        return f"its driver {describe_exit(code)}", ""
    said = text(observed.rayjob, "status", "reason")
    if observed.deployment_status == "ValidationFailed":
        said = said or "ValidationFailed"
    words, advice = _FAILURES.get(said, ("its driver failed", ""))
    if said in _FAILURES and (message := message_of(observed)):
        words += f" ({message})"
    if observed.job_status == "SUCCEEDED":
        words += ", although its driver had ended well"
    return words, advice


def exit_code(observed: Observed) -> int | None:
    """From Ray's sentence; a shell adds 128 to the number of the signal that ended its command."""
    found = _EXIT_CODE.search(text(observed.rayjob, "status", "message"))
    if found is None:
        return None
    code = int(found[1])
    return 128 - code if 128 < code < 128 + 65 else code


def message_of(observed: Observed) -> str:
    """KubeRay's message, up to where the driver's log begins."""
    first = text(observed.rayjob, "status", "message").partition("\n")[0]
    return short(_LOGS.split(first)[0])
