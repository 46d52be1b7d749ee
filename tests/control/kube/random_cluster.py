"""Files of clusters at random: every field that there is, at its edges and beyond.

Most values are such as people write. Some are odd: long, doubled dots, other alphabets, names that
mean something elsewhere. Whether a file with such a value is a cluster is for the model to say.
"""

from collections.abc import Sequence
from random import Random
from typing import Any

ODD = 0.02
"""How often a value is an odd one; a file has some forty."""

LEVELS = ("restricted", "baseline", "privileged")
PURPOSES = ("training", "smoke", "probe")
PRIORITY_CLASSES = ("high", "low.example", "p" * 63)

NAMES = ("a", "registry", "team-a.pull", "x" * 63, "a--b", "0")
ODD_NAMES = ("a..b", "a.-b", "-a", "A", "x" * 64, "x" * 253, "x" * 254, "a_b", "a/b", "")
LABEL_KEYS = ("pool", "example.com/pool", "A_b.c", "a.b-c.d/" + "n" * 63)
ODD_LABEL_KEYS = ("a..b/c", "a.-b/c", f"{'d' * 253}/a", "/a", "a/", "a/b/c", "é", "n" * 64, "")
LABEL_VALUES = ("", "a", "A_b.c-d", "v" * 63, "1")
ODD_LABEL_VALUES = ("a b", "-", "v" * 64, "é", "a/b", "\n")
GPUS = ("nvidia.com/gpu", "amd.com/gpu")
RESOURCES = ("rdma/hca_shared", "rdma/hca-a", "nvidia.com/mlnxnics", "example.com/nic.0")
ODD_RESOURCES = (
    *("cpu", "memory", "ephemeral-storage", "hugepages-2Mi", "gpu", "pods"),
    *("kubernetes.io/x", "a.kubernetes.io/x", "requests.example.com/x", "a..b/c"),
    f"{'d' * 253}/nic",
)
PATHS = ("/opt/factory/venv", "/usr/share/models", "/data", "/srv/ü b", f"/{'p' * 200}")
ODD_PATHS = ("/a:b", "/a/../b", "/", "/dev/x", "/a/", "//a", "/proc", "/var/lib/kubelet")
VARIABLES = ("NCCL_SOCKET_IFNAME", "PATH", "_", "aB_9", "X" * 200, "LD_LIBRARY_PATH")
ODD_VARIABLES = (
    *("A B", "1A", "", "A=B", "A-B", "ü"),
    *("RAY_REDIS_ADDRESS", "REDIS_USERNAME", "RAY_enable_autoscaler_v2"),
    *("RAY_CLUSTER_NAME", "FQ_RAY_IP", "RAY_PORT", "RAY_ENABLE_K8S_TOKEN_AUTH"),
    *("PYTHONUNBUFFERED", "FACTORY_ROOT", "HOME"),
)
TEXTS = (
    *("", "a", "eth0,eth1", "a b", "ünïcode", "日本語", "🙂", "'\"\\", "$(HOME)", "$$(A)", "$A"),
    *("a\nb", "\t", "\r\n", "\u202e", "\u2028", "%s", "{x}", "${A:-b}", "- a: b", "true", "0x1f"),
    *("x" * 300, "../private", "#", "&a *a", "\x7f"),
)
ODD_TEXTS = ("\x00", "a\x00b", "\ud800", "x" * 200_000, "\x1b[0m")


def pick(random: Random, good: Sequence[Any], odd: Sequence[Any] = ()) -> Any:
    """One of them, rarely an odd one."""
    return random.choice(odd if odd and random.random() < ODD else good)


def some(random: Random, most: int, good: Sequence[Any], odd: Sequence[Any] = ()) -> list[Any]:
    """None to several of them, the same one twice at times."""
    return [pick(random, good, odd) for _ in range(random.randint(0, most))]


def number(random: Random, low: float, high: float) -> float:
    """An end, a whole number or any between, as often small as large."""
    between = low * (high / low) ** random.random()
    return random.choice((low, high, between, between, max(low, round(between))))


def maybe(random: Random, value: Any, often: float = 0.5) -> Any:
    """The value, or that the field is left out."""
    return value if random.random() < often else None


def file(random: Random) -> dict[str, Any]:
    """The fields of a file, which may be none of a cluster."""
    gpus = random.choice((0, 1, 8, 16, random.randint(0, 16)))
    kai = random.random() < 0.6
    level = random.choices(LEVELS, (6, 2, 2))[0]
    fields = {
        "name": pick(random, ("gpu-west", "x", "y" * 80, "süd")),
        "kind": "kubernetes",
        "profile": "h100" if gpus else "cpu",
        "grace_seconds": maybe(random, random.choice((0, number(random, 0.001, 86_400)))),
        "rank_environment": maybe(random, _environment(random)),
        "api_server": "https://gpu-west.example:6443",
        "ca": maybe(random, {"file": "/etc/factory/ca.crt"}),
        "token": random.choice(_TOKENS),
        "namespace": pick(random, ("training", "t" * 63, "0"), ODD_NAMES),
        "dashboard": maybe(random, random.choice(_DASHBOARDS)),
        "scheduler": "kai" if kai else "default",
        "multi_node_without_gang": not kai,
        "queues": {name: _queue(random, level) for name in PURPOSES if random.random() < 0.8},
        "nodes": _nodes(random, gpus, kai),
        "head": maybe(random, _head(random), 0.8),
        "tree": _tree(random, level),
        "mounts": [_mount(random, level, path) for path in _paths(random)],
        "pull_secrets": some(random, 3, NAMES, ODD_NAMES),
        "tolerations": [_toleration(random) for _ in range(random.choice((0, 1, 4)))],
        "pod_security": level,
        "run_as": maybe(random, _run_as(random)),
        "environment": maybe(random, _environment(random)),
        "limits": maybe(random, {"nodes": 4096, "run_hours": 1e300}),
    }
    return {name: value for name, value in fields.items() if value is not None}


_TOKENS: tuple[dict[str, Any], ...] = (
    {"file": "/etc/factory/token"},
    {"exec": {"command": ["get-token", "--of", "west"]}},
    {"secret": {"name": "west", "key": "token"}},
    {"in_cluster": True},
)
_DASHBOARDS = (
    {"route": "service_proxy"},
    {"route": "template", "template": "http://{service}.{namespace}.svc.cluster.local:8265"},
)
_TOPOLOGY = ("example.com/block", "example.com/rack", "kubernetes.io/hostname")


def _queue(random: Random, level: str) -> dict[str, Any]:
    fields = {
        "name": pick(random, ("training", "a.b", "q" * 63, "0"), ODD_NAMES),
        "priority_class": maybe(random, pick(random, PRIORITY_CLASSES, ("x" * 64, "x" * 253))),
        "preemptible": maybe(random, random.random() < 0.5),
        "submission": "http" if level == "restricted" else random.choice(("http", "sidecar")),
        "nodes": maybe(random, random.choice((1, 3, 4096))),
        "grace_seconds": maybe(random, random.choice((0, number(random, 0.001, 86_400)))),
    }
    return {name: value for name, value in fields.items() if value is not None}


def _nodes(random: Random, gpus: int, kai: bool) -> dict[str, Any]:
    fields = {
        "count": random.choice((1, 4, 4096, 10**12)),
        "gpus": gpus,
        "gpu_product": maybe(random, pick(random, ("NVIDIA-H100-80GB-HBM3", "x" * 63))),
        "gpu_resource": maybe(
            random, pick(random, ("nvidia.com/gpu", "amd.com/gpu"), ODD_RESOURCES)
        ),
        "cpus": number(random, 0.1, 4096),
        "memory_gib": number(random, 0.25, 2**20),
        "shared_memory_gib": maybe(random, number(random, 0.25, 2**20), 0.2),
        "scratch_gib": maybe(random, number(random, 0.25, 2**20)),
        "locked_memory": random.random() < 0.3,
        "network_devices": {
            name: random.choice((1, 8, 1000, pick(random, (2,), (2**31, 2**63, 10**30))))
            for name in some(random, 2, RESOURCES, ODD_RESOURCES)
        },
        "network_attachments": some(random, 2, NAMES, ODD_NAMES),
        "labels": _labels(random),
        "topology": maybe(random, _topology(random)) if kai else None,
    }
    return {name: value for name, value in fields.items() if value is not None}


def _topology(random: Random) -> dict[str, Any]:
    levels = [pick(random, (one,), ODD_LABEL_KEYS) for one in _TOPOLOGY[random.randint(0, 2) :]]
    asked = {"required": random.choice(levels), "preferred": random.choice(levels)}
    kept = random.choice((["required"], ["preferred"], ["required", "preferred"]))
    name = pick(random, NAMES, ODD_NAMES)
    return {"name": name, "levels": levels, **{field: asked[field] for field in kept}}


def _head(random: Random) -> dict[str, Any]:
    fields = {"cpus": number(random, 0.1, 8), "memory_gib": number(random, 1, 64)}
    return fields | ({"labels": _labels(random)} if random.random() < 0.6 else {})


def _tree(random: Random, level: str) -> dict[str, Any]:
    fields = {
        "path": maybe(random, pick(random, ("/namespace", "/mnt/factory", "/ns ü"), ODD_PATHS)),
        "public": _volume(random, level, "public"),
        "private": maybe(random, _volume(random, level, "private"), 0.8),
    }
    return {name: value for name, value in fields.items() if value is not None}


def _paths(random: Random) -> list[str]:
    paths = random.sample(PATHS, random.choice((0, 0, 1, 3)))
    return [pick(random, (path,), ODD_PATHS) for path in paths]


def _mount(random: Random, level: str, path: str) -> dict[str, Any]:
    return {"path": path, **_volume(random, level, random.choice(("venv", "weights")))}


def _volume(random: Random, level: str, name: str) -> dict[str, Any]:
    if level == "privileged" and random.random() < 0.5:
        return {"host_path": pick(random, (f"/mnt/ns/{name}", f"/srv/{name}"), ODD_PATHS)}
    return {"claim": pick(random, (f"namespace-{name}", f"{name}.claim"), ODD_NAMES)}


def _labels(random: Random) -> dict[str, str]:
    keys = some(random, 2, LABEL_KEYS, ODD_LABEL_KEYS)
    return {key: pick(random, LABEL_VALUES, ODD_LABEL_VALUES) for key in keys}


def _toleration(random: Random) -> dict[str, Any]:
    fields = {
        "key": maybe(random, pick(random, LABEL_KEYS, ODD_LABEL_KEYS), 0.8),
        "effect": maybe(random, random.choice(("NoSchedule", "PreferNoSchedule", "NoExecute"))),
    }
    if fields["key"] and random.random() < 0.5:
        value = pick(random, LABEL_VALUES, ODD_LABEL_VALUES)
        fields |= {"operator": "Equal", "value": value}
    return {name: value for name, value in fields.items() if value is not None}


def _run_as(random: Random) -> dict[str, Any]:
    ids = (1, 1000, 65_534, 2**31 - 1)
    groups = some(random, 3, ids, (0, 2**31))
    return {"user": pick(random, ids, (0,)), "group": random.choice(ids), "groups": groups}


def _environment(random: Random) -> dict[str, str]:
    names = some(random, 5, VARIABLES, ODD_VARIABLES)
    return {name: pick(random, TEXTS, ODD_TEXTS) for name in names}
