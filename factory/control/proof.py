"""Proof: why a version may not be trained on, asked of the namespace, never of "the latest" result.

A blocking check stops only the Dagster run that it belongs to, so whoever trains on a version, or
locks a mix on it, asks again: of the version itself and of all that it was made from.
"""

import math
from collections.abc import Iterator

from factory.control.locking import TRAIN, Reading
from factory.data.check_form import OUTDATED, form
from factory.data.dataset import Dataset
from factory.data.mix import Mix, required_samples
from factory.data.steps import Step, steps
from factory.errors import FactoryError
from factory.keys import parse
from factory.namespace import Namespace, Version
from factory.spec import RunSpec

DAMAGE_SHOWN = 3


def unproven(
    found: Reading, spec: RunSpec, namespace: Namespace, *, allow_partial: bool
) -> Iterator[str]:
    """What stands against training on what a mix reads.

    That a mix has no benchmark is checked when it is declared. Once there are reports on how each
    version was held against the benchmarks, one that is missing, or red, is named here.
    """
    for step, version in found.versions:
        if version.manifest.partial and not allow_partial:
            yield (
                f"{version} is PARTIAL: it was made from a mirror that holds only some of the "
                "source. Point FACTORY_MIRRORS at a whole copy, or at none, and materialize it "
                "again."
            )
        required = required_samples(spec, step.split)
        if step.split == TRAIN and (cap := _cap(found.mix, step.dataset)) is not None:
            required = math.ceil(required / min(1.0, cap))
        yield from _problems(step, version, namespace, required)


def _cap(mix: Mix, dataset: Dataset) -> float | None:
    """How often its samples may be read."""
    return next(one.max_epochs for _, one in mix.entries if one.dataset is dataset)


def refusal(name: str, problems: list[str]) -> str:
    """All that stands against a mix, in one message."""
    listed = "\n".join(f"- {problem}" for problem in dict.fromkeys(problems))
    return (
        f"The mix {name!r} cannot be trained on:\n{listed}\n"
        "Materialize what is named (`factory materialize KEY`, or the UI), then launch again."
    )


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
            "loader worker, as often as its cap allows; else some would have nothing of it."
        )
    yield from _unchecked(version, namespace, _declared_checks(step.dataset))


def _unchecked(
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
        yield from _unchecked(upstream, namespace, declared)


def _declared_checks(dataset: Dataset) -> dict[str, dict[str, str]]:
    """The form of each check that blocks, by key and name."""
    return {
        step.key.path: {one.name: form(one) for one in step.checks if one.blocking}
        for step in steps(dataset)
    }
