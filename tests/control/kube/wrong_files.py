"""What is broken in a file of a cluster, and what is said of it."""

from random import Random
from typing import Any

from tests.control.kube.wrong import Fields, OfFile, Wrong

HOSTS = "privileged"


def _set(path: str, *values: Any) -> OfFile:
    """Sets the field at that path to one of the values."""

    def change(random: Random, fields: Fields) -> None:
        *parts, last = path.split(".")
        for part in parts:
            fields = fields.setdefault(part, {})
        fields[last] = random.choice(values)

    return change


def _of_queue(field: str, *values: Any) -> OfFile:
    def change(random: Random, fields: Fields) -> None:
        random.choice([*fields["queues"].values()])[field] = random.choice(values)

    return change


def _added(field: str, *values: Any) -> OfFile:
    def change(random: Random, fields: Fields) -> None:
        fields[field] = [*fields.get(field, []), random.choice(values)]

    return change


def _variable(*values: tuple[str, str]) -> OfFile:
    def change(random: Random, fields: Fields) -> None:
        fields["environment"] = {**fields.get("environment", {}), **dict([random.choice(values)])}

    return change


def _a_worker_without_room(random: Random, fields: Fields) -> None:
    fields["head"] = {"cpus": 2, "memory_gib": 8}
    fields["nodes"] |= random.choice(({"cpus": 2}, {"memory_gib": 8}))


def _sidecar_where_pods_are_restricted(_: Random, fields: Fields) -> None:
    fields |= {"pod_security": "restricted", "mounts": [], "tree": {"public": {"claim": "a"}}}
    next(iter(fields["queues"].values()))["submission"] = "sidecar"


def _a_mount(mount: Fields, tree: Fields | None = None, level: str = "restricted") -> OfFile:
    def change(_: Random, fields: Fields) -> None:
        whole = {"path": "/namespace", "public": {"claim": "a"}, **(tree or {})}
        mounts = [{"path": "/opt/more", **mount}]
        fields |= {"tree": whole, "mounts": mounts, "pod_security": level}
        for queue in fields["queues"].values():
            queue["submission"] = "http"

    return change


FILES = (
    Wrong(
        "a mode that there is not",
        "submission is '",
        _of_queue("submission", "K8sJobMode", "", "HTTPMode", "interactive"),
    ),
    Wrong(
        "a sidecar where pods are restricted",
        "needs `pod_security: baseline`",
        _sidecar_where_pods_are_restricted,
    ),
    Wrong(
        "a queue that is no name", "queues.", _of_queue("name", "Training_1", "a..b", "q" * 64, "")
    ),
    Wrong(
        "a class that is no label",
        "priority_class is '",
        _of_queue("priority_class", "c" * 64, "a..b", "High"),
    ),
    Wrong("no queue", "queues", _set("queues", {})),
    Wrong("no nodes", "nodes.count is '", _set("nodes.count", 0, -1)),
    Wrong("more GPUs than a node holds", "nodes.gpus is '", _set("nodes.gpus", 17, 80, -1)),
    Wrong("a profile without its hardware", "profile is 'tpu'", _set("profile", "tpu")),
    Wrong("a worker without room", "nothing is left for a worker", _a_worker_without_room),
    Wrong(
        "shared memory of more than there is",
        "leaves a worker no other memory",
        lambda _, fields: fields["nodes"].update(shared_memory_gib=fields["nodes"]["memory_gib"]),
    ),
    Wrong(
        "a GPU that no plugin counts",
        "is no device of a plugin",
        _set("nodes.gpu_resource", "gpu", "cpu", "kubernetes.io/gpu", "requests.a.b/gpu"),
    ),
    Wrong(
        "a device that is memory",
        "is no device of a plugin",
        _set("nodes.network_devices", {"memory": 1}, {"hugepages-2Mi": 4}),
    ),
    Wrong(
        "a GPU counted twice",
        "which `gpus` says already",
        lambda _, fields: fields["nodes"].update(
            gpu_resource="a.b/c", network_devices={"a.b/c": 1}
        ),
    ),
    Wrong(
        "more devices than can be counted",
        "network_devices.a.b/c is '",
        _set("nodes.network_devices", {"a.b/c": 0}, {"a.b/c": 2**31}, {"a.b/c": 10**30}),
    ),
    Wrong(
        "a label without a key",
        "is no key of a label",
        _set("nodes.labels", {"a..b/c": "x"}, {"": "x"}, {"d" * 254 + "/a": "x"}),
    ),
    Wrong(
        "a label without a value",
        "is no label",
        _set("nodes.labels", {"a": "b c"}, {"a": "v" * 64}),
    ),
    Wrong(
        "a taint without a value",
        "tolerations",
        _added(
            "tolerations",
            {"key": "a", "operator": "Equal", "value": "b c"},
            {"key": "a", "operator": "Equal", "value": "v" * 64},
        ),
    ),
    Wrong(
        "a taint without a key",
        "`Equal` needs the key",
        _added("tolerations", {"operator": "Equal", "value": "a"}),
    ),
    Wrong(
        "a secret that is no name",
        "pull_secrets.",
        _added("pull_secrets", "A", "a..b", "a_b", "x" * 254, ""),
    ),
    Wrong(
        "a claim that is no name",
        "tree.public.claim is '",
        _set("tree", {"public": {"claim": "a..b"}}, {"public": {"claim": "A"}}),
    ),
    Wrong(
        "one volume for both trees",
        "public and private are one volume",
        _set("tree", {"public": {"claim": "a"}, "private": {"claim": "a"}}),
    ),
    Wrong(
        "a mount of the private tree",
        "would show the private tree to public runs",
        _a_mount({"claim": "b"}, {"private": {"claim": "b"}}),
    ),
    Wrong(
        "a mount above the private tree",
        "would show the private tree to public runs",
        _a_mount({"host_path": "/mnt/a"}, {"private": {"host_path": "/mnt/a/private"}}, HOSTS),
    ),
    Wrong(
        "a mount inside the private tree",
        "would show the private tree to public runs",
        _a_mount(
            {"host_path": "/mnt/a/private/text"},
            {"private": {"host_path": "/mnt/a/private"}},
            HOSTS,
        ),
    ),
    Wrong(
        "a mount of what lies around the public tree",
        "where the namespace lies with both",
        _a_mount({"host_path": "/mnt/a/b"}, {"public": {"host_path": "/mnt/a/public"}}, HOSTS),
    ),
    Wrong(
        "a mount over the namespace",
        "covers the namespace at /namespace",
        _a_mount({"claim": "c", "path": "/namespace/private"}),
    ),
    Wrong(
        "a mount of what kubelets hold",
        "reaches what other pods there have mounted",
        _a_mount({"host_path": "/var/lib"}, level=HOSTS),
    ),
    Wrong(
        "a mount of the processes of a node",
        "reaches what other pods there have mounted",
        _a_mount({"host_path": "/proc"}, level=HOSTS),
    ),
    Wrong(
        "a mount twice",
        "twice; a path shows one volume",
        _set("mounts", [{"path": "/opt/a", "claim": "b"}] * 2),
    ),
    Wrong(
        "a directory of nodes without the level",
        "is admitted with `pod_security: privileged` only",
        _a_mount({"host_path": "/opt/a"}),
    ),
    Wrong("root", "run_as.user is '0'", _set("run_as", {"user": 0})),
    Wrong(
        "a variable of the factory's",
        "the factory sets this itself",
        _variable(("FACTORY_ROOT", "/x"), ("HOME", "/x"), ("RAY_AUTH_TOKEN", "x")),
    ),
    Wrong(
        "a variable of KubeRay's",
        "the factory sets this itself",
        _variable(
            ("RAY_REDIS_ADDRESS", "x:1"),
            ("REDIS_USERNAME", "x"),
            ("RAY_enable_autoscaler_v2", "1"),
            ("RAY_CLUSTER_NAME", "x"),
        ),
    ),
    Wrong("a variable with a NUL", "holds a NUL", _variable(("A", "\0"), ("A", "a\0b"))),
    Wrong(
        "a variable that is too long",
        "no process starts with more than",
        _variable(("A", "x" * 131_072)),
    ),
    Wrong(
        "no name of a variable",
        "is no name of a variable",
        _variable(("A B", ""), ("1A", ""), ("", ""), ("A=B", "")),
    ),
    Wrong(
        "an address without encryption",
        "write https://HOST:PORT",
        _set("api_server", "http://a", "a:6443"),
    ),
    Wrong(
        "a namespace that is no name",
        "namespace is '",
        _set("namespace", "Training", "a.b", "n" * 64, ""),
    ),
    Wrong("an entrypoint", "entrypoint: no such field", _set("entrypoint", "", "true")),
    Wrong("replicas", "replicas: no such field", _set("nodes.min_replicas", 3)),
    Wrong(
        "a grace that is none",
        "grace_seconds is '",
        _set("grace_seconds", -1, float("nan"), float("inf")),
    ),
)
