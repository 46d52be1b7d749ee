"""Why a pod does not run, or ran and ended: the kubelet's reasons, and what to do about them.

A reason that can pass by itself ends an attempt only when it has lasted: a registry may be busy for
some seconds, but an image that is not there will not come. Reasons why pods wait for a place are in
`waiting`, pods that were taken away in `evictions`.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from factory.control.kube.fields import (
    Object,
    count,
    label,
    mapping,
    moment,
    name,
    objects,
    short,
    since,
    text,
)
from factory.control.kube.observed import Observed

PATIENCE = timedelta(seconds=45)
"""Three tries of the kubelet; with the time between two looks it stays below a minute."""

_IMAGE = (
    "Push that image, or correct its name and digest; if the registry refuses, check the cluster's "
    "pull secrets"
)
_CONFIG = "Make the secret, config map or volume that it names, or correct the cluster's file"
_START = "Look at the image's command and its user; the message is the container runtime's"
_MEMORY = "Give its pods more memory in the cluster's file, or use a smaller recipe or batch"
_STORAGE = "Give its pods more room in the cluster's file, or write less into the container"
_CRASH = "The container itself ends, before any driver: `kubectl logs --previous` says why"

_HOPELESS = re.compile(
    r"not found|manifest unknown|unauthorized|denied|forbidden|invalid reference",
    re.IGNORECASE,
)

_WAITING = {
    "InvalidImageName": ("the name of its image is not valid", _IMAGE),
    "ErrImageNeverPull": ("its image is not on the node, and may not be pulled", _IMAGE),
    "ErrImagePull": ("its image cannot be pulled", _IMAGE),
    "ImagePullBackOff": ("its image cannot be pulled", _IMAGE),
    "ImageInspectError": ("its image cannot be read", _IMAGE),
    "RegistryUnavailable": ("the registry of its image does not answer", _IMAGE),
    "SignatureValidationFailed": ("the signature of its image is not valid", _IMAGE),
    "CreateContainerConfigError": ("its container cannot be made", _CONFIG),
    "CreateContainerError": ("its container cannot be made", _START),
    "RunContainerError": ("its container cannot be started", _START),
    "CrashLoopBackOff": ("its container ends again and again", _CRASH),
}
_AT_ONCE = frozenset({"InvalidImageName", "ErrImageNeverPull", "SignatureValidationFailed"})

_UNSTARTED = {
    "ContainerCannotRun": ("could not be run", _START),
    "StartError": ("could not be started", _START),
}
_NEVER_STARTS = re.compile(r'exec: "|exec format error|unable to find (user|group)')
"""How runc says that the image is wrong. What else stops a start may pass: a kubelet or a runtime
that is restarted meanwhile lets it fail too, and the kubelet then starts the container again."""

STARTS = 3
"""A container that did not start, or ended, more often than that will not do well."""
_TROUBLES_OF_A_START = frozenset({"FailedMount", "FailedAttachVolume", "FailedCreatePodSandBox"})


@dataclass(frozen=True, kw_only=True)
class Trouble:
    """One pod that does not do what it is there for."""

    pod: str
    reason: str
    """As the kubelet calls it."""
    words: str
    advice: str
    ends: bool
    """Whether it will not pass any more."""


def troubles(observed: Observed) -> list[Trouble]:
    """Every pod's trouble, those that end the attempt first, and the head before its workers."""
    found = [
        trouble
        for pod in sorted(observed.pods or (), key=lambda pod: not _is_head(pod))
        for trouble in _of(pod, observed)
    ]
    return sorted(found, key=lambda trouble: not trouble.ends)


def killed_for_memory(observed: Observed) -> Trouble | None:
    """The pod that ran out of memory, if one did; the head before its workers."""
    found = (one for one in troubles(observed) if one.reason == "OOMKilled")
    return next(found, None)


def containers(pod: Object) -> list[Object]:
    """The statuses of a pod's containers, those that run before the others first."""
    return [
        *objects(pod, "status", "initContainerStatuses"),
        *objects(pod, "status", "containerStatuses"),
    ]


def _is_head(pod: Object) -> bool:
    return label(pod, "ray.io/node-type") == "head"


def _of(pod: Object, observed: Observed) -> Iterator[Trouble]:
    yield from _outgrown(pod)
    for container in containers(pod):
        yield from _has_not_started(pod, container)
        yield from _waits(pod, container, observed)
        yield from _has_ended(pod, container)


def _outgrown(pod: Object) -> Iterator[Trouble]:
    """A pod that was evicted for what it did itself would be evicted again elsewhere."""
    message = text(pod, "status", "message")
    if text(pod, "status", "reason") == "Evicted" and re.search(r"exceed", message):
        yield Trouble(
            pod=name(pod),
            reason="Evicted",
            words=f"{name(pod)} took more room than it may ({short(message)})",
            advice=_STORAGE,
            ends=True,
        )


def _waits(pod: Object, container: Object, observed: Observed) -> Iterator[Trouble]:
    state = mapping(container, "state", "waiting")
    reason = text(state, "reason")
    if reason not in _WAITING:
        return
    words, advice = _WAITING[reason]
    message = short(text(state, "message"))
    if reason.startswith(("ErrImage", "ImagePull", "InvalidImage")):
        words = f"{words}: {text(container, 'image') or 'no name'}"
    if reason == "CrashLoopBackOff" and _last_end(container):
        message = _last_end(container)
    yield Trouble(
        pod=name(pod),
        reason=reason,
        words=f"{name(pod)}: {words} ({reason}{f': {message}' if message else ''})",
        advice=advice,
        ends=_has_lasted(pod, container, reason, message, observed),
    )


def _has_lasted(
    pod: Object, container: Object, reason: str, message: str, observed: Observed
) -> bool:
    if reason in _AT_ONCE or ("Pull" in reason and _HOPELESS.search(message)):
        return True
    if reason == "CrashLoopBackOff":  # the time between two ends says nothing, their number does
        return count(container, "restartCount") >= STARTS
    began = _began(name(pod), observed.events) or moment(pod, "status", "startTime")
    return began is not None and observed.now - began >= PATIENCE


def _began(pod: str, events: Sequence[Object]) -> datetime | None:
    """When the kubelet first said that something of the pod failed."""
    said = [
        since(event)
        for event in events
        if text(event, "reason") in ("Failed", "BackOff", "InspectFailed")
        and text(event, "involvedObject", "name") == pod
    ]
    return min((one for one in said if one is not None), default=None)


def _has_ended(pod: Object, container: Object) -> Iterator[Trouble]:
    for when in ("state", "lastState"):
        state = mapping(container, when, "terminated")
        if text(state, "reason") == "OOMKilled":
            words = f"was killed for want of memory ({_end(state)})"
            yield Trouble(
                pod=name(pod),
                reason="OOMKilled",
                words=f"{name(pod)} {words}",
                advice=_MEMORY,
                ends=True,
            )
            return


def _has_not_started(pod: Object, container: Object) -> Iterator[Trouble]:
    if mapping(container, "state", "running"):
        return
    for when in ("state", "lastState"):
        state = mapping(container, when, "terminated")
        reason, message = text(state, "reason"), text(state, "message")
        if reason not in _UNSTARTED:
            continue
        again = count(container, "restartCount") >= STARTS
        words, advice = _UNSTARTED[reason]
        yield Trouble(
            pod=name(pod),
            reason=reason,
            words=f"{name(pod)} {words} ({_end(state)}{f': {short(message)}' if message else ''})",
            advice=advice,
            ends=again or _NEVER_STARTS.search(message) is not None,
        )
        return


def _last_end(container: Object) -> str:
    state = mapping(container, "lastState", "terminated")
    return _end(state) if state else ""


def _end(state: Object) -> str:
    return f"{text(state, 'reason') or 'ended'}, exit code {count(state, 'exitCode')}"


def delays_of_a_start(observed: Observed) -> list[str]:
    """What the kubelet says about volumes and networks that do not come; it tries again."""
    return [
        f"{text(event, 'involvedObject', 'name')}: {short(text(event, 'message'), 200)}"
        for event in observed.events
        if text(event, "reason") in _TROUBLES_OF_A_START
    ]
