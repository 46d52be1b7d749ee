"""Steps: what a declaration becomes. Raw, clean, deduplicated, split, Energon for each split.

`steps` is cheap, so that a code location with a thousand datasets loads at once; `run_step` does
the work by handing it to `raw`, `clean`, `deduplicate`, `split` or `energon`. Checks on what a step
made are run by `free_checks.run_checks`; only a version that passed them is promoted, by the
caller.
"""

import hashlib
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from factory.data.checks import Check
from factory.data.code_version import code_version
from factory.data.dataset import Dataset
from factory.data.free_checks import free_checks
from factory.data.pattern import Pattern
from factory.data.progress import Say, silent
from factory.data.sample import canonical
from factory.data.sources import (
    Derived,
    Git,
    Http,
    HuggingFace,
    LocalFiles,
    PartnerDrop,
    PythonPackage,
)
from factory.data.stores import S3, Fsspec
from factory.keys import Key
from factory.settings import Settings

if TYPE_CHECKING:
    from factory.namespace import Namespace, Provenance, Version

SAMPLES_PER_SHARD = 1_000
"""Energon hands out whole shards to ranks, so a shard is small against any real dataset."""


@dataclass(frozen=True, slots=True)
class Step:
    """One asset: what it is called, reads and demands, and what decides its content."""

    dataset: Dataset
    name: str
    """`raw`, `clean`, `deduplicated`, `split` or `energon/<split>`."""

    key: Key
    inputs: tuple[Key, ...]
    checks: tuple[Check, ...]
    code_version: str
    description: str
    parameters: Mapping[str, Any]

    @property
    def kind(self) -> str:
        """The step's name without the split."""
        return self.name.partition("/")[0]

    @property
    def split(self) -> str:
        """The split that an `energon` step writes; empty for the others."""
        return self.name.partition("/")[2]


def steps(dataset: Dataset) -> tuple[Step, ...]:
    """The steps of a dataset, in the order in which they run."""
    about = describe(dataset)
    key = dataset.key
    made = [
        _step(dataset, "raw", dataset.source.inputs, f"{about} The files as published."),
        _step(dataset, "clean", (key / "raw",), f"{about} Cleaned samples; rejected rows beside."),
    ]
    if dataset.role == "benchmark":  # its items stay as they are, and nothing is trained on them
        return tuple(made)
    made += [
        _step(dataset, "deduplicated", (key / "clean",), f"{about} {_duplicates(dataset)}."),
        _step(dataset, "split", (key / "deduplicated",), f"{about} {_shares(dataset)}."),
    ]
    made += [
        _step(dataset, f"energon/{name}", (key / "split",), f"{about} Training-ready: {name}.")
        for name in dataset.split
    ]
    return tuple(made)


def describe(dataset: Dataset) -> str:
    """The declared description, or the docstring of the file that holds `clean`."""
    if dataset.description:
        return dataset.description
    module = sys.modules.get(dataset.clean.__module__)
    return ((module.__doc__ or "") if module is not None else "").strip()


def input_id(
    step: Step, inputs: "Mapping[Key, Version]", limit: int | None, source_state: str = ""
) -> str:
    """Hash of everything that decides what a step makes: with the same one, work can be skipped.

    `source_state` is what `raw.source_state` saw where nothing pins the source beforehand.
    """
    value = {
        "key": step.key.path,
        "code": step.code_version,
        "parameters": step.parameters,
        "inputs": {key.path: version.id for key, version in inputs.items()},
        "limit": limit if step.kind == "clean" else None,
        "source_state": source_state,
    }
    return hashlib.sha256(canonical(value)).hexdigest()


_MODULES = {
    "clean": ("factory.data.cleaning",),
    "deduplicated": ("factory.data.deduplicating",),
    "split": ("factory.data.dividing",),
    "energon": ("factory.data.preparing",),
}
"""What does the work of a step. `run`, which only carries things to and fro, is not among them."""

_FETCHERS: dict[type, str] = {
    PythonPackage: "factory.data.fetch.package",
    Git: "factory.data.fetch.git",
    HuggingFace: "factory.data.fetch.hub",
    Http: "factory.data.fetch.http",
    Fsspec: "factory.data.fetch.objects",
    S3: "factory.data.fetch.objects",
    LocalFiles: "factory.data.fetch.local",
    PartnerDrop: "factory.data.fetch.partner",
    Derived: "factory.data.fetch.derived",
}


def _step(dataset: Dataset, name: str, inputs: tuple[Key, ...], description: str) -> Step:
    kind, _, split = name.partition("/")
    key = dataset.key / kind / split if split else dataset.key / kind
    modules = _MODULES.get(kind) or ("factory.data.raw", _FETCHERS[type(dataset.source)])
    files: tuple[Path, ...] = ()
    if kind == "clean":
        files = (dataset.declared_in, _file_of(dataset.clean))
    declared = tuple(check for check in dataset.checks if check.step == kind)
    return Step(
        dataset=dataset,
        name=name,
        key=key,
        inputs=inputs,
        checks=free_checks(kind, dataset) + declared,
        code_version=code_version(dict.fromkeys(files), modules),
        description=description.strip(),
        parameters=_parameters(dataset, kind, split),
    )


def _parameters(dataset: Dataset, kind: str, split: str) -> dict[str, Any]:
    match kind:
        case "raw":
            return dict(dataset.source.parameters())
        case "clean":
            return {
                "rows": Pattern.parse(dataset.source.rows).rows.parameters(),
                "license": dataset.license,
                "max_errors": dataset.max_errors,
                "trained": dataset.loss.as_dict()["conversation"],
                "images": dataset.images.as_dict() if dataset.images is not None else None,
            }
        case "deduplicated":
            policy = dataset.deduplicate
            if policy is None:
                return {"deduplicate": None}
            compared = {"threshold": policy.threshold, "signatures": policy.fingerprint}
            return {"deduplicate": compared}
        case "split":
            return {"shares": dict(dataset.split)}
        case _:
            shards: dict[str, Any] = {"split": split, "samples_per_shard": SAMPLES_PER_SHARD}
            return shards | {"loss": dataset.loss.as_dict()}


def _file_of(function: Callable[..., Any]) -> Path:
    code = getattr(function, "__code__", None)
    if code is not None:
        return Path(code.co_filename)
    module = sys.modules[getattr(function, "__module__", "") or type(function).__module__]
    return Path(module.__file__ or "")


def _duplicates(dataset: Dataset) -> str:
    if dataset.deduplicate is None:
        return "Every cleaned sample: deduplication is declared off"
    return "Without duplicates; what was removed beside"


def _shares(dataset: Dataset) -> str:
    return ", ".join(f"{name} {share:.0%}" for name, share in dataset.split.items())


@dataclass(frozen=True, slots=True)
class StepResult:
    """What running a step gave."""

    version: "Version"
    reused: bool
    """Whether a version with the same input id was there already, so nothing was done."""


def run_step(  # noqa: PLR0913  the first three say what, the rest under which circumstances
    step: Step,
    namespace: "Namespace",
    inputs: "Mapping[Key, Version]",
    *,
    settings: Settings,
    provenance: "Provenance",
    limit: int | None = None,
    engine: str = "local",
    progress: Say = silent,
) -> StepResult:
    """Make the version of a step from these input versions, or find the one that is there.

    The version is published, not current: run its checks, then promote it. `engine` says what does
    the work, and has no say in the result (`factory.data.engines`).

    Raises:
        BadFile: a source file cannot be parsed.
        SourceError: the source cannot be fetched, or is not what was declared.
        StepError: the step cannot finish with what it was given.
        NamespaceError: the namespace refuses the write.
    """
    from factory.data.run import Work

    work = Work(step, namespace, dict(inputs), settings, provenance, limit, progress, engine)
    return work.do()
