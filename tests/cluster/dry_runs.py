"""What an API server says of the objects of a submission, while none of them is made.

The schema of a RayJob knows little of pods, so each pod template is shown to it as a Pod too, in a
namespace that admits what the cluster's file says: `restricted` for most.
"""

import contextlib
import uuid
from collections.abc import Generator, Iterator
from dataclasses import replace

from factory.control.kube.rayjob import rayjob, secret
from factory.control.kube.submission import Submission
from tests.cluster.api import Api, Object, eventually
from tests.control.kube.random_cluster import LEVELS, PRIORITY_CLASSES

STRICT = "?dryRun=All&fieldValidation=Strict"
TOKEN = "t" * 43
KINDS = ("RayJob", "Secret", "head as a Pod", "worker as a Pod")

_CLASSES = "/apis/scheduling.k8s.io/v1/priorityclasses"


@contextlib.contextmanager
def namespaces(api: Api) -> Generator[dict[str, str]]:
    """A namespace for each level of pod security, enforced, and the classes that pods may name.

    Raises:
        Refused: the server has one of the classes already.
    """
    mark = uuid.uuid4().hex[:8]
    made = {level: f"{level}-{mark}" for level in LEVELS}
    for level, name in made.items():
        labels = {"pod-security.kubernetes.io/enforce": level}
        api.create("/api/v1/namespaces", {"metadata": {"name": name, "labels": labels}})
        account = f"/api/v1/namespaces/{name}/serviceaccounts/default"
        assert eventually(lambda account=account: api.exists(account))
    for name in PRIORITY_CLASSES:
        api.create(_CLASSES, {"metadata": {"name": name}, "value": 50})
    try:
        yield made
    finally:
        for name in PRIORITY_CLASSES:
            api.delete(f"{_CLASSES}/{name}")
        for name in made.values():
            api.delete(f"/api/v1/namespaces/{name}")


def placed(submission: Submission, spaces: dict[str, str]) -> Submission:
    """The same in the namespace that admits its pods."""
    cluster = submission.cluster
    moved = cluster.model_copy(update={"namespace": spaces[cluster.pod_security]})
    return replace(submission, cluster=moved)


def refused(api: Api, submission: Submission) -> dict[str, str]:
    """What the server says against an object, by its kind; nothing if it takes all of them."""
    answers = {kind: api.ask("POST", path + STRICT, body) for kind, path, body in _all(submission)}
    return {kind: str(one.body.get("message")) for kind, one in answers.items() if not one.ok}


def templates(job: Object) -> dict[str, Object]:
    """The pod templates of a RayJob by the role of their pods."""
    cluster = job["spec"]["rayClusterSpec"]
    (workers,) = cluster["workerGroupSpecs"]
    return {"head": cluster["headGroupSpec"]["template"], "worker": workers["template"]}


def _all(submission: Submission) -> Iterator[tuple[str, str, Object]]:
    space = submission.cluster.namespace
    core = f"/api/v1/namespaces/{space}"
    job = rayjob(submission)
    yield "RayJob", f"/apis/ray.io/v1/namespaces/{space}/rayjobs", job
    yield "Secret", f"{core}/secrets", secret(submission, TOKEN)
    for role, template in templates(job).items():
        metadata = {**template["metadata"], "name": role}
        pod = {"metadata": metadata, "spec": template["spec"]}
        yield f"{role} as a Pod", f"{core}/pods", {"apiVersion": "v1", "kind": "Pod", **pod}
