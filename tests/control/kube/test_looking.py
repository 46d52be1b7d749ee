"""What a look asks for, and what it still asks for when a pod has been gone for some time."""

from pathlib import Path
from typing import Any

from factory.control.kube.api import connect
from factory.control.kube.looking import Lookout
from factory.control.kube.observed import Seen
from tests.control.kube.a_server import Reply, Request, serving
from tests.control.kube.submissions import submission_to


def _pod(name: str) -> dict[str, Any]:
    return {"metadata": {"name": name, "uid": name}, "status": {"phase": "Running"}}


def test_events_of_a_pod_that_is_gone_are_asked_for_as_long_as_the_run_is_followed(
    tmp_path: Path,
) -> None:
    """KubeRay says that a job has failed some looks after the worker was lost that it needed."""
    pods = [_pod("head"), _pod("worker-1")]

    def answer(request: Request) -> Reply:
        return Reply(body={"items": pods if "/pods?" in request.path else []})

    with serving(tmp_path) as server:
        server.answer = answer
        chosen = submission_to(server, tmp_path)
        lookout = Lookout(connect(chosen.cluster), chosen)
        lookout.look(Seen())
        pods[1:] = [_pod("worker-2")]
        for _ in range(3):
            server.requests.clear()
            lookout.look(Seen())
            assert any("name%3Dworker-1" in one.path for one in server.requests)
