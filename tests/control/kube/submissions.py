"""Launches and submissions, with some of their fields changed."""

from pathlib import Path
from typing import Any

from factory.control.kube.submission import Submission
from factory.spec import CodeIdentity, Launch, RunSpec
from tests.control.a_cluster import a_cluster
from tests.control.kube.a_server import Server

DIGEST = "sha256:" + "0123456789abcdef" * 4
IMAGE = f"registry.example:5000/factory/training@{DIGEST}"
RUN_ID = "5f0c1d2e-7a41-4c0e-9d3b-1a2b3c4d5e6f"
PRIVATE = {"private/text/letters/energon/train": "9c81"}


def launch(**changes: Any) -> Launch:
    """A launch of two nodes on public data; `spec` changes fields of its spec."""
    spec = {
        "recipe": "debug.pretrain",
        "mix": "smoke",
        "cluster": "gpu-west",
        "workers": 2,
        "gpus_per_worker": 8,
        **changes.pop("spec", {}),
    }
    fields = {
        "run_id": RUN_ID,
        "attempt": 1,
        "classification": "public",
        "profile": "h100",
        "datasets": {"public/text/plos/energon/train": "4f2a"},
        "image": IMAGE,
        "code": CodeIdentity(commit=None, tree="t", lock="l"),
        **changes,
    }
    return Launch(spec=RunSpec(**spec), **fields)


def private(**changes: Any) -> Launch:
    """The same on private data."""
    return launch(classification="private", datasets=PRIVATE, **changes)


def submission(chosen: Launch | None = None, **changes: Any) -> Submission:
    """A submission of that launch; `cluster` changes the cluster's file, `purpose` the spec."""
    cluster = changes.pop("cluster", {})
    chosen = chosen or launch()
    if "purpose" in changes:
        spec = chosen.spec.model_copy(update={"purpose": changes.pop("purpose")})
        chosen = chosen.model_copy(update={"spec": spec})
    fields = {
        "launch": chosen,
        "cluster": a_cluster(**cluster) if isinstance(cluster, dict) else cluster,
        "root_run_id": RUN_ID,
        "owner": "prod",
        "deployment": "prod",
        "environment": {"DAGSTER_PIPES_CONTEXT": "eJyr", "DAGSTER_PIPES_MESSAGES": "eJyz"},
        "ray_version": "2.60.0",
        **changes,
    }
    return Submission(**fields)


def submission_to(server: Server, folder: Path) -> Submission:
    """A submission to the cluster of that server, with a token in that folder."""
    token = folder / "token"
    token.write_text("t")
    return submission(
        cluster={
            "api_server": server.address,
            "ca": {"file": str(server.ca)},
            "token": {"file": str(token)},
        }
    )
