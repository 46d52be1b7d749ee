"""`factory cluster check` of a Kubernetes cluster, the part that concludes: facts become lines.

Pure. `checkup` asks the server, `rights` says what the token must be allowed.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

from factory.control.checklist import Line, failed, note, ok
from factory.control.clusters import Kubernetes
from factory.control.kube.fields import Object, mapping, text
from factory.control.kube.node_lines import node_line
from factory.control.kube.queue_lines import queue_line
from factory.control.kube.refusals import IMAGE
from factory.control.kube.rights import Right

SOON = timedelta(days=7)
"""Somebody has to renew what ends by then."""

LEAST_KUBERAY = "1.6.2"
FIELD_OF_1_6 = "authOptions.secretName"
KAI_GROUP = "scheduling.run.ai"


@dataclass(frozen=True)
class Unseen:
    """What the server did not show, and why."""

    reason: str
    missing: bool = False
    """It is not there; else nobody knows."""


type Looked = Object | Unseen


@dataclass(frozen=True, kw_only=True)
class Facts:
    """What the server answered."""

    cluster: Kubernetes
    image: str | None
    now: datetime
    version: str
    certificate_ends: datetime | None
    user: str
    token_ends: datetime | None
    missing: Mapping[Right, Sequence[str]]
    """The verbs that the token lacks, for each right that is needed."""

    may_everything: bool
    served: frozenset[str]
    """Resources, as `ray.io/v1/rayjobs`."""

    rayjob: Looked
    podgroup: Looked
    """Schemas."""

    operator: str
    """KubeRay's version, from the image of its operator; empty where that may not be seen."""

    queues: Mapping[str, Looked]
    nodes: "Sequence[Object] | Unseen"
    claims: Mapping[str, Looked]


def lines(facts: Facts) -> list[Line]:
    """The whole table."""
    return [
        ok("address", f"{facts.cluster.address}, Kubernetes {facts.version or 'unknown'}"),
        _certificate(facts),
        _token(facts),
        *(_right(right, lacking, facts.cluster) for right, lacking in facts.missing.items()),
        *_too_much(facts),
        *_kuberay(facts),
        *_kai(facts),
        *_queues(facts),
        _nodes(facts),
        *(_claim(name, looked, facts.cluster) for name, looked in facts.claims.items()),
        _image(facts),
    ]


def _certificate(facts: Facts) -> Line:
    if facts.certificate_ends is None:
        return note("certificate", "is that of `ca`; when it ends could not be seen")
    return _ending("certificate", "is that of `ca`", facts.certificate_ends, facts.now)


def _token(facts: Facts) -> Line:
    who = f"of {facts.user}"
    if facts.token_ends is None:
        return note("token", f"{who}; it does not say when it ends")
    source = facts.cluster.token
    if source.file is None or source.in_cluster:
        # Whoever prints it renews it, so that it ends soon says nothing.
        return ok("token", f"{who}, ends {_moment(facts.token_ends)}, then read anew")
    return _ending("token", who, facts.token_ends, facts.now)


def _ending(what: str, found: str, ends: datetime, now: datetime) -> Line:
    said = f"{found}, ends {_moment(ends)}"
    if ends <= now:
        return failed(what, said, f"The {what} has ended. Renew it.")
    if ends - now < SOON:
        return note(what, said, "Renew it before then, or see that something does.")
    return ok(what, said)


def _right(right: Right, lacking: Sequence[str], cluster: Kubernetes) -> Line:
    what = f"may {right.resource}"
    if not lacking:
        return ok(what, ", ".join(right.verbs))
    group = f'"{right.group}"'
    return failed(
        what,
        f"not {', '.join(lacking)}",
        f"Add to the factory's Role in namespace {cluster.namespace}: apiGroups: [{group}], "
        f"resources: [{right.resource}], verbs: [{', '.join(lacking)}].",
    )


def _too_much(facts: Facts) -> list[Line]:
    if not facts.may_everything:
        return []
    return [
        note(
            "may everything",
            "the token is an administrator's",
            "Make a service account with the rights above and no others, and use its token.",
        )
    ]


def _kuberay(facts: Facts) -> list[Line]:
    wanted = ("ray.io/v1/rayjobs", "ray.io/v1/rayclusters")
    if absent := [one for one in wanted if one not in facts.served]:
        return [
            failed(
                "KubeRay",
                f"{', '.join(absent)}: not served",
                f"Install KubeRay {LEAST_KUBERAY} or newer, with its CRDs.",
            )
        ]
    if isinstance(facts.rayjob, Unseen):
        return [note("KubeRay", f"CRDs are there; their version is unknown: {facts.rayjob.reason}")]
    cluster = _properties(facts.rayjob, "spec", "rayClusterSpec")
    auth = _properties(cluster.get("authOptions"))
    by = f", operator {facts.operator}" if facts.operator else ""
    if "secretName" not in auth:
        age = "1.5" if auth else "older than 1.5.1"
        return [
            failed(
                "KubeRay",
                f"CRDs of {age}{by}: no {FIELD_OF_1_6}, so no Ray token for each run",
                f"Update KubeRay to {LEAST_KUBERAY} or newer, CRDs first.",
            )
        ]
    found = f"CRDs of 1.6 or newer{by}: a run has a Ray token of its own"
    if facts.operator and _older(facts.operator, LEAST_KUBERAY):
        return [failed("KubeRay", found, f"Update the operator to {LEAST_KUBERAY} or newer.")]
    return [ok("KubeRay", found)]


def _kai(facts: Facts) -> list[Line]:
    if facts.cluster.scheduler != "kai":
        return [note("gangs", "none: `scheduler: default` places one pod at a time")]
    wanted = [f"{KAI_GROUP}/v2/queues", f"{KAI_GROUP}/v2alpha2/podgroups"]
    if facts.cluster.nodes.topology is not None:
        wanted.append("kai.scheduler/v1alpha1/topologies")
    if absent := [one for one in wanted if one not in facts.served]:
        return [
            failed(
                "KAI",
                f"{', '.join(absent)}: not served",
                "Install KAI with its CRDs, or write `scheduler: default`.",
            )
        ]
    if isinstance(facts.podgroup, Unseen):
        return [note("KAI", f"CRDs are there; their version is unknown: {facts.podgroup.reason}")]
    if "preemptionDelay" in _properties(facts.podgroup, "spec"):
        age = "0.17 or newer"
    elif "running" not in _properties(facts.podgroup, "status"):
        age = "0.16"
    else:
        return [ok("KAI", "CRDs of 0.15 or older: gangs")]
    return [
        note(
            "KAI",
            f"CRDs of {age}: gangs",
            "From 0.16.2 to 0.17.0 a gang that finishes can be evicted: use a release with the fix "
            "of https://github.com/kai-scheduler/KAI-Scheduler/issues/1968.",
        )
    ]


def _queues(facts: Facts) -> list[Line]:
    """One line for each queue; two purposes may share one."""
    purposes: dict[str, list[str]] = {}
    for purpose, queue in facts.cluster.queues.items():
        purposes.setdefault(queue.name, []).append(purpose)
    found: list[Line] = []
    for name, looked in facts.queues.items():
        what = f"queue {name}"
        used_for = " and ".join(purposes.get(name, ()))
        if isinstance(looked, Unseen):
            found.append(_unseen(what, looked, f"Make the Queue {name}.", "queues"))
        else:
            line = queue_line(name, looked, has_gpus=facts.cluster.nodes.gpus > 0)
            found.append(replace(line, found=f"{line.found}; for {used_for}"))
    return found


def _nodes(facts: Facts) -> Line:
    if isinstance(facts.nodes, Unseen):
        return _unseen("nodes", facts.nodes, "Add nodes.", "nodes")
    return node_line(facts.cluster.nodes, facts.nodes)


def _claim(name: str, looked: Looked, cluster: Kubernetes) -> Line:
    what = f"claim {name}"
    if isinstance(looked, Unseen):
        make = f"Make the PersistentVolumeClaim {name} in namespace {cluster.namespace}."
        return _unseen(what, looked, make, "persistentvolumeclaims")
    phase = text(looked, "status", "phase") or "in no phase"
    modes: Any = mapping(looked, "spec").get("accessModes") or []
    found = f"{phase}, {', '.join(map(str, modes)) or 'no access mode'}"
    if phase == "Lost":
        return failed(what, found, "Its volume is gone: bind the claim to another.")
    if not {"ReadWriteMany", "ReadOnlyMany"} & set(modes):
        return note(what, found, "One node alone can mount it. Make it ReadWriteMany.")
    if phase != "Bound":
        return note(what, found, "The first pod may bind it; its events say what it waits for.")
    return ok(what, found)


def _image(facts: Facts) -> Line:
    if facts.image is None:
        return failed("image", "none is named", "Set FACTORY_IMAGE to NAME@sha256:DIGEST.")
    if not IMAGE.fullmatch(facts.image):
        return failed(
            "image",
            f"{facts.image[:120]!r} is not by digest",
            "Set FACTORY_IMAGE to NAME@sha256:DIGEST, so that what ran can be run again.",
        )
    return ok("image", facts.image)


def _unseen(what: str, looked: Unseen, make: str, resource: str) -> Line:
    """What is not there has to be made; what the token may not see may well be there."""
    if looked.missing:
        return failed(what, "is not there", make)
    return note(
        what,
        "the token may not see it",
        f"To see it here too, let the token get and list {resource}.",
    )


def _properties(schema: Any, *path: str) -> Object:
    """The fields of an object at a place of a schema."""
    here = mapping(schema, "properties")
    for part in path:
        here = mapping(here, part, "properties")
    return here


def _older(version: str, than: str) -> bool:
    numbers = [
        int(part) for part in version.split("-", maxsplit=1)[0].split(".") if part.isdecimal()
    ]
    return numbers < [int(part) for part in than.split(".")]


def _moment(when: datetime) -> str:
    return when.strftime("%Y-%m-%d %H:%M UTC")
