"""The rights that a token is asked for are those that the factory's own requests take."""

import contextlib
import re
from collections.abc import Callable
from pathlib import Path

from factory.control.kube.api import Api, Patience, connect
from factory.control.kube.dashboard import Dashboard
from factory.control.kube.looking import Lookout
from factory.control.kube.objects import Objects
from factory.control.kube.observed import Seen
from factory.control.kube.orphans import Judge, Orphan
from factory.control.kube.rayjob import rayjob
from factory.control.kube.remains import Remains
from factory.control.kube.rights import needed
from factory.control.kube.submission import Submission
from factory.errors import ClusterError
from tests.control.kube.a_server import Reply, Request, serving
from tests.control.kube.an_orphan import MADE
from tests.control.kube.submissions import submission_to

PATH = re.compile(r"/(?:api|apis/([^/]+))/v\w+/namespaces/training/(\w+)(?:/([^/?]+)(?:/(\w+))?)?")
HEAD_LOG = ("", "pods/log", "get")
"""Read where a run did not do well, at its end."""

NO = Patience(budget_seconds=0.0)


def right(request: Request) -> tuple[str, str, str]:
    """Group, resource and verb, as an API server takes them from a request."""
    found = PATH.match(request.path)
    assert found, request.path
    group, resource, name, part = found.groups()
    get = "watch" if "watch=" in request.path else "get" if name else "list"
    verbs = {"GET": get, "POST": "create", "DELETE": "delete", "PATCH": "patch"}
    whole = f"{resource}/{part}" if part else resource
    return group or "", whole, verbs[request.method]


def made_and_removed(api: Api, chosen: Submission) -> None:
    objects = Objects(api, chosen, Lookout(api, chosen))
    objects.make(rayjob(chosen))
    with contextlib.suppress(ClusterError):
        objects.remove(0.0)


def looked_at(api: Api, chosen: Submission) -> None:
    lookout = Lookout(api, chosen)
    lookout.look(Seen(), thorough=True)
    lookout.left()


def swept(api: Api, chosen: Submission) -> None:
    remains = Remains(api, chosen.cluster.namespace, Judge(owner="me", known=lambda _: {}))
    remains.find({"run-a"})
    left = [
        Orphan(kind=kind, name="a", uid=kind, runs=frozenset({"r"}), run="r", why="", since=MADE)
        for kind in ("RayJob", "RayCluster", "Secret")
    ]
    remains.remove(left, 5.0)


def asked_of_ray(api: Api, chosen: Submission) -> None:
    dashboard = Dashboard(api, chosen.cluster, "ray", "t" * 32, NO)
    dashboard.job_status("job")
    dashboard.stop_job("job")
    dashboard.lost_workers()


DONE: tuple[Callable[[Api, Submission], None], ...] = (
    made_and_removed,
    looked_at,
    swept,
    asked_of_ray,
)


def test_the_rights_are_what_the_requests_take(tmp_path: Path) -> None:
    there: dict[str, object] = {}

    def answer(request: Request) -> Reply:
        path = request.path.partition("?")[0]
        if request.method == "POST" and "/proxy/" not in path:
            there[f"{path}/{request.body['metadata']['name']}"] = request.body
            return Reply(201, request.body)
        if request.method == "DELETE":
            there.pop(path, None)
            return Reply()
        _, resource, verb = right(request)
        if verb == "get" and resource in ("rayjobs", "rayclusters", "secrets", "podgroups"):
            held = there.get(path)
            return Reply(body=held) if held else Reply(404, {"message": "not found"})
        return Reply(body={"items": []})

    with serving(tmp_path) as server:
        server.answer = answer
        chosen = submission_to(server, tmp_path)
        api = connect(chosen.cluster, patience=NO)
        made = rayjob(chosen)
        made["metadata"]["uid"] = "the-uid"
        for act in DONE:
            there[f"/apis/ray.io/v1/namespaces/training/rayjobs/{chosen.name}"] = made
            act(api, chosen)
        api.close()
    wanted = {
        (one.group, one.resource, verb) for one in needed(chosen.cluster) for verb in one.verbs
    }
    assert {right(one) for one in server.requests} | {HEAD_LOG} == wanted
