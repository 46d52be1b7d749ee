"""Submissions at random that the factory would hand to a server: the same for the same seed.

Whatever the models and the refusals take counts as valid, so a server that refuses one of these has
found what they should have refused, or what the builder should have written.
"""

from collections.abc import Iterator
from dataclasses import replace
from random import Random
from typing import Any

from pydantic import ValidationError

from factory.control.clusters import Kubernetes
from factory.control.kube.refusals import refusals
from factory.control.kube.submission import Submission
from factory.spec import Launch
from tests.control.kube.random_cluster import (
    ODD_TEXTS,
    PURPOSES,
    TEXTS,
    file,
    number,
    pick,
)
from tests.control.kube.submissions import DIGEST, IMAGE, launch, private, submission

IMAGES = (IMAGE, f"a@{DIGEST}", f"localhost:5000/a/b_c/d.e@{DIGEST}", f"a.b/c--d@{DIGEST}")
ODD_IMAGES = (
    *("", "a:latest", f"a:1@{DIGEST}", f"a_b:5000/c@{DIGEST}", f"A/b@{DIGEST}"),
    f"{'n' * 256}@{DIGEST}",
    f"a.b:99999/c@{DIGEST}",
)
RUN_IDS = ("5f0c1d2e-7a41-4c0e-9d3b-1a2b3c4d5e6f", "0", "r" * 64, "a-", "a--b")
ODD_RUN_IDS = ("..", "a/b", "A", "", "r" * 65, "-a")
RAY_VERSIONS = ("2.60.0", "2.52.0", "3.0.0")
ODD_RAY_VERSIONS = ("2.51.9", "1.13.0", "nightly", "2.60", "02.60.0")


def submissions(seed: int, count: int, workers: int = 4096) -> Iterator[Submission]:
    """So many valid submissions of at most so many workers, no two of one name."""
    for _, found in pairs(seed, count, workers):
        yield found


def pairs(
    seed: int, count: int, workers: int = 4096
) -> Iterator[tuple[dict[str, Any], Submission]]:
    """The same, each with the file of its cluster."""
    random = Random(seed)
    for number_of in range(count):
        while (found := _attempt(random, workers)) is None or refusals(found[1]):
            pass
        fields, chosen = found
        yield fields, replace(chosen, root_run_id=f"{chosen.root_run_id}{seed}-{number_of}")


def _attempt(random: Random, workers: int) -> tuple[dict[str, Any], Submission] | None:
    """A submission, valid or not; none where the models take no such cluster or launch."""
    fields = file(random)
    try:
        cluster = Kubernetes.model_validate(fields)
        chosen = _launch(random, cluster, workers)
    except ValidationError:
        return None
    return fields, submission(
        chosen,
        cluster=cluster,
        root_run_id=pick(random, TEXTS, ODD_TEXTS),
        step_key=pick(random, ("train", *TEXTS), ODD_TEXTS),
        owner=pick(random, ("prod", *TEXTS), ODD_TEXTS),
        deployment=random.choice(("laptop", "dev", "prod")),
        environment={f"DAGSTER_PIPES_{name}": pick(random, TEXTS, ODD_TEXTS) for name in "AB"},
        ray_version=pick(random, RAY_VERSIONS, ODD_RAY_VERSIONS),
    )


def _launch(random: Random, cluster: Kubernetes, workers: int) -> Launch:
    most = min(workers, cluster.nodes.count)
    purpose = random.choice(PURPOSES)
    queue = cluster.queues.get(purpose)
    if queue is not None and queue.nodes is not None:
        most = min(most, queue.nodes)
    spec = {
        "recipe": pick(random, ("debug.pretrain", *TEXTS), ODD_TEXTS),
        "mix": pick(random, ("smoke", *TEXTS), ODD_TEXTS),
        "cluster": cluster.name,
        "purpose": purpose,
        "workers": random.choice((1, 2, most, random.randint(1, most))),
        "gpus_per_worker": cluster.nodes.gpus,
        "loader_workers": random.choice((0, 64)),
        "seed": random.choice((1, 2**31 - 1)),
        "run_limit_hours": number(random, 1e-6, 1e300),
        "queue_limit_hours": number(random, 1e-6, 1e300),
        "overrides": _overrides(random),
    }
    made = private if cluster.tree.private and random.random() < 0.4 else launch
    return made(
        spec=spec,
        run_id=pick(random, RUN_IDS, ODD_RUN_IDS),
        attempt=random.choice((1, 2, 10**6, 10**70)),
        profile=cluster.profile,
        image=pick(random, IMAGES, ODD_IMAGES),
        rank_environment=cluster.rank_environment,
        grace_seconds=cluster.grace_seconds,
    )


def _overrides(random: Random) -> dict[str, Any]:
    return {pick(random, TEXTS): pick(random, TEXTS) for _ in range(random.randint(0, 3))}
