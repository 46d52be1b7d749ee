"""From a submission to the objects of a run: its RayJob, and the Secret with its own Ray token.

Pure: the same submission gives the same objects, and nothing is asked of a server. The pods are in
`pods`, what they see in `mounts`, names and labels in `names`, and what is refused in `refusals`.

Every pod, queue label and replica count is stamped here, so that KAI sees one gang of a fixed size
with any KubeRay that knows `authOptions.secretName` (1.6), whether or not its operator knows KAI.
"""

import base64
import json
import math

from factory.control.kube import pods
from factory.control.kube.pods import KAI_PREFIX, Manifest
from factory.control.kube.refusals import refusals
from factory.control.kube.submission import Submission
from factory.errors import SpecError

ENTRYPOINT = "python -m factory.training"
SUBMISSION_MODES = {"http": "HTTPMode", "sidecar": "SidecarMode"}
"""KubeRay's other modes: K8sJobMode is refused together with KAI, and InteractiveMode waits."""

TTL_SECONDS = 300
"""How long a cluster is kept after its end, so that the last lines of its log can be read."""

BACKSTOP_SECONDS = 3600
"""Beyond the limits of the spec, which the client holds: for when there is no client any more."""

OBJECT_STORE_BYTES = 200 * 2**20
"""Training passes nothing through Ray's object store."""

MAX_BYTES = 2**20
"""A server stores no larger object than 1.5 MiB, and KubeRay and the server add to this one."""

TOKEN_KEY = "auth_token"  # noqa: S105  where KubeRay looks
LEAST_TOKEN_CHARACTERS = 32
_MAX_INT32 = 2**31 - 1


def rayjob(submission: Submission) -> Manifest:
    """The RayJob.

    Raises:
        SpecError: the cluster cannot run it; every reason, one per line.
    """
    if problems := refusals(submission):
        raise SpecError("\n".join(problems))
    made = _rayjob(submission)
    if (size := len(json.dumps(made))) > MAX_BYTES:
        raise SpecError(
            f"The RayJob would have {size:,} bytes, and a server stores at most {MAX_BYTES:,}. "
            f"Shorten `environment` or `mounts` in definitions/clusters/{submission.cluster.name}"
            ".yaml."
        )
    return made


def secret(submission: Submission, token: str) -> Manifest:
    """The Secret that holds the run's Ray token: created before the RayJob, which refers to it.

    Raises:
        ValueError: the token is too short to keep anybody out.
    """
    if len(token) < LEAST_TOKEN_CHARACTERS:
        raise ValueError(f"a Ray token has at least {LEAST_TOKEN_CHARACTERS} characters")
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {
            "name": submission.secret_name,
            "namespace": submission.cluster.namespace,
            "labels": submission.labels,
        },
        "type": "Opaque",
        "immutable": True,
        "data": {TOKEN_KEY: base64.b64encode(token.encode()).decode()},
    }


def _rayjob(submission: Submission) -> Manifest:
    return {
        "apiVersion": "ray.io/v1",
        "kind": "RayJob",
        "metadata": _metadata(submission),
        "spec": {
            "entrypoint": ENTRYPOINT,
            "submissionMode": SUBMISSION_MODES[submission.queue.submission],
            "backoffLimit": 0,
            "shutdownAfterJobFinishes": True,
            "ttlSecondsAfterFinished": TTL_SECONDS,
            "activeDeadlineSeconds": _deadline_seconds(submission),
            "rayClusterSpec": _ray_cluster(submission),
        },
    }


def _metadata(submission: Submission) -> Manifest:
    metadata: Manifest = {
        "name": submission.name,
        "namespace": submission.cluster.namespace,
        "labels": {**submission.labels, **pods.scheduling_labels(submission)},
    }
    if not submission.cluster.head.labels and (apart := _placement(submission)):
        metadata["annotations"] = apart
    return metadata


def _ray_cluster(submission: Submission) -> Manifest:
    workers = submission.launch.spec.workers
    worker = pods.worker(submission)
    if submission.cluster.head.labels and (apart := _placement(submission)):
        # The head lies on nodes of its own, so only the workers have to be near each other.
        worker["metadata"]["annotations"] = {**worker["metadata"].get("annotations", {}), **apart}
    return {
        "rayVersion": submission.ray_version,
        "authOptions": {"mode": "token", "secretName": submission.secret_name},
        "headGroupSpec": {
            "rayStartParams": {
                "dashboard-host": "0.0.0.0",  # noqa: S104  the API server's proxy comes from outside
                "num-cpus": "0",  # no rank is placed beside the driver
                "num-gpus": "0",
                "object-store-memory": str(OBJECT_STORE_BYTES),
            },
            "template": pods.head(submission),
        },
        "workerGroupSpecs": [
            {
                "groupName": "workers",
                "replicas": workers,
                "minReplicas": workers,
                "maxReplicas": workers,
                "numOfHosts": 1,
                "rayStartParams": {
                    "num-cpus": str(pods.worker_cpus(submission)),
                    "num-gpus": str(submission.cluster.nodes.gpus),
                    "object-store-memory": str(OBJECT_STORE_BYTES),
                },
                "template": worker,
            }
        ],
    }


def _placement(submission: Submission) -> dict[str, str]:
    """How near each other KAI must put the pods."""
    topology = submission.cluster.nodes.topology
    if topology is None:
        return {}
    annotations = {f"{KAI_PREFIX}/topology": topology.name}
    if topology.required is not None:
        annotations[f"{KAI_PREFIX}/topology-required-placement"] = topology.required
    if topology.preferred is not None:
        annotations[f"{KAI_PREFIX}/topology-preferred-placement"] = topology.preferred
    return annotations


def _deadline_seconds(submission: Submission) -> int:
    """KubeRay counts from the submission, so time in the queue is part of it."""
    spec = submission.launch.spec
    hours = spec.queue_limit_hours + spec.run_limit_hours
    return math.ceil(min(hours * 3600 + BACKSTOP_SECONDS, _MAX_INT32))
