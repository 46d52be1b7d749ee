"""The gate: what must hold before a run is submitted, and what it pins.

A blocking check stops only the Dagster run that it belongs to, so a training run, which is another
one, asks again: of the namespace, by version, never for "the latest" result. Names and values of a
spec are checked in `specs`, checks on data are in `factory.data`.
"""

from collections.abc import Iterator
from datetime import timedelta

from factory import discovery
from factory.control.clusters import cluster
from factory.control.code_identity import code_identity
from factory.control.resources import Factory
from factory.control.specs import check
from factory.data.check_form import OUTDATED, form
from factory.data.dataset import Dataset
from factory.data.mix import Mix, required_samples
from factory.data.steps import Step, steps
from factory.errors import FactoryError, GateRefused, NamespaceError
from factory.keys import Classification, PrivateKey, parse
from factory.namespace import Namespace, RunDirectory, Version
from factory.spec import Launch, RunSpec

SPLITS = ("train", "validation")
"""What a training run reads of a dataset, where it is declared. `test` is nobody's to train on."""

DAMAGE_SHOWN = 3

SUBMITTING = timedelta(hours=24)
"""How much longer than its two limits a launch may take to leave a run record."""


def gate(spec: RunSpec, *, run_id: str, factory: Factory) -> Launch:
    """Pin everything that the run reads.

    Raises:
        SpecError: the spec names something that does not exist.
        GateRefused: a dataset version does not hold what the run needs; all problems are listed.
    """
    check(spec)
    mix = discovery.mixes()[spec.mix]
    namespace = factory.namespace
    problems = _unreadable(mix)
    found = [(step, namespace.current(step.key)) for step in _read_steps(mix)]
    read = [(step, version) for step, version in found if version is not None]
    run = RunDirectory(_classification(mix), run_id, namespace.root)
    problems += [
        f"{step.key} is not materialized: nothing is current there."
        for step, version in found
        if version is None
    ]
    if gone := _not_pinned(run, [version for _, version in read], spec, namespace):
        raise GateRefused(_refusal(spec, [*problems, *gone]))
    for step, version in read:
        if version.manifest.partial and not factory.settings.allow_partial:
            problems.append(_partial(version))
        problems += _problems(step, version, namespace, required_samples(spec, step.split))
    if problems:
        namespace.unpin(run)
        raise GateRefused(_refusal(spec, problems))
    return Launch(
        run_id=run_id,
        attempt=1,
        classification=run.classification,
        spec=spec,
        profile=cluster(spec.cluster).profile,
        datasets={version.key.path: version.id for _, version in read},
        image=factory.settings.image,
        code=code_identity(),
    )


def _not_pinned(
    run: RunDirectory, versions: list[Version], spec: RunSpec, namespace: Namespace
) -> list[str]:
    """Keep the versions from `factory gc` before they are read; what of them is gone already."""
    hold = timedelta(hours=spec.queue_limit_hours + spec.run_limit_hours) + SUBMITTING
    try:
        if versions:
            namespace.pin(run, versions, hold)
    except NamespaceError as error:
        return [str(error)]
    return []


def _partial(version: Version) -> str:
    return (
        f"{version} is PARTIAL: it was made from a mirror that holds only some of the source. "
        "Point FACTORY_MIRRORS at a whole copy, or at none, and materialize it again."
    )


def _unreadable(mix: Mix) -> list[str]:
    return [
        f"{dataset.key} declares no split {SPLITS[0]!r}, which a run reads."
        for dataset in mix.datasets
        if SPLITS[0] not in dataset.split
    ]


def _read_steps(mix: Mix) -> Iterator[Step]:
    for dataset in mix.datasets:
        for step in steps(dataset):
            if step.kind == "energon" and step.split in SPLITS:
                yield step


def _classification(mix: Mix) -> Classification:
    private = any(isinstance(dataset.key, PrivateKey) for dataset in mix.datasets)
    return "private" if private else "public"


def _problems(step: Step, version: Version, namespace: Namespace, required: int) -> Iterator[str]:
    manifest = version.manifest
    if manifest.limit is not None:
        yield f"{version} was made from the first {manifest.limit:,} rows only."
    if damage := namespace.verify(version):
        shown = "; ".join(f"{one.path} {one.problem}" for one in damage[:DAMAGE_SHOWN])
        yield f"{version} is damaged: {shown}. `factory verify {step.key}` lists all."
    rows = manifest.rows or 0
    if rows < required:
        yield (
            f"{version} has {rows:,} samples; this run needs {required:,}, one for each rank and "
            "loader worker, or Energon silently leaves the dataset out."
        )
    declared = _declared_checks(step.dataset)
    yield from _unproven(version, namespace, declared)


def _unproven(
    version: Version, namespace: Namespace, declared: dict[str, dict[str, str]]
) -> Iterator[str]:
    """What checks leave open about a version and every version that it was made from."""
    records = namespace.checks(version)
    wrong = namespace.not_passed(version)
    listed = {one.split()[0] for one in wrong}
    forms = declared.get(version.manifest.key, {})
    wrong += [f"{name} (not run)" for name in sorted(forms.keys() - records.keys() - listed)]
    wrong += [
        f"{name} ({OUTDATED})"
        for name, record in records.items()
        if name not in listed and record.form != forms.get(name, record.form)
    ]
    for one in wrong:
        yield f"{version}: check {one}."
    for key, read in version.manifest.inputs.items():
        try:
            upstream = namespace.version(parse(key), read)
        except FactoryError as error:
            yield f"{version} was made from {key}@{read}, which is gone: {error}"
            continue
        yield from _unproven(upstream, namespace, declared)


def _declared_checks(dataset: Dataset) -> dict[str, dict[str, str]]:
    """The form of each check that blocks, by key and name."""
    return {
        step.key.path: {one.name: form(one) for one in step.checks if one.blocking}
        for step in steps(dataset)
    }


def _refusal(spec: RunSpec, problems: list[str]) -> str:
    unique = list(dict.fromkeys(problems))
    listed = "\n".join(f"- {problem}" for problem in unique)
    return (
        f"The mix {spec.mix!r} cannot be trained on:\n{listed}\n"
        "Materialize what is named (`factory materialize KEY`, or the UI), then launch again."
    )
