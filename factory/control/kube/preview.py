"""The RayJob of a run that nobody has launched: to look at, and for the API server to check.

A launch pins versions of datasets and a run id. Neither shapes the pods, so stand-ins do.
"""

import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from pydantic_core import from_json

from factory import discovery
from factory.control.clusters import Kubernetes, cluster
from factory.control.clusters.plain import what_it_holds
from factory.control.code_identity import code_identity
from factory.control.jobs import job_specs
from factory.control.kube.api import SOMEBODY_WAITS, Api, connect
from factory.control.kube.pods import Manifest
from factory.control.kube.rayjob import rayjob
from factory.control.kube.submission import Submission
from factory.control.nearest import naming
from factory.control.specs import check, parsed, with_sets
from factory.errors import SpecError
from factory.keys import Classification, PrivateKey
from factory.settings import Settings
from factory.spec import Launch, RunSpec

RUN_ID = str(uuid.UUID(int=0))


@dataclass(frozen=True)
class Preview:
    """A RayJob, and the cluster that it is for."""

    rayjob: Manifest
    cluster: Kubernetes


def preview(
    job: str, name: str, settings: Settings, sets: Mapping[str, str] | None = None
) -> Preview:
    """The RayJob of a job of definitions/jobs, or of a file that holds a run spec.

    Raises:
        SpecError: no such job or Kubernetes cluster, an unknown name, field or value in the spec,
            a `cluster` among the fields that is another, or the cluster cannot run it.
    """
    where = cluster(name)
    if not isinstance(where, Kubernetes):
        raise SpecError(f"Cluster {name} is this machine, where a run is no RayJob. Name another.")
    if (other := (sets or {}).get("cluster", name)) != name:
        raise SpecError(
            f"--set cluster={other} says another cluster than --cluster {name}. Leave it out."
        )
    spec = check(with_sets(_spec(job), {**(sets or {}), "cluster": name}))
    launch = Launch(
        run_id=RUN_ID,
        attempt=1,
        classification=_classification(spec),
        spec=spec,
        profile=where.profile,
        datasets={},
        image=settings.image,
        code=code_identity(),
        rank_environment=where.rank_environment,
        grace_seconds=where.grace_seconds,
    )
    submission = Submission(
        launch=launch,
        cluster=where,
        root_run_id=RUN_ID,
        owner="preview",
        deployment=settings.deployment,
    )
    return Preview(rayjob(submission), where)


def _connect(cluster: Kubernetes) -> Api:
    return connect(cluster, patience=SOMEBODY_WAITS)


def validate(made: Preview, connected: Callable[[Kubernetes], Api] = _connect) -> None:
    """Let the API server check it as strictly as it can; nothing is created.

    Raises:
        ClusterRefused: the server would not take it; says why.
        ClusterError: it cannot be asked.
    """
    api = connected(made.cluster)
    try:
        path = f"/apis/ray.io/v1/namespaces/{made.cluster.namespace}/rayjobs"
        api.create(path, made.rayjob, dryRun="All", fieldValidation="Strict")
    finally:
        api.close()


def _spec(job: str) -> RunSpec:
    if job.endswith(".json"):
        return _of_file(job)
    known = job_specs()
    if job not in known:
        raise SpecError(f"No job {job!r} in definitions/jobs. {naming(job, known)}")
    return known[job]


def _of_file(path: str) -> RunSpec:
    try:
        values = from_json(Path(path).read_bytes())
    except OSError as error:
        raise SpecError(f"{path} cannot be read: {error.strerror}.") from None
    except ValueError as error:
        raise SpecError(f"{path} is not JSON: {error}.") from None
    if not isinstance(values, dict):
        raise SpecError(f"{path} holds {what_it_holds(values)}, not the fields of a run spec.")
    try:
        return parsed(cast("dict[str, Any]", values))
    except SpecError as error:
        raise SpecError(f"{path} is no run spec:\n{error}") from None


def _classification(spec: RunSpec) -> Classification:
    keys = (dataset.key for dataset in discovery.mixes()[spec.mix].datasets)
    return "private" if any(isinstance(key, PrivateKey) for key in keys) else "public"
