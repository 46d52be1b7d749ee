"""What one of KAI's queues gives to a run."""

from typing import Any

from factory.control.checklist import Line, failed, note, ok
from factory.control.kube.fields import Object, amount, mapping, text

UNLIMITED = -1


def queue_line(name: str, queue: Object, *, has_gpus: bool) -> Line:
    """Whether pods in it can be placed, its quota and limit, and how much is in use.

    For KAI what is not written is 0, and a limit of 0 lets nothing in.
    """
    what = f"queue {name}"
    kinds = ("gpu", "cpu", "memory") if has_gpus else ("cpu", "memory")
    resources = mapping(queue, "spec", "resources")
    if not text(queue, "spec", "parentQueue"):
        return failed(
            what, "has no parent", "Write `parentQueue`: KAI places nothing from a queue without."
        )
    if closed := [kind for kind in kinds if not amount(mapping(resources, kind), "limit")]:
        return failed(
            what,
            f"limit 0 for {', '.join(closed)}, which lets nothing in",
            "Write a limit for each, -1 for none.",
        )
    unit = {"gpu": "GPUs", "cpu": "CPUs/1000", "memory": "MB"}[kinds[0]]
    shown = mapping(resources, kinds[0])
    quota, limit = amount(shown, "quota") or 0.0, amount(shown, "limit")
    found = f"quota {_said(quota)}, limit {_said(limit)} {unit}{_in_use(queue, has_gpus)}"
    if not quota:
        return note(what, found, "Without a quota its runs give way to any queue that has one.")
    return ok(what, found)


def _in_use(queue: Object, has_gpus: bool) -> str:
    used = amount(mapping(queue, "status", "allocated"), "nvidia.com/gpu") if has_gpus else None
    return "" if used is None else f", {used:g} in use"


def _said(value: Any) -> str:
    return "unlimited" if value == UNLIMITED else f"{value:g}"
