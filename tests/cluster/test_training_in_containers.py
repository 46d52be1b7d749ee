"""A run from a dataset to a checkpoint, in real containers of two nodes, on the factory's image.

Everything is started as a person starts it, in the checkout of a site: `factory materialize`, then
`factory launch` with a cluster that KubeRay and two kubelets make. While it trains, a process in
its pods tries what they may not do.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import dagster as dg
import pytest

from factory.control.instance import ensure
from factory.control.kube.names import ROLE
from factory.namespace import RunDirectory
from factory.namespace.checkpoints import complete_checkpoints
from factory.namespace.runs import list_runs
from factory.reports import RunRecord
from factory.settings import Settings
from tests.cluster.api import Object, eventually
from tests.cluster.checkouts import DATASET, JOB, Checkout, write_checkout
from tests.cluster.conftest import unavailable
from tests.cluster.images import Image
from tests.cluster.kubelets import Machines, NoContainers
from tests.cluster.sites import USER, Site, site
from tests.cluster.training_image import build_image

pytestmark = pytest.mark.cluster

STEPS = 6
SETS = {"workers": 2, "overrides.train.train_iters": STEPS, "overrides.checkpoint.save_interval": 3}
PATIENCE_SECONDS = 600.0

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


@pytest.fixture(scope="module")
def here(machines: Machines) -> Iterator[Site]:
    """A site with a private letter, and links to it among what is public."""
    with site(machines, "containers") as made:
        letter = made.root / "private" / "letter"
        letter.write_text("private")
        public = made.root / "public"
        (public / "there").write_text("public")
        (public / "absolute").symlink_to(letter)
        (public / "relative").symlink_to("../private/letter")
        yield made


@pytest.fixture(scope="module")
def checkout(here: Site, tmp_path_factory: pytest.TempPathFactory) -> Checkout:
    made = write_checkout(tmp_path_factory.mktemp("site"), here.root)
    made.write_cluster(here.cluster)
    return made


@pytest.fixture(scope="module")
def image(
    machines: Machines, checkout: Checkout, tmp_path_factory: pytest.TempPathFactory
) -> Image:
    try:
        made = build_image(tmp_path_factory.mktemp("image"), checkout.path)
    except NoContainers as missing:
        unavailable(str(missing))
        raise
    for node in machines.nodes:
        node.add(made)
    return made


@dataclass(frozen=True)
class Ran:
    """A run that has ended, and what was seen from inside its pods, by the role of each."""

    code: int
    said: str
    run: RunDirectory
    seen: dict[str, Object]


@pytest.fixture(scope="module")
def ran(machines: Machines, here: Site, checkout: Checkout, image: Image) -> Ran:
    checkout.run("materialize", DATASET)
    sets = [f"--set={name}={value}" for name, value in (SETS | {"cluster": "north"}).items()]
    process = checkout.start("launch", JOB, *sets, FACTORY_IMAGE=image.reference)
    try:
        begun = eventually(
            lambda: process.poll() is not None or "workers" in _phases(here.root), PATIENCE_SECONDS
        )
        assert begun, _pods(here)
        seen = {} if process.poll() is not None else _seen(machines, here)
        said, _ = process.communicate(timeout=PATIENCE_SECONDS)
    finally:
        process.terminate()
        process.communicate()
    (run,) = list_runs(here.root)
    return Ran(process.returncode, said, run, seen)


def _messages(root: Path) -> list[Object]:
    chunks = sorted(root.glob("public/runs/*/messages/[0-9]*.jsonl"))
    return [json.loads(line) for chunk in chunks for line in chunk.read_text().splitlines()]


def _phases(root: Path) -> list[str]:
    payloads = [row["params"].get("payload", {}) for row in _messages(root)]
    return [one["name"] for one in payloads if one.get("kind") == "phase"]


def _pods(here: Site) -> list[Object]:
    return here.api.items(f"/api/v1/namespaces/{here.cluster['namespace']}/pods")


def _seen(machines: Machines, here: Site) -> dict[str, Object]:
    (run,) = list_runs(here.root)
    nodes = {node.name: node for node in machines.nodes}
    seen: dict[str, Object] = {}
    for pod in _pods(here):
        (status,) = pod["status"]["containerStatuses"]
        container = status["containerID"].removeprefix("containerd://")
        command = ["/opt/env/bin/python", "-c", LOOK, str(here.root), str(run.path)]
        said = nodes[pod["spec"]["nodeName"]].exec(container, *command)
        seen[pod["metadata"]["labels"][ROLE]] = json.loads(said)
    return seen


def test_a_launch_trains_on_two_nodes_and_saves(ran: Ran, image: Image) -> None:
    assert ran.code == 0, ran.said
    record = RunRecord.model_validate_json((ran.run.path / "record.json").read_text())
    assert record.dependencies == "mounted"
    assert record.launch.image == image.reference
    assert len(record.nodes) == record.world_size == 2
    assert [one.step for one in complete_checkpoints(ran.run)] == [3, STEPS]


def test_its_messages_are_whole(ran: Ran) -> None:
    rows = _messages(ran.run.root)
    assert [row["method"] for row in (rows[0], rows[-1])] == ["opened", "closed"]
    assert rows[-1]["params"] == {}, "no exception"
    assert _phases(ran.run.root)[-1] == "done"


def test_its_page_shows_what_came_of_it(ran: Ran, checkout: Checkout) -> None:
    with ensure(Settings.from_environment(checkout.environment)) as instance:
        logs = instance.all_logs(ran.run.run_id, of_type=dg.DagsterEventType.STEP_OUTPUT)
        outputs = {log.step_key: log.get_dagster_event().step_output_data for log in logs}
    shown = outputs["train"].metadata
    assert shown["checkpoint"].value == str(complete_checkpoints(ran.run)[-1].path)
    assert shown["run directory"].value == str(ran.run.path)
    assert "loss" in shown
    assert "public/text/notes/energon/train" in str(outputs["gate"].metadata["versions"])


def test_what_it_printed_is_kept(ran: Ran) -> None:
    log = (ran.run.path / "logs" / "driver.log").read_text()
    assert "(rank 1 pid=" in log
    assert "] done" in log


def test_links_of_the_namespace_hold_wherever_it_is_mounted(ran: Ran) -> None:
    below = (ran.run.root / DATASET).rglob("*")
    links = [path.readlink() for path in below if path.is_symlink()]
    assert links
    assert not any(link.is_absolute() for link in links)


def test_nothing_of_it_is_left_on_the_cluster(ran: Ran, here: Site) -> None:
    space = here.cluster["namespace"]
    assert ran.run.exists()
    assert here.api.items(f"/apis/ray.io/v1/namespaces/{space}/rayjobs") == []
    assert _pods(here) == []


@pytest.fixture(params=["head", "worker"])
def seen(request: pytest.FixtureRequest, ran: Ran) -> Object:
    """What a process in a pod of that role sees and may do."""
    assert request.param in ran.seen, ran.said
    return ran.seen[request.param]


def test_a_pod_is_nobody_in_particular(seen: Object) -> None:
    assert set(seen["ids"]) == {USER}
    assert {line.split()[1] for line in seen["capabilities"]} == {"0" * 16}
    assert not seen["account"]


def test_a_pod_writes_into_its_own_run_only(seen: Object, ran: Ran) -> None:
    written = dict(seen["written"])
    assert written.pop(str(ran.run.path)) == "written"
    assert set(written.values()) == {"EROFS"}, written


def test_a_public_run_has_no_way_to_private_data(seen: Object) -> None:
    """No such directory, no such mount; a link that leads there leads nowhere."""
    assert seen["trees"] == ["public"]
    assert "/private" not in seen["mounts"]
    assert seen["read"] == {"there": "public", "absolute": "ENOENT", "relative": "ENOENT"}
