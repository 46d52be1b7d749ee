"""RayJobs that are made for once, what the operator makes of them, and that nothing stays."""

from collections.abc import Iterable, Iterator
from typing import Any

from factory.control.kube.rayjob import rayjob, secret
from factory.control.kube.submission import Submission
from tests.cluster.api import Api, Object, eventually
from tests.cluster.dry_runs import TOKEN, templates

PATIENCE_SECONDS = 180.0
"""The operator takes one after the other, and shares its cores."""

KINDS = (
    *("/apis/ray.io/v1/{}/rayjobs", "/apis/ray.io/v1/{}/rayclusters"),
    *("/api/v1/{}/pods", "/api/v1/{}/services", "/api/v1/{}/secrets"),
)
"""Everything that a run is, or that is made for it."""


def make(api: Api, submission: Submission) -> None:
    """Create the RayJob, and its Secret, which goes with it.

    Raises:
        Refused: the server did not take one of them.
    """
    made = api.create(_job_path(submission).rpartition("/")[0], rayjob(submission))
    owner = {"apiVersion": "ray.io/v1", "kind": "RayJob", "name": submission.name}
    own = secret(submission, TOKEN)
    own["metadata"]["ownerReferences"] = [{**owner, "uid": made["metadata"]["uid"]}]
    api.create(f"/api/v1/namespaces/{submission.cluster.namespace}/secrets", own)


def not_as_asked(api: Api, submission: Submission) -> list[str]:
    """Where the operator's objects are not what was asked for, once they are or time is up."""

    def look() -> bool:
        found[:] = _differences(api, submission)
        return not found

    found: list[str] = []
    eventually(look, PATIENCE_SECONDS)
    return found


def pods(api: Api, submission: Submission) -> list[Object]:
    """The pods that the operator has made so far."""
    cluster = _cluster_name(api, submission)
    path = f"/api/v1/namespaces/{submission.cluster.namespace}/pods"
    return api.items(f"{path}?labelSelector=ray.io/cluster={cluster}") if cluster else []


def remove(api: Api, submission: Submission) -> None:
    """Delete the RayJob; the rest belongs to it.

    Raises:
        Refused: the server did not do it.
    """
    api.delete(_job_path(submission))


def left(api: Api, namespaces: Iterable[str]) -> list[str]:
    """What is still in namespaces that hold nothing but runs, once nothing is or time is up."""

    def look() -> bool:
        found[:] = [
            f"{path.rpartition('/')[2]}/{one['metadata']['name']}"
            for name in namespaces
            for path in KINDS
            for one in api.items(path.format(f"namespaces/{name}"))
        ]
        return not found

    found: list[str] = []
    eventually(look, PATIENCE_SECONDS)
    return found


def shown(pod: Object) -> set[str]:
    """The claims and the directories of the node that a pod refers to."""
    volumes = pod["spec"].get("volumes", [])
    claims = {one.get("persistentVolumeClaim", {}).get("claimName") for one in volumes}
    paths = {one.get("hostPath", {}).get("path") for one in volumes}
    return (claims | paths) - {None}


def mounted(pod: Object) -> set[str]:
    """Every path at which a container of a pod, also one that the operator added, sees a volume."""
    both = [*pod["spec"]["containers"], *pod["spec"].get("initContainers", [])]
    return {mount["mountPath"] for one in both for mount in one.get("volumeMounts", [])}


def _differences(api: Api, submission: Submission) -> list[str]:
    status = api.get(_job_path(submission)).get("status", {})
    if (state := status.get("jobDeploymentStatus")) != "Initializing":
        return [f"the RayJob is {state}: {status.get('message')}"]
    made = pods(api, submission)
    workers = submission.launch.spec.workers
    if len(made) != 1 + workers:
        return [f"there are {len(made)} pods, not {1 + workers}"]
    asked = templates(rayjob(submission))
    return [
        *_of_replicas(api, submission),
        *(said for pod in made for said in _of_pod(pod, asked[_role(pod)])),
    ]


def _of_replicas(api: Api, submission: Submission) -> Iterator[str]:
    path = f"/apis/ray.io/v1/namespaces/{submission.cluster.namespace}/rayclusters"
    cluster = api.get(f"{path}/{_cluster_name(api, submission)}")
    (group,) = cluster["spec"]["workerGroupSpecs"]
    counts = [group[name] for name in ("minReplicas", "replicas", "maxReplicas")]
    if set(counts) != {submission.launch.spec.workers}:
        yield f"replicas are {counts}"


def _of_pod(pod: Object, asked: Object) -> Iterator[str]:
    name, spec = pod["metadata"]["name"], asked["spec"]
    labels = pod["metadata"]["labels"]
    if missing := asked["metadata"]["labels"].items() - labels.items():
        yield f"{name} lacks labels {missing}"
    if (class_of := pod["spec"]["schedulerName"]) != spec.get("schedulerName", class_of):
        yield f"{name} is for {class_of}"
    for field in ("requests", "limits"):
        wanted, given = (_amounts(one, field) for one in (spec, pod["spec"]))
        if wanted != given:
            yield f"{name} {field} {given}, not {wanted}"
    if (seen := shown(pod)) != (meant := shown(asked)):
        yield f"{name} refers to {seen}, not {meant}"
    if more := mounted(pod) - mounted(asked):
        yield f"{name} mounts {more} as well"


def _amounts(spec: Object, field: str) -> dict[str, Any]:
    from kubernetes.utils.quantity import parse_quantity

    quantities = spec["containers"][0]["resources"][field]
    return {name: parse_quantity(one) for name, one in quantities.items()}


def _role(pod: Object) -> str:
    return pod["metadata"]["labels"]["ray.io/node-type"]


def _cluster_name(api: Api, submission: Submission) -> str:
    return api.get(_job_path(submission)).get("status", {}).get("rayClusterName", "")


def _job_path(submission: Submission) -> str:
    namespace = submission.cluster.namespace
    return f"/apis/ray.io/v1/namespaces/{namespace}/rayjobs/{submission.name}"
