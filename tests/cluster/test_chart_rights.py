"""What the factory may do with the token of the chart: all that it needs, and nothing else."""

import pytest

from factory.control.checklist import Line, any_failed
from factory.control.kube.checkup import checkup
from factory.control.kube.rights import Right, needed
from tests.cluster.api import Api, Object, eventually
from tests.cluster.compute_plane import ComputePlane
from tests.control.kube.submissions import IMAGE

pytestmark = pytest.mark.cluster

FORBIDDEN = 403


def answers(plane: ComputePlane, right: Right, verb: str) -> int:
    """The status of a real request of that kind."""
    path = _path(plane.namespace, right)
    api = plane.api
    if verb == "list":
        return api.ask("GET", path).status
    if verb == "create":
        body: Object = {"metadata": {"name": "nobody"}}
        return api.ask("POST", path if "proxy" in path else f"{path}?dryRun=All", body).status
    method = {"get": "GET", "delete": "DELETE"}[verb]
    return api.ask(method, path if right.resource.count("/") else f"{path}/nobody").status


def _path(namespace: str, right: Right) -> str:
    group = f"/apis/{right.group}" if right.group else "/api"
    version = {"": "v1", "ray.io": "v1", "scheduling.run.ai": "v2alpha2"}[right.group]
    resource, _, part = right.resource.partition("/")
    under = f"/nobody/{part}" if part else ""
    return f"{group}/{version}/namespaces/{namespace}/{resource}{under}"


def test_the_token_has_each_right_that_is_needed(installed: ComputePlane) -> None:
    asked = 0
    for right in needed(installed.cluster):
        for verb in right.verbs:
            status = answers(installed, right, verb)
            assert status not in (401, FORBIDDEN), f"{verb} {right.resource}: {status}"
            asked += 1
    assert asked >= 16


def test_it_has_no_other_right(installed: ComputePlane) -> None:
    """All of them, as the server lists them for this token, in each namespace that there is."""
    wanted = {
        (right.group, right.resource, verb)
        for right in needed(installed.cluster)
        for verb in right.verbs
    }
    everywhere = {("scheduling.run.ai", "queues", "get")}  # by name: see the next test
    assert granted(installed.api, installed.namespace) == wanted | everywhere
    for namespace in ("default", "kube-system", installed.home):
        assert granted(installed.api, namespace) == everywhere


def test_of_the_queues_it_sees_its_own(installed: ComputePlane) -> None:
    path = "/apis/scheduling.run.ai/v2/queues"
    for queue in installed.cluster.queues.values():
        assert installed.api.ask("GET", f"{path}/{queue.name}").ok
    assert installed.api.ask("GET", f"{path}/another").status == FORBIDDEN


def granted(api: Api, namespace: str) -> set[tuple[str, str, str]]:
    """Group, resource and verb of every right, but those that anybody has over questions."""
    kind = "authorization.k8s.io/v1"
    review = {
        "kind": "SelfSubjectRulesReview",
        "apiVersion": kind,
        "spec": {"namespace": namespace},
    }
    status = api.create(f"/apis/{kind}/selfsubjectrulesreviews", review)["status"]
    assert not status["incomplete"]
    return {
        (group, resource, verb)
        for rule in status["resourceRules"]
        for group in rule["apiGroups"]
        for resource in rule["resources"]
        for verb in rule["verbs"]
        if not resource.startswith("selfsubject")
    }


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", "/api/v1/namespaces/{runs}/secrets"),
        ("GET", "/api/v1/namespaces/{runs}/secrets?watch=true&timeoutSeconds=1"),
        ("PATCH", "/api/v1/namespaces/{runs}/secrets/x"),
        ("POST", "/api/v1/namespaces/{runs}/pods"),
        ("DELETE", "/api/v1/namespaces/{runs}/pods/x"),
        ("DELETE", "/api/v1/namespaces/{runs}/pods"),
        ("POST", "/api/v1/namespaces/{runs}/pods/x/exec?command=id"),
        ("GET", "/api/v1/namespaces/{runs}/pods/x/portforward?ports=8265"),
        ("PATCH", "/api/v1/namespaces/{runs}/pods/x/ephemeralcontainers"),
        ("GET", "/api/v1/namespaces/{runs}/configmaps"),
        ("POST", "/api/v1/namespaces/{runs}/persistentvolumeclaims"),
        ("POST", "/api/v1/namespaces/{runs}/serviceaccounts/default/token"),
        ("DELETE", "/apis/ray.io/v1/namespaces/{runs}/rayjobs"),
        ("PATCH", "/apis/ray.io/v1/namespaces/{runs}/rayjobs/x"),
        ("POST", "/apis/ray.io/v1/namespaces/{runs}/rayclusters"),
        ("GET", "/apis/rbac.authorization.k8s.io/v1/namespaces/{runs}/roles"),
        ("PATCH", "/apis/rbac.authorization.k8s.io/v1/namespaces/{runs}/roles/factory"),
        ("DELETE", "/apis/networking.k8s.io/v1/namespaces/{runs}/networkpolicies/dashboard"),
        ("DELETE", "/api/v1/namespaces/{runs}/resourcequotas/factory"),
        ("GET", "/apis/ray.io/v1/rayjobs"),
        ("GET", "/apis/ray.io/v1/namespaces/default/rayjobs"),
        ("GET", "/api/v1/namespaces/{home}/secrets/factory-token"),
        ("POST", "/api/v1/namespaces/{home}/serviceaccounts/factory/token"),
        ("GET", "/api/v1/namespaces"),
        ("DELETE", "/api/v1/namespaces/{runs}"),
        ("GET", "/api/v1/nodes"),
        ("GET", "/api/v1/persistentvolumes"),
        ("GET", "/apis/scheduling.run.ai/v2/queues"),
        ("GET", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"),
        (
            "DELETE",
            "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies/{runs}-trees",
        ),
    ],
)
def test_it_is_refused_everything_else(installed: ComputePlane, method: str, path: str) -> None:
    where = path.format(runs=installed.namespace, home=installed.home)
    answer = installed.api.ask(method, where, {} if method in ("POST", "PATCH") else None)
    assert answer.status == FORBIDDEN, answer


def test_the_check_of_the_cluster_passes(installed: ComputePlane) -> None:
    found = {line.what: line for line in checkup(installed.cluster, IMAGE)}
    assert not any_failed(found.values()), found
    rights = [f"may {right.resource}" for right in needed(installed.cluster)]
    assert {found[what].state for what in rights} == {"ok"}
    assert "may everything" not in found
    account = f"system:serviceaccount:{installed.home}:factory"
    assert account in found["token"].found
    assert "gangs" in found["KAI"].found


def test_an_administrator_finds_the_queues_and_the_claims(installed: ComputePlane) -> None:
    found = checked_by_administrator(installed)
    names = {purpose: queue.name for purpose, queue in installed.cluster.queues.items()}
    assert (
        found[f"queue {names['training']}"].found == "quota 16, limit unlimited GPUs; for training"
    )
    assert found[f"queue {names['training']}"].state == "ok"
    assert found[f"queue {names['smoke']}"].found == "quota 8, limit unlimited GPUs; for smoke"
    probe = found[f"queue {names['probe']}"]
    assert (probe.state, probe.found) == ("note", "quota 0, limit unlimited GPUs; for probe")
    for tree in ("public", "private"):
        assert found[f"claim namespace-{tree}"].found == "Bound, ReadWriteMany"


def checked_by_administrator(plane: ComputePlane) -> dict[str, Line]:
    path = plane.folder / "administrator"
    path.write_text(plane.plane.admin.token)
    seen_by = plane.cluster.model_copy(
        update={"token": plane.cluster.token.model_copy(update={"file": str(path)})}
    )
    bound = f"{plane.core}/persistentvolumeclaims"
    assert eventually(
        lambda: {one["status"]["phase"] for one in plane.plane.admin.items(bound)} == {"Bound"}
    )
    return {line.what: line for line in checkup(seen_by, IMAGE)}
