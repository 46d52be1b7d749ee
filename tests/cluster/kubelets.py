"""Nodes with kubelets and real containers, all on this machine: containerd, a bridge, DNS.

Needs root, Linux, and the programs in `NEEDED`. All nodes share one bridge and one network, so no
routes are needed; each has its own containerd, control group and directories, or they would remove
each other's pods. What they leave when they are killed is in `leftovers`.
"""

import json
import os
import shutil
import subprocess
import uuid
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.cluster import builds, leftovers
from tests.cluster.api import Object, eventually
from tests.cluster.control_plane import HOST, ControlPlane, running, write_kubeconfig
from tests.cluster.daemons import Daemon, DaemonDied
from tests.cluster.images import Image, write_image

NEEDED = ("containerd", "ctr", "runc", "ip", "umount")
GPUS = 8

_PLUGINS = (Path("/usr/lib/cni"), Path("/opt/cni/bin"))
_PAUSE = "pause.test/pause"
_NAMES_OF_V1 = ("cpuset.cpus", "cpuset.mems")
_WEIGHT = "cpu.shares", "4096"
"""Else all containers of a node together weigh as much as one process of this machine."""

_ADDRESSES_PER_NODE = 60
_FIRST_ADDRESS = 10


class NoContainers(Exception):
    """This machine cannot run containers for the tests."""


@dataclass(frozen=True)
class Node:
    """One node with a kubelet."""

    name: str
    folder: Path
    containerd: Daemon
    kubelet: Daemon

    def add(self, image: Image) -> None:
        """Give the node an image, so that pods can name it by digest.

        Raises:
            CalledProcessError: containerd did not take it.
        """
        _import(self.folder, image)

    def exec(self, container: str, *command: str) -> str:
        """What a command prints in a container of this node, as that container's user.

        Raises:
            CalledProcessError: it failed, or there is no such container.
        """
        task = ["-n", "k8s.io", "tasks", "exec", f"--exec-id={uuid.uuid4().hex}", container]
        done = _ctr(self.folder, *task, *command)
        done.check_returncode()
        return done.stdout


@dataclass(frozen=True)
class Machines:
    """A cluster and its nodes."""

    plane: ControlPlane
    nodes: list[Node]


@dataclass(frozen=True)
class Network:
    """The network of the pods of one cluster, on a bridge of this machine."""

    bridge: str
    prefix: str

    @property
    def gateway(self) -> str:
        """The address of this machine in it."""
        return f"{self.prefix}.1"

    def plugin(self, index: int, folder: Path) -> Object:
        """The settings for the pods of the node with that number."""
        start = _FIRST_ADDRESS + index * _ADDRESSES_PER_NODE
        addresses = {
            "subnet": f"{self.prefix}.0/24",
            "rangeStart": f"{self.prefix}.{start}",
            "rangeEnd": f"{self.prefix}.{start + _ADDRESSES_PER_NODE - 1}",
            "gateway": self.gateway,
        }
        bridge = {
            "type": "bridge",
            "bridge": self.bridge,
            "isGateway": True,
            "hairpinMode": True,
            "ipam": {
                "type": "host-local",
                "dataDir": str(folder / "addresses"),
                "ranges": [[addresses]],
            },
        }
        return {"cniVersion": "0.4.0", "name": f"{self.bridge}-{index}", "plugins": [bridge]}


@contextmanager
def running_nodes(name: str, count: int = 2) -> Generator[Machines]:
    """A cluster of that name with so many nodes that run containers; nothing is left afterwards.

    Raises:
        NoContainers: this is not root's, or a program is missing.
        NoGo: as `control_plane.running`.
        DaemonDied: as `control_plane.running`.
    """
    _require()
    names = [f"{name}-{index}" for index in range(count)]
    with running(name, nodes=names) as plane:
        network = _make_network(plane)
        _start_dns(plane, network)
        pause = write_image(
            plane.folder / "pause.tar",
            _PAUSE,
            programs={"pause": builds.program("pause")},
            command=["/pause"],
        )
        nodes = [_start_node(plane, network, index, pause) for index in range(count)]
        yield Machines(plane, nodes)


def _require() -> None:
    if os.geteuid() != 0:
        raise NoContainers("Containers with their own networks need root")
    if missing := [name for name in NEEDED if shutil.which(name) is None]:
        raise NoContainers(f"Missing on this machine: {', '.join(missing)}")
    if not any(folder.is_dir() for folder in _PLUGINS):
        raise NoContainers("The network plugins are missing (containernetworking-plugins)")


def _make_network(plane: ControlPlane) -> Network:
    network = Network(plane.folder.name, plane.claims.network())
    for arguments in (
        ["link", "add", network.bridge, "type", "bridge"],
        ["address", "add", f"{network.gateway}/24", "dev", network.bridge],
        ["link", "set", network.bridge, "up"],
    ):
        subprocess.run(["ip", *arguments], check=True)  # noqa: S607  wherever this system has it
    return network


def _start_dns(plane: ControlPlane, network: Network) -> None:
    """Workers find the head of their Ray cluster by the name of its service."""
    corefile = plane.folder / "Corefile"
    ready = plane.claims.port()
    lines = [
        ".:53 {",
        f"  bind {network.gateway}",
        "  errors",
        f"  ready {HOST}:{ready}",
        f"  kubernetes cluster.local {{\n    kubeconfig {plane.kubeconfig}\n  }}",
        "}",
    ]
    corefile.write_text("\n".join(lines) + "\n", encoding="utf-8")
    plane.run("coredns", f"-conf={corefile}")


def _start_node(plane: ControlPlane, network: Network, index: int, pause: Image) -> Node:
    name = plane.nodes[index]
    folder = plane.folder / str(index)
    (folder / "cni").mkdir(parents=True)
    settings = network.plugin(index, folder)
    (folder / "cni" / "bridge.conflist").write_text(json.dumps(settings), encoding="utf-8")
    containerd = _start_containerd(plane, folder, name)
    _import(folder, pause)
    kubelet = _start_kubelet(plane, network, folder, name)
    path = f"/api/v1/nodes/{name}"
    kubelet.wait_until(lambda: plane.admin.exists(path))
    _add_gpus(plane, path)
    if not eventually(lambda: _is_ready(plane.admin.get(path)), seconds=60):
        raise DaemonDied(f"Node {name} is not ready: {plane.admin.get(path)['status']}")
    return Node(name, folder, containerd, kubelet)


def _start_containerd(plane: ControlPlane, folder: Path, name: str) -> Daemon:
    (folder / "containerd.toml").write_text(_containerd_settings(folder), encoding="utf-8")
    program = Path(shutil.which("containerd") or "containerd")
    daemon = plane.run(program, f"--config={folder / 'containerd.toml'}", name=f"{name}-containerd")
    daemon.wait_until(lambda: _ctr(folder, "version").returncode == 0)
    return daemon


def _containerd_settings(folder: Path) -> str:
    """Directories of its own, and what a machine without AppArmor and CAP_SYS_RESOURCE needs."""
    plugins = next(path for path in _PLUGINS if path.is_dir())
    cri = 'plugins."io.containerd.grpc.v1.cri"'
    return f"""
version = 2
root = "{folder}/root"
state = "{folder}/state"
[grpc]
address = "{folder}/containerd.sock"
[plugins."io.containerd.internal.v1.opt"]
path = "{folder}/opt"
[{cri}]
sandbox_image = "{_PAUSE}:test"
disable_apparmor = true
restrict_oom_score_adj = true
netns_mounts_under_state_dir = true
[{cri}.cni]
bin_dir = "{plugins}"
conf_dir = "{folder}/cni"
[{cri}.containerd.runtimes.runc]
runtime_type = "io.containerd.runc.v2"
[{cri}.containerd.runtimes.runc.options]
SystemdCgroup = false
Root = "{folder}/runc"
"""


def _start_kubelet(plane: ControlPlane, network: Network, folder: Path, name: str) -> Daemon:
    group = f"{plane.folder.name}-{folder.name}"
    _make_control_groups(group)
    settings = {
        "apiVersion": "kubelet.config.k8s.io/v1beta1",
        "kind": "KubeletConfiguration",
        "address": network.gateway,
        "port": plane.claims.port(),
        "healthzPort": plane.claims.port(),
        "authentication": {"anonymous": {"enabled": True}, "webhook": {"enabled": False}},
        "authorization": {"mode": "AlwaysAllow"},
        "cgroupDriver": "cgroupfs",
        "cgroupRoot": f"/{group}",
        "failCgroupV1": False,
        "failSwapOn": False,
        "enforceNodeAllocatable": [],
        "localStorageCapacityIsolation": False,
        "makeIPTablesUtilChains": False,
        "imageGCHighThresholdPercent": 100,
        "evictionHard": {"memory.available": "100Mi"},
        "podLogsDir": str(folder / "logs"),
        "volumePluginDir": str(folder / "volume-plugins"),
        "clusterDNS": [network.gateway],
        "clusterDomain": "cluster.local",
        "containerRuntimeEndpoint": f"unix://{folder}/containerd.sock",
    }
    (folder / "kubelet.json").write_text(json.dumps(settings, indent=2), encoding="utf-8")
    write_kubeconfig(folder / "kubeconfig", name, plane.kubelets[name])
    return plane.run(
        "kubelet",
        f"--config={folder / 'kubelet.json'}",
        f"--kubeconfig={folder / 'kubeconfig'}",
        f"--root-dir={folder / 'kubelet'}",
        f"--cert-dir={folder / 'pki'}",
        f"--hostname-override={name}",
        f"--node-ip={network.gateway}",
        name=f"{name}-kubelet",
    )


def _make_control_groups(name: str) -> None:
    """A group in every hierarchy; version 1 gives a new one no processors and no memory."""
    for hierarchy in (path for path in leftovers.CGROUPS.iterdir() if path.is_dir()):
        if (hierarchy / "cgroup.procs").exists():
            (hierarchy / name).mkdir(exist_ok=True)
        for file in _NAMES_OF_V1:
            if (hierarchy / file).exists():
                (hierarchy / name / file).write_bytes((hierarchy / file).read_bytes())
        if (weight := hierarchy / name / _WEIGHT[0]).exists():
            weight.write_text(_WEIGHT[1])


def _add_gpus(plane: ControlPlane, path: str) -> None:
    """What the device plugin of a vendor would report; the kubelet keeps it."""
    count = {"nvidia.com/gpu": str(GPUS)}
    plane.admin.patch(f"{path}/status", {"status": {"capacity": count, "allocatable": count}})
    labels = {"nvidia.com/gpu.count": str(GPUS), "nvidia.com/gpu.product": "NVIDIA-H100-80GB-HBM3"}
    plane.admin.patch(path, {"metadata": {"labels": labels}})


def _is_ready(node: Object) -> bool:
    conditions = node["status"].get("conditions", [])
    return any(one["type"] == "Ready" and one["status"] == "True" for one in conditions)


def _import(folder: Path, image: Image) -> None:
    names = ["--digests", "--base-name", image.name]
    done = _ctr(folder, "-n", "k8s.io", "images", "import", *names, str(image.archive))
    done.check_returncode()


def _ctr(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = ["ctr", "--address", f"{folder}/containerd.sock", *arguments]
    return subprocess.run(command, check=False, capture_output=True, text=True)
