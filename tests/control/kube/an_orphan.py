"""Objects of runs as an API server lists them, with some of their labels and fields changed."""

from datetime import datetime
from typing import Any

OWNER = "this-dagster"
RUN = "5f0c1d2e-7a41-4c0e-9d3b-1a2b3c4d5e6f"
MADE = datetime.fromisoformat("2026-11-30T12:00:00+00:00")

KINDS = {
    "RayJob": lambda secret: {"rayClusterSpec": {"authOptions": {"secretName": secret}}},
    "RayCluster": lambda secret: {"authOptions": {"secretName": secret}},
}


def labels(**changes: str | None) -> dict[str, str]:
    """The labels that say whose an object is; None leaves one out."""
    given = {"managed-by": "ai-factory", "owner": OWNER, "run": RUN, "root-run": RUN}
    said = {**given, **{key.replace("_", "-"): value for key, value in changes.items()}}
    prefixes = {"managed-by": "app.kubernetes.io"}
    return {
        f"{prefixes.get(key, 'ai-factory')}/{key}": value
        for key, value in said.items()
        if value is not None
    }


def an_object(
    kind: str = "RayJob", name: str = "run-a", *, metadata: dict[str, Any] | None = None, **of: Any
) -> dict[str, Any]:
    """A RayJob, RayCluster or Secret of the run; `of` changes its labels."""
    said = {
        "name": name,
        "uid": f"uid-of-{kind}-{name}",
        "creationTimestamp": f"{MADE:%Y-%m-%dT%H:%M:%SZ}",
        "labels": labels(**of),
        **(metadata or {}),
    }
    made: dict[str, Any] = {"kind": kind, "metadata": said}
    if kind in KINDS:
        made["spec"] = KINDS[kind](f"{name}-token")
    return made
