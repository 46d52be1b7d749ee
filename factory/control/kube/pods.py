"""Pod templates of a run: the head without GPUs, and the workers, each with a node's GPUs.

Every container is bound to what it asks for, runs as nobody in particular, and can write only where
the run may. KubeRay adds the command that starts Ray, its token, and the addresses.
"""

import math
from collections.abc import Mapping
from typing import Any

from factory.control.clocks import CLOSING_SECONDS
from factory.control.kube import mounts
from factory.control.kube.mounts import SCRATCH
from factory.control.kube.names import ROLE, RUN
from factory.control.kube.submission import Submission

KAI = "kai-scheduler"
KAI_PREFIX = "kai.scheduler"
MULTUS = "k8s.v1.cni.cncf.io/networks"
HOST_NAME = "kubernetes.io/hostname"

_LOCKED_MEMORY = (
    "ulimit -l unlimited",
    '|| { echo "memory cannot be locked on this node: set LimitMEMLOCK=infinity for its container '
    'runtime, or locked_memory: false in the file of the cluster" >&2; exit 78; }',
)
"""KubeRay puts this before its own command. A capability would not do: it has no effect on a
process that is not root's and may gain no privileges."""

type Manifest = dict[str, Any]
type Resources = dict[str, str]


def head(submission: Submission) -> Manifest:
    """The template of the head, where the driver runs too."""
    cluster = submission.cluster
    shape = cluster.head
    return _template(
        submission,
        role="head",
        container={
            "env": _environment(
                submission, {**submission.environment, **_NO_GPUS, **_stop_wait(submission)}
            ),
            **_resources(_cpu_and_memory(shape.cpus, shape.memory_gib)),
        },
        memory_gib=shape.memory_gib,
        shared_memory_gib=shape.memory_gib / 4,
        pod={"nodeSelector": dict(shape.labels or cluster.nodes.labels)},
    )


def worker(submission: Submission) -> Manifest:
    """The template of a worker: all that its node has, less what the head may take of it."""
    nodes = submission.cluster.nodes
    taken_cpus, taken_gib = submission.cluster.beside_worker(submission.queue)
    cpus, memory_gib = nodes.cpus - taken_cpus, nodes.memory_gib - taken_gib
    devices: Resources = {name: str(count) for name, count in nodes.network_devices.items()}
    if nodes.gpus:
        devices[nodes.gpu_resource] = str(nodes.gpus)
    product = {"nvidia.com/gpu.product": nodes.gpu_product} if nodes.gpu_product else {}
    template = _template(
        submission,
        role="worker",
        container={
            "env": _environment(submission, {} if nodes.gpus else _NO_GPUS),
            **_resources({**_cpu_and_memory(cpus, memory_gib), **devices}),
            **({"command": list(_LOCKED_MEMORY)} if nodes.locked_memory else {}),
        },
        memory_gib=memory_gib,
        shared_memory_gib=nodes.shared_memory_gib or memory_gib / 4,
        pod={"nodeSelector": {**product, **nodes.labels}, **_apart(submission)},
    )
    if nodes.network_attachments:
        template["metadata"]["annotations"] = {MULTUS: ",".join(nodes.network_attachments)}
    return template


def worker_cpus(submission: Submission) -> int:
    """CPUs that Ray counts on a worker: it takes whole ones only."""
    taken, _ = submission.cluster.beside_worker(submission.queue)
    return max(1, math.floor(submission.cluster.nodes.cpus - taken))


def scheduling_labels(submission: Submission) -> dict[str, str]:
    """What KAI reads from the RayJob and from each pod."""
    if submission.cluster.scheduler != "kai":
        return {}
    queue = submission.queue
    labels = {
        f"{KAI_PREFIX}/queue": queue.name,
        f"{KAI_PREFIX}/preemptibility": "preemptible" if queue.preemptible else "non-preemptible",
    }
    return labels | ({"priorityClassName": queue.priority_class} if queue.priority_class else {})


_NO_GPUS = {"NVIDIA_VISIBLE_DEVICES": "void"}
"""CUDA's images ask for all GPUs of a node, and get them where nobody counts."""


def _stop_wait(submission: Submission) -> dict[str, str]:
    """What Ray waits for a driver that it was asked to stop; by itself it waits three seconds."""
    seconds = math.ceil(submission.launch.grace_seconds) + CLOSING_SECONDS
    return {"RAY_JOB_STOP_WAIT_TIME_S": str(seconds)}


def _environment(submission: Submission, more: Mapping[str, str]) -> list[Manifest]:
    cluster = submission.cluster
    variables = {
        **cluster.environment,
        **more,
        "FACTORY_DEPLOYMENT": submission.deployment,
        "FACTORY_IMAGE": submission.launch.image or "",
        "FACTORY_ROOT": cluster.tree.path,
        "FACTORY_STATE": f"{SCRATCH}/state",
        "HOME": SCRATCH,
        "PYTHONDONTWRITEBYTECODE": "1",  # there is nowhere to write it
        "PYTHONFAULTHANDLER": "1",  # a crash in C leaves a trace in the log
        "PYTHONUNBUFFERED": "1",
        "RAY_COLOR_PREFIX": "0",
        "RAY_DEDUP_LOGS": "0",  # every line of every worker
        "RAY_USAGE_STATS_ENABLED": "0",
        "USER": "factory",  # the user id has no name in the image
    }
    # Kubernetes replaces $(NAME) in a value, and makes one $ of two. So each is written twice.
    return [
        {"name": name, "value": variables[name].replace("$", "$$")} for name in sorted(variables)
    ]


def _template(
    submission: Submission,
    *,
    role: str,
    container: Manifest,
    memory_gib: float,
    shared_memory_gib: float,
    pod: Manifest,
) -> Manifest:
    cluster = submission.cluster
    volumes, mounted = mounts.mounts(submission.launch, cluster)
    own_volumes, own_mounted = mounts.scratch(
        _mib(cluster.nodes.scratch_gib), _mib(min(shared_memory_gib, memory_gib))
    )
    spec: Manifest = {
        "automountServiceAccountToken": False,
        "enableServiceLinks": False,
        "terminationGracePeriodSeconds": _grace_seconds(submission),
        "securityContext": _pod_security(submission),
        "containers": [
            {
                "name": f"ray-{role}",
                "image": submission.launch.image,
                "imagePullPolicy": "IfNotPresent",
                "securityContext": _container_security(),
                "volumeMounts": mounted + own_mounted,
                **container,
            }
        ],
        "volumes": volumes + own_volumes,
        **{name: value for name, value in pod.items() if value},
        **_scheduling(submission),
    }
    if cluster.pull_secrets:
        spec["imagePullSecrets"] = [{"name": name} for name in dict.fromkeys(cluster.pull_secrets)]
    if cluster.tolerations:
        spec["tolerations"] = [one.model_dump(exclude_none=True) for one in cluster.tolerations]
    labels = {**submission.labels, **scheduling_labels(submission), ROLE: role}
    return {"metadata": {"labels": labels}, "spec": spec}


def _scheduling(submission: Submission) -> Manifest:
    """With KAI the priority is a label, so that a class that is missing does not keep pods away."""
    if submission.cluster.scheduler == "kai":
        return {"schedulerName": KAI}
    priority = submission.queue.priority_class
    return {"priorityClassName": priority} if priority else {}


def _grace_seconds(submission: Submission) -> int:
    if submission.queue.grace_seconds is not None:
        return math.ceil(submission.queue.grace_seconds)
    return math.ceil(submission.cluster.grace_seconds) + CLOSING_SECONDS


def _pod_security(submission: Submission) -> Manifest:
    who = submission.cluster.run_as
    context: Manifest = {
        "runAsNonRoot": True,
        "runAsUser": who.user,
        "runAsGroup": who.group,
        "seccompProfile": {"type": "RuntimeDefault"},
    }
    return context | ({"supplementalGroups": list(who.groups)} if who.groups else {})


def _container_security() -> Manifest:
    return {
        "allowPrivilegeEscalation": False,
        "capabilities": {"drop": ["ALL"]},
        "readOnlyRootFilesystem": True,
        "runAsNonRoot": True,
    }


def _apart(submission: Submission) -> Manifest:
    """GPUs keep two workers from sharing a node; without any, this does."""
    if submission.cluster.nodes.gpus:
        return {}
    ours = {RUN: submission.labels[RUN], ROLE: "worker"}
    term = {"labelSelector": {"matchLabels": ours}, "topologyKey": HOST_NAME}
    rule = {"requiredDuringSchedulingIgnoredDuringExecution": [term]}
    return {"affinity": {"podAntiAffinity": rule}}


def _resources(asked: Resources) -> Manifest:
    """The same as request and as limit, so that nothing else on the node decides what it gets."""
    return {"resources": {"requests": dict(asked), "limits": dict(asked)}}


def _cpu_and_memory(cpus: float, memory_gib: float) -> Resources:
    return {"cpu": f"{math.floor(round(cpus * 1000, 3))}m", "memory": f"{_mib(memory_gib)}Mi"}


def _mib(gib: float) -> int:
    return math.floor(gib * 1024)
