"""Two nodes run real containers, whose pods find each other, and nothing of them is left behind."""

import shutil
import signal
import subprocess
import sys
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from factory.control.processes import members
from factory.settings import CHECKOUT
from tests.cluster import leftovers
from tests.cluster.api import Object, eventually
from tests.cluster.builds import program
from tests.cluster.control_plane import Clusters
from tests.cluster.images import Image, write_image
from tests.cluster.kubelets import GPUS, Machines
from tests.cluster.nodes import path_of
from tests.cluster.rayjobs import rayjob

pytestmark = pytest.mark.cluster

START = """
import sys
from tests.cluster.kubelets import running_nodes
with running_nodes("doomed", count=1) as machines:
    print(machines.plane.session.id, flush=True)
    sys.stdin.readline()
"""

SERVE = "import http.server as h; h.test(h.SimpleHTTPRequestHandler, port=8000)"
FETCH = """
import time, urllib.request
for attempt in range(60):
    try:
        print(urllib.request.urlopen("http://web.{namespace}.svc.cluster.local:8000/").status)
        break
    except OSError as error:
        print(error, flush=True)
        time.sleep(0.5)
"""


RESOURCES = """
import time, ray
ray.init()
while ray.cluster_resources().get("GPU") != 8:
    time.sleep(0.5)
print(ray.cluster_resources())
"""


@pytest.fixture(scope="module")
def image(machines: Machines, tmp_path_factory: pytest.TempPathFactory) -> Image:
    """An image that takes everything from this machine's /usr, which a pod mounts read-only."""
    made = write_image(
        tmp_path_factory.mktemp("images") / "machine.tar",
        "machine.test/machine",
        programs={"pause": program("pause")},
        links={"bin": "usr/bin", "lib": "usr/lib", "lib64": "usr/lib64"},
        command=["/pause"],
    )
    for node in machines.nodes:
        node.add(made)
    return made


@pytest.fixture
def namespace(machines: Machines) -> Iterator[str]:
    """A namespace of the test's own, whose pods may be created."""
    name = f"pods-{uuid.uuid4().hex[:8]}"
    admin = machines.plane.admin
    admin.create("/api/v1/namespaces", {"metadata": {"name": name}})
    assert eventually(lambda: admin.exists(f"/api/v1/namespaces/{name}/serviceaccounts/default"))
    yield name
    admin.delete(f"/api/v1/namespaces/{name}")


def _pod(name: str, image: Image, node: str, code: str, **resources: str) -> Object:
    """A pod on that node that runs a line of Python with the system's interpreter."""
    container = {
        "name": "main",
        "image": image.reference,
        "imagePullPolicy": "Never",
        "command": ["/usr/bin/python3", "-u", "-c", code],
        "volumeMounts": [{"name": "usr", "mountPath": "/usr", "readOnly": True}],
        "resources": {"limits": resources},
    }
    spec = {
        "nodeName": node,
        "containers": [container],
        "restartPolicy": "Never",
        "automountServiceAccountToken": False,
        "terminationGracePeriodSeconds": 1,
        "volumes": [{"name": "usr", "hostPath": {"path": "/usr"}}],
    }
    return {"metadata": {"name": name, "labels": {"app": name}}, "spec": spec}


def _start(machines: Machines, namespace: str, pod: Object) -> Object:
    return machines.plane.admin.create(f"/api/v1/namespaces/{namespace}/pods", pod)


def _ended(machines: Machines, pod: Object) -> Object:
    """The status of a pod once its container has ended."""
    path = path_of(pod)

    def status() -> Object | None:
        seen = machines.plane.admin.get(path)["status"]
        return seen if seen["phase"] in ("Succeeded", "Failed") else None

    found = eventually(status, seconds=90)
    assert found, machines.plane.admin.get(path)["status"]
    return found


def _log(machines: Machines, pod: Object) -> str:
    return machines.plane.admin.ask("GET", f"{path_of(pod)}/log").body["message"]


def test_every_node_has_its_gpus(machines: Machines) -> None:
    nodes = machines.plane.admin.items("/api/v1/nodes")
    seen = {one["metadata"]["name"]: one["status"]["allocatable"] for one in nodes}
    assert {name: have["nvidia.com/gpu"] for name, have in seen.items()} == {
        node.name: str(GPUS) for node in machines.nodes
    }


def test_pods_of_two_nodes_find_each_other_by_name(
    machines: Machines, namespace: str, image: Image
) -> None:
    """As the workers of a Ray cluster find its head: through a service without an address."""
    first, second = (node.name for node in machines.nodes)
    ports = [{"port": 8000}]
    service = {"clusterIP": "None", "selector": {"app": "web"}, "ports": ports}
    machines.plane.admin.create(
        f"/api/v1/namespaces/{namespace}/services", {"metadata": {"name": "web"}, "spec": service}
    )
    _start(machines, namespace, _pod("web", image, first, SERVE))

    fetch = FETCH.format(namespace=namespace)
    client = _start(machines, namespace, _pod("client", image, second, fetch))

    assert _ended(machines, client)["phase"] == "Succeeded"
    assert _log(machines, client).endswith("200\n")


def test_a_container_that_takes_too_much_is_killed(
    machines: Machines, namespace: str, image: Image
) -> None:
    node = machines.nodes[0].name
    greedy = _pod("greedy", image, node, "x = b'x' * 2**28", memory="64Mi", cpu="1")
    (container,) = _ended(machines, _start(machines, namespace, greedy))["containerStatuses"]
    assert container["state"]["terminated"]["reason"] == "OOMKilled"


def test_an_image_that_is_not_there_is_not_pulled(
    machines: Machines, namespace: str, image: Image
) -> None:
    absent = Image(image.name, "sha256:" + "0" * 64, Path())
    pod = _start(machines, namespace, _pod("absent", absent, machines.nodes[0].name, "pass"))

    def reasons() -> list[str]:
        status = machines.plane.admin.get(path_of(pod))["status"]
        states = [one["state"] for one in status.get("containerStatuses", [])]
        return [state["waiting"]["reason"] for state in states if "waiting" in state]

    assert eventually(lambda: reasons() == ["ErrImageNeverPull"], seconds=60), reasons()


def test_a_deleted_pod_is_gone(machines: Machines, namespace: str, image: Image) -> None:
    node = machines.nodes[1].name
    pod = _start(machines, namespace, _pod("long", image, node, "import time; time.sleep(600)"))
    path = path_of(pod)
    assert eventually(
        lambda: machines.plane.admin.get(path)["status"]["phase"] == "Running", seconds=60
    )
    machines.plane.admin.delete(path)
    assert eventually(lambda: not machines.plane.admin.exists(path), seconds=60)


def test_a_command_runs_in_a_container(machines: Machines, namespace: str, image: Image) -> None:
    kubectl = shutil.which("kubectl")
    if kubectl is None:
        pytest.skip("there is no kubectl on this machine")
    node = machines.nodes[0].name
    pod = _start(machines, namespace, _pod("shell", image, node, "import time; time.sleep(600)"))
    assert eventually(
        lambda: machines.plane.admin.get(path_of(pod))["status"]["phase"] == "Running", seconds=60
    )
    config = f"--kubeconfig={machines.plane.kubeconfig}"
    command = [kubectl, config, "-n", namespace, "exec", "shell", "--", "/bin/echo", "hello"]
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    assert done.stdout == "hello\n", done.stderr


def _ray_job(image: Image) -> Object:
    """Ray in real containers, from this environment, which the pods mount where it is."""
    job = rayjob("real", gpus=GPUS)
    cluster = job["spec"]["rayClusterSpec"]
    groups = [cluster["headGroupSpec"], *cluster["workerGroupSpecs"]]
    places = {"usr": "/usr", "environment": sys.prefix, "python": sys.base_prefix}
    small = {"num-cpus": "1", "object-store-memory": "100000000"}
    for group in groups:
        group["rayStartParams"] |= small
        spec = group["template"]["spec"]
        spec["volumes"] = [{"name": n, "hostPath": {"path": p}} for n, p in places.items()]
        spec["volumes"] += [{"name": "tmp", "emptyDir": {}}]
        (container,) = spec["containers"]
        container |= {
            "image": image.reference,
            "imagePullPolicy": "Never",
            "env": [{"name": "PATH", "value": f"{sys.prefix}/bin:/usr/bin:/usr/sbin"}],
            "volumeMounts": [
                *({"name": n, "mountPath": p, "readOnly": True} for n, p in places.items()),
                {"name": "tmp", "mountPath": "/tmp"},  # noqa: S108  in a container of its own
            ],
        }
        gpus = {"nvidia.com/gpu": str(GPUS)} if group is not groups[0] else {}
        container["resources"] = {
            "requests": {"cpu": "200m", "memory": "1Gi", **gpus},
            "limits": {"cpu": "2", "memory": "3Gi", **gpus},  # Ray with less takes minutes to start
        }
    job["spec"]["entrypoint"] = f"python -c '{RESOURCES}'"
    return job


def test_a_ray_job_runs_on_two_nodes(machines: Machines, namespace: str, image: Image) -> None:
    """Head and worker in containers of their own; the driver sees the GPUs of the worker's node."""
    admin = machines.plane.admin
    jobs = f"/apis/ray.io/v1/namespaces/{namespace}/rayjobs"
    admin.create(jobs, _ray_job(image))

    def status() -> Object | None:
        seen = admin.get(f"{jobs}/real").get("status", {})
        return seen if seen.get("jobDeploymentStatus") in ("Complete", "Failed") else None

    ended = eventually(status, seconds=300)
    pods = admin.items(f"/api/v1/namespaces/{namespace}/pods")
    assert ended, [pod["status"] for pod in pods]
    assert ended["jobStatus"] == "SUCCEEDED", ended


def test_nothing_is_left_of_nodes_whose_harness_was_killed(machines: Machines) -> None:
    """Processes, mounts, control groups, the bridge; the other cluster's nodes go on."""
    harness = subprocess.Popen(
        [sys.executable, "-c", START],
        cwd=CHECKOUT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert harness.stdout is not None
    session_id = harness.stdout.readline().strip()
    (doomed,) = (one for one in Clusters().all() if one.id == session_id)
    name = doomed.directory.name
    harness.send_signal(signal.SIGKILL)
    harness.communicate()
    assert members(doomed.id, doomed.directory)
    assert leftovers.control_groups(name)
    assert leftovers.has_bridge(name)

    assert [one.id for one in Clusters().sweep()] == [session_id]

    assert members(doomed.id, doomed.directory) == []
    assert leftovers.mounts(doomed.directory) == []
    assert leftovers.control_groups(name) == []
    assert not leftovers.has_bridge(name)
    assert not doomed.directory.exists()
    assert all(node.kubelet.runs() for node in machines.nodes)
