"""The gate: what must hold before a run is submitted, and what it pins.

Names and values of a spec are checked in `specs`, what a mix reads is found in `locking`, what
stands against training on it in `proof`; checks on data are in `factory.data`.
"""

from dataclasses import replace
from datetime import timedelta

from factory.control.clusters import cluster
from factory.control.code_identity import code_identity
from factory.control.locking import Reading, kept_lock, locked, reading
from factory.control.proof import refusal, unproven
from factory.control.reach import refuse_private
from factory.control.resources import Factory
from factory.control.specs import check
from factory.data.mix import Mix
from factory.data.mixing.lock import MixLock
from factory.data.mixing.of_runs import FILE
from factory.data.mixing.words import changed
from factory.errors import GateRefused, NamespaceError
from factory.keys import Classification, PrivateKey
from factory.namespace import Namespace, RunDirectory
from factory.spec import Launch, RunSpec

SUBMITTING = timedelta(hours=24)
"""How much longer than its two limits a launch may take to leave a run record."""


def gate(spec: RunSpec, *, run_id: str, factory: Factory) -> Launch:
    """Pin everything that the run reads, and write the lock of its mix into its directory.

    Raises:
        SpecError: the spec names something that does not exist, or that a public run may not read,
            or its mix does not fit its recipe.
        StepError: an entry of a dataset cannot be encoded.
        GateRefused: a dataset version does not hold what the run needs; all problems are listed.
    """
    spec = check(spec)
    namespace = factory.namespace
    found = reading(spec.mix, namespace, kept_lock(spec.mix))
    run = RunDirectory(_classification(found.mix), run_id, namespace.root)
    refuse_private(spec, run.classification, namespace.root)
    if gone := _not_pinned(run, found, spec, namespace):
        raise GateRefused(refusal(spec.mix, [*found.problems, *gone]))
    try:
        _refuse_unproven(spec, found, factory)
        lock = _locked(spec, found, factory)
        _keep(lock, namespace.open_run(run.classification, run_id))
    except BaseException:
        namespace.unpin(run)
        raise
    where = cluster(spec.cluster)
    return Launch(
        run_id=run_id,
        attempt=1,
        classification=run.classification,
        spec=spec,
        profile=where.profile,
        datasets={version.key.path: version.id for _, version in found.versions},
        mix_lock=lock.hash,
        image=factory.image_on(where),
        code=code_identity(),
        rank_environment=where.rank_environment,
        grace_seconds=where.grace_seconds,
    )


def gained(spec: RunSpec, first: Launch, factory: Factory) -> dict[str, str]:
    """Versions of what a run's mix reads by now, and did not when the run began.

    Raises:
        GateRefused: one of them may not be trained on, or not by this run.
    """
    found = reading(spec.mix, factory.namespace, kept_lock(spec.mix))
    keys = {f"{dataset.key.path}/energon/train" for dataset in found.mix.datasets}
    if not keys - first.datasets.keys():
        return {}
    if (now := _classification(found.mix)) != first.classification:
        raise GateRefused(
            f"The mix {spec.mix!r} is {now} by now, and run {first.run_id} is "
            f"{first.classification}: its checkpoints and figures lie where they would not be "
            "allowed. Launch a new run."
        )
    others = [(step, one) for step, one in found.versions if one.key.path not in first.datasets]
    _refuse_unproven(spec, replace(found, versions=others), factory)
    return {version.key.path: version.id for _, version in others}


def _not_pinned(
    run: RunDirectory, found: Reading, spec: RunSpec, namespace: Namespace
) -> list[str]:
    """Keep the versions from `factory gc` before they are read; what of them is gone already."""
    hold = timedelta(hours=spec.queue_limit_hours + spec.run_limit_hours) + SUBMITTING
    try:
        if found.versions:
            namespace.pin(run, [version for _, version in found.versions], hold)
    except NamespaceError as error:
        return [str(error)]
    return []


def _refuse_unproven(spec: RunSpec, found: Reading, factory: Factory) -> None:
    allow_partial = factory.settings.allow_partial
    against = unproven(found, spec, factory.namespace, allow_partial=allow_partial)
    if problems := [*found.problems, *against]:
        raise GateRefused(refusal(spec.mix, problems))


def _locked(spec: RunSpec, found: Reading, factory: Factory) -> MixLock:
    """The lock of the run's mix; one whose caps end the run too early is refused."""
    lock = locked(spec, found, factory.settings.state)
    expected = lock.expectations
    if expected is not None and expected.ends_at is not None:
        capped = [
            f"{source.key} reaches {source.max_epochs:g} epochs at step {one.capped_at:,}"
            for source, one in zip(lock.sources, expected.sources, strict=True)
            if one.capped_at is not None
        ]
        raise GateRefused(
            f"The mix {spec.mix!r} has nothing left to read from about step {expected.ends_at:,} "
            f"of {expected.steps:,} on: {'; '.join(capped)}. Train for fewer steps, raise "
            "`max_epochs` or `max_share`, or add a dataset."
        )
    return lock


def _keep(lock: MixLock, run: RunDirectory) -> None:
    """Write the lock into the run's directory, for its driver and its ranks."""
    file = run.path / FILE
    if not file.exists():
        run.create(FILE, lock.to_json())
        return
    before = MixLock.from_json(file.read_bytes(), str(file))
    if before.hash != lock.hash:
        raise GateRefused(
            f"Run {run.run_id} was locked with {before.hash[:12]}, and its mix would be locked "
            f"with {lock.hash[:12]} now: {'; '.join(changed(before, lock))}. A run keeps its data; "
            "launch a new one."
        )


def _classification(mix: Mix) -> Classification:
    private = any(isinstance(dataset.key, PrivateKey) for dataset in mix.datasets)
    return "private" if private else "public"
