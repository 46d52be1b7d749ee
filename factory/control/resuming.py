"""Resuming: a run that ended before it was done goes on, as its next attempt.

Dagster has no word for that: what it runs again is another run. So another Dagster run does it, and
a tag names the run whose directory, versions and checkpoints it goes on with. The tag can be given
in the launchpad as well. What the driver does with it is in `factory.training.resume`.
"""

from collections.abc import Mapping

from pydantic import ValidationError

from factory.control.clusters import cluster
from factory.control.code_identity import code_identity
from factory.control.gates import gained
from factory.control.reach import refuse_private
from factory.control.resources import Factory
from factory.control.specs import check
from factory.data.mixing.of_runs import goes_on_with
from factory.errors import FactoryError, GateRefused, NamespaceError, SpecError
from factory.keys import parse
from factory.namespace import Namespace, RunDirectory
from factory.namespace.attempts import last_attempt
from factory.namespace.checkpoints import complete_checkpoints
from factory.namespace.manifest import wrong_fields
from factory.namespace.run_files import contents
from factory.namespace.runs import record_path
from factory.reports import RunRecord
from factory.spec import Launch, RunSpec

RESUMES = "factory/resumes"
"""Tag of a Dagster run: the run that it goes on with."""

FRESH_DATA = "factory/fresh_data"
"""Tag: with the weights of the last checkpoint, and the data from their beginning."""

REDISTRIBUTE = "factory/redistribute"
"""Tag: on another number of data-parallel ranks, each loader worker with its own data."""


SHOWN = 3


def tags_of(run_id: str, *, fresh_data: bool = False, redistribute: bool = False) -> dict[str, str]:
    """The tags of a Dagster run that goes on with that run."""
    asked = {FRESH_DATA: fresh_data, REDISTRIBUTE: redistribute}
    return {RESUMES: run_id} | {tag: "true" for tag, wanted in asked.items() if wanted}


def resumed(spec: RunSpec, tags: Mapping[str, str], factory: Factory) -> Launch:
    """The next attempt of the run that the tags name, with the versions that it began with.

    Raises:
        SpecError: the spec names something that does not exist, or asks for other data.
        GateRefused: there is nothing to go on from, or a version is gone or damaged.
    """
    spec = check(spec)
    run = factory.namespace.run(tags[RESUMES])
    first = _began_as(run)
    if changed := [name for name in ("recipe", "mix") if _of(spec, name) != _of(first.spec, name)]:
        raise SpecError(
            f"Run {run.run_id} has another {' and '.join(changed)} than the spec that is to go on "
            "with it. Launch a new run for a new experiment."
        )
    refuse_private(spec, first.classification, factory.namespace.root)
    _refuse_missing(first, factory.namespace)
    fresh_data = tags.get(FRESH_DATA) == "true"
    others = gained(spec, first, factory) if fresh_data else {}
    where = cluster(spec.cluster)
    return first.model_copy(
        update={
            "attempt": last_attempt(run) + 1,
            "spec": spec,
            "profile": where.profile,
            "image": factory.image_on(where),
            "code": code_identity(),
            "rank_environment": where.rank_environment,
            "grace_seconds": where.grace_seconds,
            "datasets": {**first.datasets, **others},
            # Data that begin again may be others: then the driver locks the mix.
            "mix_lock": "" if fresh_data else _mix_lock(run, first),
            "fresh_data": fresh_data,
            "redistribute": tags.get(REDISTRIBUTE) == "true",
        }
    )


def _began_as(run: RunDirectory) -> Launch:
    record = record_path(run)
    if not complete_checkpoints(run):
        raise GateRefused(
            f"{run} has no complete checkpoint, so there is nothing to go on from. Launch it again."
        )
    try:
        return RunRecord.model_validate_json(contents(run.path, record.name)).launch
    except ValidationError as error:
        problem = f"wrong: {wrong_fields(error)}"
    except (OSError, NamespaceError) as error:
        problem = str(error).rstrip(".")
    raise GateRefused(
        f"{record} cannot be read ({problem}), so nobody knows which data {run} began with."
    )


def _mix_lock(run: RunDirectory, first: Launch) -> str:
    lock = goes_on_with(run)
    return first.mix_lock if lock is None else lock.hash


def _of(spec: RunSpec, name: str) -> str:
    return str(getattr(spec, name))


def _refuse_missing(launch: Launch, namespace: Namespace) -> None:
    gone: list[str] = []
    for key, version in launch.datasets.items():
        try:
            found = namespace.version(parse(key), version)
            damage = namespace.verify(found) if key.endswith("/energon/train") else []
        except FactoryError as error:
            gone.append(f"- {error}")
        else:
            gone += [f"- {found}: {one}" for one in damage[:SHOWN]]
    if gone:
        raise GateRefused(
            f"Run {launch.run_id} cannot go on, because what it reads is gone or damaged:\n"
            + "\n".join(gone)
        )
