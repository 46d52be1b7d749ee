"""What is broken in a spec or in what a launch has pinned, and what is said of it."""

from dataclasses import replace
from random import Random
from typing import Any

from factory.control.kube.submission import Submission
from tests.control.kube.submissions import DIGEST, PRIVATE
from tests.control.kube.wrong import OfSpec, OfSubmission, Wrong


def _spec(field: str, *values: Any) -> OfSpec:
    return lambda random: {field: random.choice(values)}


def _launch(**choices: tuple[Any, ...]) -> OfSubmission:
    def change(random: Random, chosen: Submission) -> Submission:
        update = {field: random.choice(values) for field, values in choices.items()}
        return replace(chosen, launch=chosen.launch.model_copy(update=update))

    return change


def _cluster(**changes: Any) -> OfSubmission:
    def change(_: Random, chosen: Submission) -> Submission:
        return replace(chosen, cluster=chosen.cluster.model_copy(update=changes))

    return change


def _too_many(_: Random, chosen: Submission) -> Submission:
    nodes = chosen.cluster.nodes.model_copy(update={"count": 3})
    queues = {
        name: one.model_copy(update={"nodes": None}) for name, one in chosen.cluster.queues.items()
    }
    spec = chosen.launch.spec.model_copy(update={"workers": 4})
    launch = chosen.launch.model_copy(update={"spec": spec})
    cluster = chosen.cluster.model_copy(update={"nodes": nodes, "queues": queues})
    return replace(chosen, launch=launch, cluster=cluster)


def _no_gang(_: Random, chosen: Submission) -> Submission:
    nodes = chosen.cluster.nodes.model_copy(update={"count": 9})
    alone = {"scheduler": "default", "multi_node_without_gang": False, "nodes": nodes}
    spec = chosen.launch.spec.model_copy(update={"workers": 2})
    launch = chosen.launch.model_copy(update={"spec": spec})
    return replace(chosen, launch=launch, cluster=chosen.cluster.model_copy(update=alone))


def _other_gpus(_: Random, chosen: Submission) -> Submission:
    other = (chosen.cluster.nodes.gpus + 1) % 17
    spec = chosen.launch.spec.model_copy(update={"gpus_per_worker": other})
    return replace(chosen, launch=chosen.launch.model_copy(update={"spec": spec}))


def _other_profile(_: Random, chosen: Submission) -> Submission:
    other = "cpu" if chosen.cluster.profile == "h100" else "h100"
    return replace(chosen, launch=chosen.launch.model_copy(update={"profile": other}))


def _no_private_tree(_: Random, chosen: Submission) -> Submission:
    tree = chosen.cluster.tree.model_copy(update={"private": None})
    launch = chosen.launch.model_copy(update={"classification": "private"})
    return replace(chosen, launch=launch, cluster=chosen.cluster.model_copy(update={"tree": tree}))


def _pipes(*variables: tuple[str, str]) -> OfSubmission:
    return lambda random, chosen: replace(chosen, environment=dict([random.choice(variables)]))


PUBLIC = ("public",)
MUCH = {f"A{one}": "x" * 100_000 for one in range(6)}

LAUNCHES = (
    Wrong("no workers", "workers=", spec=_spec("workers", 0, -1, "none")),
    Wrong("more workers than there can be", "workers=", spec=_spec("workers", 4097, 10**9)),
    Wrong("fewer workers at least than at most", "min_workers", spec=_spec("min_workers", 3)),
    Wrong(
        "a run without an end",
        "run_limit_hours=",
        spec=_spec("run_limit_hours", 0, -1, "inf", "nan"),
    ),
    Wrong("a wait without an end", "queue_limit_hours=", spec=_spec("queue_limit_hours", 0, "inf")),
    Wrong("a purpose that there is not", "purpose=", spec=_spec("purpose", "production", "")),
    Wrong("an entrypoint in a spec", "entrypoint", spec=_spec("entrypoint", "", "true")),
    Wrong("another cluster", "this is cluster", spec=_spec("cluster", "gpu-east", "")),
    Wrong("more workers than nodes", "has 3 nodes", submission=_too_many),
    Wrong("other GPUs than a node's", "a worker takes a whole node", submission=_other_gpus),
    Wrong(
        "several nodes without a gang", "could wait for each other for ever", submission=_no_gang
    ),
    Wrong("no queue for its purpose", "There is no queue for", submission=_cluster(queues={})),
    Wrong("another profile", "The launch was made for the", submission=_other_profile),
    Wrong("no image", "There is no image", submission=_launch(image=(None, ""))),
    Wrong(
        "an image by tag",
        "needs one by digest",
        submission=_launch(image=("a:latest", "a", f"a:1@{DIGEST}")),
    ),
    Wrong(
        "half an image",
        "needs one by digest",
        submission=_launch(
            image=(f"@{DIGEST}", f"a@{DIGEST[:-1]}", f"a@{DIGEST}\n", f"a_b:1/c@{DIGEST}")
        ),
    ),
    Wrong(
        "an image with a name that is too long",
        "needs one by digest",
        submission=_launch(image=(f"{'n' * 256}@{DIGEST}",)),
    ),
    Wrong(
        "a run id that is a path",
        "cannot be a directory",
        submission=_launch(run_id=("../../private/runs/x", "a/b", "..", "", "x" * 65)),
    ),
    Wrong(
        "a public run of private data",
        "It must be private",
        submission=_launch(classification=PUBLIC, datasets=(PRIVATE,)),
    ),
    Wrong(
        "a dataset that is a path",
        "has the segment",
        submission=_launch(classification=PUBLIC, datasets=({"public/../private/text/x": "1"},)),
    ),
    Wrong(
        "a third classification",
        "A run is public or private",
        submission=_launch(classification=("Public", "public ", "third")),
    ),
    Wrong("a private run without its tree", "has no private tree", submission=_no_private_tree),
    Wrong(
        "a variable that is not Pipes'",
        "only Pipes' own variables",
        submission=_pipes(("FACTORY_ROOT", "/x"), ("PATH", "/x")),
    ),
    Wrong(
        "a launch that is too long",
        "no process starts with more than",
        submission=_pipes(("DAGSTER_PIPES_CONTEXT", "x" * 131_072)),
    ),
    Wrong(
        "a launch that is no text",
        "holds a NUL",
        submission=_pipes(("DAGSTER_PIPES_CONTEXT", "\0"), ("DAGSTER_PIPES_CONTEXT", "\ud800")),
    ),
    Wrong(
        "a Ray that is no release",
        "is no release",
        submission=lambda random, chosen: replace(
            chosen, ray_version=random.choice(("nightly", "2.60", "02.60.0", ""))
        ),
    ),
    Wrong(
        "a Ray without tokens",
        "knows no token",
        submission=lambda random, chosen: replace(
            chosen, ray_version=random.choice(("2.51.9", "1.13.0"))
        ),
    ),
    Wrong(
        "variables of more than a server stores",
        "a server stores at most",
        submission=_cluster(environment=MUCH),
    ),
)
