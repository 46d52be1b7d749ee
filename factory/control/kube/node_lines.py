"""What the nodes of a cluster hold against what its file says they do."""

import re
from collections.abc import Sequence
from typing import Any

from factory.control.checklist import Line, failed, note, ok
from factory.control.clusters.nodes import Nodes
from factory.control.kube.fields import Object, amount, holds, mapping

_DECIMAL = {"": 1, "k": 10**3, "M": 10**6, "G": 10**9, "T": 10**12}
_BYTES = {**_DECIMAL, "Ki": 2**10, "Mi": 2**20, "Gi": 2**30, "Ti": 2**40}


def node_line(expected: Nodes, found: Sequence[Object]) -> Line:
    """Whether there are so many, and each of them has room for a worker."""
    where = _labels(expected)
    if not found:
        return failed(
            "nodes",
            f"none{where}",
            "Correct `nodes.gpu_product` and `nodes.labels`: no worker would ever be placed.",
        )
    usable = [one for one in found if holds(one, "Ready") and not _cordoned(one)]
    said = f"{len(usable)} of {len(found)}{where} can take pods"
    if not usable:
        return failed("nodes", said, "See why: `kubectl describe nodes`.")
    small = [problem for one in usable if (problem := _too_small(expected, one))]
    if len(small) == len(usable):
        return failed(
            "nodes",
            f"{said}; none is as large as the file says: {small[0]}",
            "Write under `nodes` what a node's pods may have (`allocatable`).",
        )
    if small:
        return note("nodes", f"{said}; {len(small)} are smaller: {small[0]}", "Workers avoid them.")
    if len(usable) < expected.count:
        return note(
            "nodes",
            f"{said}, and the file says {expected.count}",
            f"A run of more than {len(usable)} workers waits. Correct `nodes.count` if that is "
            "for good.",
        )
    return ok("nodes", f"{said}, each with {_shape(expected)} or more")


def _too_small(expected: Nodes, node: Object) -> str:
    """What a node has less of than the file says, in words."""
    wanted = {
        "cpu": expected.cpus,
        **{name: float(count) for name, count in expected.network_devices.items()},
    }
    if expected.gpus:
        wanted[expected.gpu_resource] = float(expected.gpus)
    has = mapping(node, "status", "allocatable")
    less = [
        f"{name} {there:g}, not {least:g}"
        for name, least in wanted.items()
        if (there := amount(has, name) or 0.0) < least
    ]
    memory_gib = _gib(has.get("memory"))
    if memory_gib < expected.memory_gib:
        less.append(f"memory {memory_gib:.0f} GiB, not {expected.memory_gib:g}")
    return ", ".join(less)


def _gib(quantity: Any) -> float:
    matched = re.fullmatch(r"([0-9]{1,20})([kKMGT]?i?)", str(quantity))
    if matched is None or matched[2] not in _BYTES:
        return 0.0
    return int(matched[1]) * _BYTES[matched[2]] / 2**30


def _cordoned(node: Object) -> bool:
    return mapping(node, "spec").get("unschedulable") is True


def _labels(expected: Nodes) -> str:
    labels = dict(expected.labels)
    if expected.gpu_product:
        labels["nvidia.com/gpu.product"] = expected.gpu_product
    return f" with {', '.join(f'{k}={v}' for k, v in sorted(labels.items()))}" if labels else ""


def _shape(expected: Nodes) -> str:
    gpus = f"{expected.gpus} GPUs, " if expected.gpus else ""
    return f"{gpus}{expected.cpus:g} CPUs, {expected.memory_gib:g} GiB"
