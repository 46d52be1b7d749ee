"""What a cluster cannot give a run: said in words and numbers before anything is submitted.

A server takes much that cannot work: the RayJob's schema knows no node and no queue, and KubeRay
says only in its own log, or never, why a job does not start.
"""

import re
from pathlib import Path

from factory.control.clusters import Kubernetes
from factory.control.clusters.words import unusable
from factory.control.kube.submission import PIPES_VARIABLES, Submission, no_queue
from factory.control.reach import named_private
from factory.errors import KeyFormatError, NamespaceError
from factory.keys import PrivateKey, parse
from factory.namespace import RunDirectory
from factory.spec import Launch, RunSpec

_PART = r"[a-z0-9]+(?:(?:[._]|__|-+)[a-z0-9]+)*"
_HOST = r"[a-z0-9]+(?:[.-]+[a-z0-9]+)*:[0-9]{1,5}"
IMAGE = re.compile(rf"(?=.{{1,255}}@)({_HOST}/)?{_PART}(/{_PART})*@sha256:[0-9a-f]{{64}}")
"""A repository has at most 255 characters for whoever pulls it."""

_NUMBER = r"(0|[1-9][0-9]*)"
_RAY_VERSION = re.compile(rf"{_NUMBER}\.{_NUMBER}\.{_NUMBER}")
LEAST_RAY = (2, 52, 0)
"""KubeRay refuses to give an older one a token."""


def refusals(submission: Submission) -> list[str]:
    """Everything that keeps it from being submitted; nothing if it can be."""
    launch, cluster = submission.launch, submission.cluster
    return [
        *spec_refusals(launch.spec, cluster),
        *_of_launch(launch, cluster),
        *_of_access(launch, cluster),
        *_of_environment(submission),
    ]


def spec_refusals(spec: RunSpec, cluster: Kubernetes) -> list[str]:
    """What of a spec the cluster cannot satisfy."""
    where = f"definitions/clusters/{cluster.name}.yaml"
    problems: list[str] = []
    if spec.cluster != cluster.name:
        problems.append(f"cluster={spec.cluster}: this is cluster {cluster.name}.")
    if spec.purpose not in cluster.queues:
        problems.append(no_queue(spec.purpose, cluster))
    problems += _of_nodes(spec, cluster)
    if spec.workers > 1 and cluster.scheduler != "kai" and not cluster.multi_node_without_gang:
        problems.append(
            f"workers={spec.workers}: cluster {cluster.name} has the default scheduler, which "
            f"places one pod at a time, so {spec.workers} nodes could wait for each other for ever."
            f" Use 1, or write `multi_node_without_gang: true` in {where}."
        )
    most = cluster.limits.run_hours
    if most is not None and spec.run_limit_hours > most:
        problems.append(
            f"run_limit_hours={spec.run_limit_hours:g}: cluster {cluster.name} allows {most:g}."
        )
    return problems


def image_refusal(image: str | None, cluster: Kubernetes) -> str | None:
    """What is said where no image is named, or one that may be another tomorrow."""
    if IMAGE.fullmatch(image or ""):
        return None
    said = f"image={image[:120]!r}" if image else "There is no image"
    return (
        f"{said}: a run on {cluster.name} needs one by digest, NAME@sha256:64 hex digits, so "
        "that what ran can be run again. Set FACTORY_IMAGE."
    )


def _of_nodes(spec: RunSpec, cluster: Kubernetes) -> list[str]:
    nodes = cluster.nodes
    problems: list[str] = []
    if spec.gpus_per_worker != nodes.gpus:
        problems.append(
            f"gpus_per_worker={spec.gpus_per_worker}: a worker takes a whole node, and those of "
            f"{cluster.name} have {nodes.gpus} GPUs. Use {nodes.gpus}."
        )
    queue = cluster.queues.get(spec.purpose)
    for most, whose in (
        (nodes.count, f"cluster {cluster.name} has {nodes.count} nodes"),
        (queue and queue.nodes, f"a run in queue {queue and queue.name} may have {{}}"),
        (cluster.limits.nodes, f"cluster {cluster.name} allows a run {{}}"),
    ):
        if most is not None and spec.workers > most:
            asked, there = spec.workers * spec.gpus_per_worker, most * nodes.gpus
            gpus = f" ({asked} GPUs asked for, {there} there)" if asked else ""
            problems.append(
                f"workers={spec.workers}: {whose.format(most)}{gpus}. Use at most {most}."
            )
    return problems


def _of_launch(launch: Launch, cluster: Kubernetes) -> list[str]:
    problem = image_refusal(launch.image, cluster)
    problems = [problem] if problem else []
    if launch.profile != cluster.profile:
        problems.append(
            f"The launch was made for the {launch.profile} profile, and cluster {cluster.name} has "
            f"{cluster.profile}. Launch it again."
        )
    return problems


def _of_access(launch: Launch, cluster: Kubernetes) -> list[str]:
    try:
        RunDirectory(launch.classification, launch.run_id, Path(cluster.tree.path))
    except NamespaceError as error:
        return [str(error)]
    if launch.classification == "private":
        none = f"Cluster {cluster.name} has no private tree, so no private run goes there."
        return [] if cluster.tree.private else [none]
    try:
        read = [parse(key) for key in sorted(launch.datasets)]
    except KeyFormatError as error:
        return [str(error)]
    return [
        *(
            f"The run is public and reads {key}, which it will not be shown. It must be private."
            for key in read
            if isinstance(key, PrivateKey)
        ),
        *named_private(launch.spec.overrides, Path(cluster.tree.path)),
    ]


def _of_environment(submission: Submission) -> list[str]:
    problems: list[str] = []
    for name, value in sorted(submission.environment.items()):
        if not name.startswith(PIPES_VARIABLES):
            problems.append(f"{name}: only Pipes' own variables are handed to a driver.")
        elif problem := unusable(name, value):
            problems.append(f"{name} {problem}: a launch of fewer datasets is shorter.")
    return [*problems, *_of_ray(submission.ray_version)]


def _of_ray(version: str) -> list[str]:
    found = _RAY_VERSION.fullmatch(version)
    if found is None:
        return [f"Ray {version!r} is no release, which KubeRay needs."]
    if tuple(map(int, found.groups())) < LEAST_RAY:
        least = ".".join(map(str, LEAST_RAY))
        return [f"Ray {version} knows no token, without which anyone could use it; {least} does."]
    return []
