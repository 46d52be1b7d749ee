"""Locking: what a mix reads now, and the lock that comes of it for a recipe.

`definitions/mixes/NAME.lock`, written by `factory mix lock NAME`, pins the versions that a launch
reads; without it a launch reads what is current. Whether versions may be trained on is in `proof`.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from factory import discovery
from factory.data.dataset import Dataset
from factory.data.mix import Mix
from factory.data.mixing.lock import MixLock
from factory.data.mixing.resolve import resolve, with_expectations
from factory.data.mixing.settings import DataSettings
from factory.data.steps import Step, steps
from factory.errors import NamespaceError
from factory.namespace import Namespace, Version
from factory.spec import RunSpec

TRAIN = "train"
SPLITS = (TRAIN, "validation")
"""What a training run reads of a dataset, where it is declared. `test` is nobody's to train on."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Reading:
    """What a run of a mix reads."""

    mix: Mix
    versions: list[tuple[Step, Version]]
    problems: list[str]
    """Why the mix cannot be read as it is."""

    pinned_by: str | None
    """The file that names the versions; None where they are the current ones."""


def lock_file(name: str) -> Path:
    """Where the versions of a mix are pinned."""
    return discovery.definitions_folder() / "mixes" / f"{name}.lock"


def kept_lock(name: str) -> MixLock | None:
    """The lock that pins the versions of a mix, if there is one.

    Raises:
        SpecError: the file is no lock.
    """
    file = lock_file(name)
    return MixLock.from_json(file.read_bytes(), _shown(name)) if file.is_file() else None


def reading(name: str, namespace: Namespace, kept: MixLock | None) -> Reading:
    """What the mix of that name reads: the versions of a lock, or the current ones."""
    mix = discovery.mixes()[name]
    problems = [
        f"{dataset.key} declares no split {TRAIN!r}, which a run reads."
        for dataset in mix.datasets
        if TRAIN not in dataset.split
    ]
    if kept is not None:
        problems += [
            f"{_shown(name)} pins another mix than is declared: {difference}. "
            f"`factory mix lock {name}` locks it again."
            for difference in differences(mix, kept)
        ]
    pins = {} if kept is None else {source.train: source.version for source in kept.sources}
    versions: list[tuple[Step, Version]] = []
    for step in _read_steps(mix.datasets):
        try:
            version = _version(step, namespace, pins)
        except NamespaceError as gone:
            problems.append(f"{_shown(name)} pins a version that is not there: {gone}")
            continue
        if version is None:
            problems.append(f"{step.key} is not materialized: nothing is current there.")
        else:
            versions.append((step, version))
    return Reading(
        mix=mix,
        versions=versions,
        problems=problems,
        pinned_by=None if kept is None else _shown(name),
    )


def settings_of(spec: RunSpec) -> DataSettings:
    """How the recipe of a spec reads a mix, with what the spec overrides.

    Raises:
        SpecError: an unknown recipe or override, or a recipe that reads no mix.
    """
    return DataSettings.of(spec.recipe, discovery.recipe_values(spec.recipe, spec.overrides))


def locked(spec: RunSpec, found: Reading, state: Path | None) -> MixLock:
    """The lock of what was found, for the recipe of a spec, with what to expect.

    Args:
        spec: of the run.
        found: what it reads; every version must be there.
        state: this machine's own files, where what was measured is kept.

    Raises:
        SpecError: the mix does not fit the recipe, or nothing of a dataset can be trained on.
        StepError: an entry of a dataset cannot be encoded.
    """
    settings = settings_of(spec)
    train = {version.key.path: version for step, version in found.versions if step.split == TRAIN}
    lock = resolve(spec.mix, found.mix, train, settings)
    folders = {source.key: train[source.train].path for source in lock.sources}
    return with_expectations(lock, folders, settings, state)


def differences(mix: Mix, lock: MixLock) -> Iterator[str]:
    """Where a declared mix is not the one that was locked."""
    if mix.basis != lock.basis:
        yield f"its basis is {lock.basis}, declared is {mix.basis}"
    declared = {one.dataset.key.path: (role, one) for role, one in mix.entries}
    kept = {source.key: source for source in lock.sources}
    for key in sorted(kept.keys() - declared.keys()):
        yield f"it has {key}, which is not declared"
    for key in sorted(declared.keys() - kept.keys()):
        yield f"it lacks {key}"
    if not kept.keys() ^ declared.keys() and list(kept) != list(declared):
        yield "its datasets are in another order"
    for key in sorted(kept.keys() & declared.keys()):
        role, one = declared[key]
        now: Mapping[str, object] = {
            "role": role,
            "weight": one.weight,
            "max_epochs": one.max_epochs,
            "max_share": one.max_share,
            "overflow": one.overflow,
        }
        for field, value in now.items():
            if getattr(kept[key], field) != value:
                yield f"{key} has the {field} {getattr(kept[key], field)}, declared is {value}"
    yield from _stage_differences(mix, lock)


def _stage_differences(mix: Mix, lock: MixLock) -> Iterator[str]:
    if len(mix.stages) != len(lock.stages):
        yield f"it has {len(lock.stages)} stages, declared are {len(mix.stages)}"
        return
    for declared, kept in zip(mix.stages, lock.stages, strict=True):
        if declared.from_step != kept.from_step:
            yield f"a stage begins at step {kept.from_step}, declared is {declared.from_step}"
        if declared.context is not None and declared.context != kept.context:
            yield (
                f"the stage from step {kept.from_step} has a context of {kept.context}, declared "
                f"is {declared.context}"
            )
        if mix.weights(declared) != kept.weights:
            yield f"the stage from step {kept.from_step} has other weights"


def _version(step: Step, namespace: Namespace, pins: Mapping[str, str]) -> Version | None:
    pinned = pins.get(step.key.path)
    return namespace.current(step.key) if pinned is None else namespace.version(step.key, pinned)


def _read_steps(datasets: tuple[Dataset, ...]) -> Iterator[Step]:
    for dataset in datasets:
        for step in steps(dataset):
            if step.kind == "energon" and step.split in SPLITS:
                yield step


def _shown(name: str) -> str:
    return f"definitions/mixes/{name}.lock"
