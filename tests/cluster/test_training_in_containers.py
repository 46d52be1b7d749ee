"""Training in real containers of two nodes, on the factory's own image, and what its pods see."""

import json
import secrets
from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from factory.control.kube.names import ROLE
from factory.control.kube.rayjob import rayjob, secret
from factory.control.kube.submission import Submission
from factory.namespace import RunDirectory
from factory.namespace.checkpoints import complete_checkpoints
from factory.reports import RunRecord
from factory.spec import CodeIdentity, Launch, RunSpec
from tests.cluster.api import Object, eventually
from tests.cluster.images import Image
from tests.cluster.kubelets import Machines
from tests.cluster.sites import USER, Site, site
from tests.cluster.training_image import build_image
from tests.training.conftest import KEY, documents, pipes_environment, publish

pytestmark = pytest.mark.cluster

STEPS = 6
RUN_ID = "in-containers"


@pytest.fixture(scope="module")
def image(machines: Machines, tmp_path_factory: pytest.TempPathFactory) -> Image:
    made = build_image(tmp_path_factory.mktemp("image"))
    for node in machines.nodes:
        node.add(made)
    return made


@pytest.fixture(scope="module")
def here(machines: Machines, image: Image) -> Iterator[Site]:
    with site(machines, "containers") as made:
        secret = made.root / "private" / "letter"
        secret.write_text("private")
        secret.chmod(0o644)
        public = made.root / "public"
        (public / "there").write_text("public")
        (public / "absolute").symlink_to(secret)
        (public / "relative").symlink_to("../private/letter")
        yield made


@dataclass(frozen=True)
class Ran:
    """A run that has ended, whose pods are still there."""

    launch: Launch
    status: Object
    run: RunDirectory
    pods: list[Object]


@pytest.fixture(scope="module")
def ran(here: Site, image: Image) -> Ran:
    version = publish(here.namespace, documents(12))
    launch = Launch(
        run_id=RUN_ID,
        attempt=1,
        classification="public",
        spec=RunSpec(
            recipe="debug.pretrain",
            mix="smoke",
            cluster=here.cluster.name,
            workers=2,
            overrides={"train.train_iters": str(STEPS), "checkpoint.save_interval": "3"},
        ),
        profile="cpu",
        datasets={KEY.path: version.id},
        image=image.reference,
        code=CodeIdentity(commit=None, tree="test", lock="test"),
    )
    path = here.open_run(RUN_ID)
    submission = Submission(
        launch=launch,
        cluster=here.cluster,
        root_run_id=RUN_ID,
        owner="test",
        deployment="prod",
        environment=pipes_environment(launch, path / "messages"),
    )
    core = f"/api/v1/namespaces/{here.cluster.namespace}"
    jobs = f"/apis/ray.io/v1/namespaces/{here.cluster.namespace}/rayjobs"
    here.api.create(f"{core}/secrets", secret(submission, secrets.token_urlsafe(32)))
    here.api.create(jobs, rayjob(submission))

    def ended() -> Object | None:
        seen = here.api.get(f"{jobs}/{submission.name}").get("status", {})
        return seen if seen.get("jobDeploymentStatus") in ("Complete", "Failed") else None

    status = eventually(ended, seconds=600)
    pods = here.api.items(f"{core}/pods")
    assert status, [pod["status"] for pod in pods]
    return Ran(launch, status, RunDirectory("public", RUN_ID, here.root), pods)


def test_a_run_trains_on_two_nodes(ran: Ran) -> None:
    assert ran.status["jobStatus"] == "SUCCEEDED", ran.status
    record = RunRecord.model_validate_json((ran.run.path / "record.json").read_text())
    assert record.dependencies == "mounted"
    assert len(record.nodes) == record.world_size == 2
    assert [one.step for one in complete_checkpoints(ran.run)] == [3, STEPS]
    chunks = sorted((ran.run.path / "messages").glob("[0-9]*.jsonl"))
    rows = [json.loads(line) for chunk in chunks for line in chunk.read_text().splitlines()]
    assert [row["method"] for row in (rows[0], rows[-1])] == ["opened", "closed"]
    assert rows[-1]["params"] == {}


LOOK = """
import errno, json, os, pathlib, sys
root, run = map(pathlib.Path, sys.argv[1:])
images = map(pathlib.Path, ("/", "/opt/factory", "/opt/python"))
folders = (*images, root, root / "public", run.parent, run)

def written(folder):
    try:
        (folder / "probe").touch()
    except OSError as refused:
        return errno.errorcode[refused.errno]
    return "written"

def read(path):
    try:
        return path.read_text()
    except OSError as refused:
        return errno.errorcode[refused.errno]

print(json.dumps({
    "ids": [os.getuid(), os.geteuid(), os.getgid(), *os.getgroups()],
    "capabilities": [line for line in open("/proc/self/status") if line.startswith("Cap")],
    "trees": sorted(path.name for path in root.iterdir()),
    "mounts": pathlib.Path("/proc/self/mountinfo").read_text(),
    "written": {str(folder): written(folder) for folder in folders},
    "read": {name: read(root / "public" / name) for name in ("there", "absolute", "relative")},
    "account": os.path.exists("/var/run/secrets/kubernetes.io"),
}))
"""


@pytest.fixture(scope="module", params=["head", "worker"])
def seen(request: pytest.FixtureRequest, machines: Machines, here: Site, ran: Ran) -> Object:
    """What a process in a pod of a public run sees and may do."""
    pod = next(one for one in ran.pods if one["metadata"]["labels"][ROLE] == request.param)
    (node,) = (one for one in machines.nodes if one.name == pod["spec"]["nodeName"])
    (status,) = pod["status"]["containerStatuses"]
    container = status["containerID"].removeprefix("containerd://")
    python = "/opt/env/bin/python"
    return json.loads(node.exec(container, python, "-c", LOOK, str(here.root), str(ran.run.path)))


def test_a_pod_is_nobody_in_particular(seen: Object) -> None:
    assert set(seen["ids"]) == {USER}
    assert {line.split()[1] for line in seen["capabilities"]} == {"0" * 16}
    assert not seen["account"]


def test_a_pod_writes_into_its_own_run_only(seen: Object, ran: Ran) -> None:
    own = seen["written"].pop(str(ran.run.path))
    assert own == "written"
    assert set(seen["written"].values()) == {"EROFS"}, seen["written"]


def test_a_public_run_has_no_way_to_private_data(seen: Object) -> None:
    """No such directory, no such mount; a link that leads there leads nowhere."""
    assert seen["trees"] == ["public"]
    assert "/private" not in seen["mounts"]
    assert seen["read"] == {"there": "public", "absolute": "ENOENT", "relative": "ENOENT"}
