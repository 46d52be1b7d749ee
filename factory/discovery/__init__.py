"""Discovery: finds what is declared under `definitions/`.

A file under `definitions/datasets` declares the dataset whose key is the file's path; a file under
`definitions/mixes` the mix of its name. A name that starts with `_` marks a helper module, which
declares nothing. Recipes are read, never imported: they need the trainer.
"""

import ast
import json
from collections.abc import Iterable, Mapping
from pathlib import Path, PurePosixPath
from types import ModuleType

from factory.data.dataset import Dataset
from factory.data.mix import Mix
from factory.data.sources import LocalFiles, PartnerDrop
from factory.discovery.files import (
    calls,
    declaring_files,
    load,
    parsed,
    refuse_hidden,
    shown,
)
from factory.discovery.files import definitions_folder as definitions_folder
from factory.discovery.recipes import FIELDS as FIELDS
from factory.discovery.recipes import check_overrides as check_overrides
from factory.discovery.recipes import recipe_fields as recipe_fields
from factory.discovery.recipes import recipe_names as recipe_names
from factory.discovery.recipes import recipe_values as recipe_values
from factory.errors import ClassificationError, DeclarationError, FactoryError


def datasets(folder: Path | None = None) -> dict[str, Dataset]:
    """Every declared dataset by its key's path.

    Raises:
        ClassificationError: a public dataset reads something private.
        DeclarationError: a file cannot be imported, or declares something other than its path.
    """
    root = (folder or definitions_folder()) / "datasets"
    found: dict[str, Dataset] = {}
    problems: list[FactoryError] = [*refuse_hidden(root, "Dataset")]
    for file in declaring_files(root):
        path = file.relative_to(root).with_suffix("").as_posix()
        try:
            found[path] = _declared(load(file, "datasets", folder), path, file)
        except FactoryError as problem:
            problems.append(problem)
    if not problems:
        _refuse_shared_folders(found.values())
        _refuse_measured_sources(found.values())
        return found
    if len(problems) == 1:
        raise problems[0]
    listed = "\n\n".join(str(problem) for problem in problems)
    raise DeclarationError(f"{len(problems)} declarations cannot be used.\n\n{listed}")


def _refuse_shared_folders(declared: Iterable[Dataset]) -> None:
    """A folder below `FACTORY_DROPS` that one declaration calls private is private for all."""
    local = [one for one in declared if isinstance(one.source, LocalFiles | PartnerDrop)]
    private = [one for one in local if one.source.classification == "private"]
    for one in local:
        for other in private:
            mine, theirs = PurePosixPath(one.source.address), PurePosixPath(other.source.address)
            shared = mine == theirs or mine in theirs.parents or theirs in mine.parents
            if one.source.classification == "public" and shared:
                raise ClassificationError(
                    f"{one.key} reads the folder {mine} as public, and {other.key} reads {theirs} "
                    "as private, so both must be private.\n"
                    f'Write key=private("{one.key.name}") and classification="private".'
                )


def _refuse_measured_sources(declared: Iterable[Dataset]) -> None:
    """What a benchmark is made from is not trained on under another name."""
    known = list(declared)
    measured = {_read_by(one): one for one in known if one.role == "benchmark"}
    for one in known:
        other = measured.get(_read_by(one))
        if one.role != "benchmark" and other is not None:
            raise DeclarationError(
                f"{one.key} reads the same files as the benchmark {other.key}, so training on it "
                "would be training on the benchmark. Take one of them out."
            )


def _read_by(dataset: Dataset) -> str:
    source = dataset.source
    return (
        f"{type(source).__name__} {source.address} {json.dumps(source.parameters(), default=str)}"
    )


def mixes(folder: Path | None = None) -> dict[str, Mix]:
    """Every declared mix by its file's name.

    Raises:
        DeclarationError: a file cannot be imported, or declares no mix of its name, or several.
    """
    found: dict[str, Mix] = {}
    root = (folder or definitions_folder()) / "mixes"
    for problem in refuse_hidden(root, "Mix"):
        raise problem
    for file in declaring_files(root):
        name = file.relative_to(root).with_suffix("").as_posix()
        found[name] = _mix(vars(load(file, "mixes", folder)), file)
    for lock in sorted(root.rglob("*.lock")):
        if lock.relative_to(root).with_suffix("").as_posix() not in found:
            raise DeclarationError(
                f"{shown(lock)} locks a mix that is not declared, so no launch reads what it pins. "
                "Rename it with its mix, or remove it."
            )
    return found


def _mix(module: Mapping[str, object], file: Path) -> Mix:
    """The one mix that a file declares, which must have the file's name: launches go by it."""
    declared = {name: value for name, value in module.items() if isinstance(value, Mix)}
    number = len({id(value) for value in declared.values()})
    if number != 1:
        raise DeclarationError(
            f"{shown(file)} declares {number} mixes; a file declares the one mix of "
            f"its name. Write `{file.stem} = Mix(...)` once in it."
        )
    if file.stem not in declared:
        raise DeclarationError(
            f"{shown(file)} declares the mix {next(iter(declared))}, but a mix has its file's "
            f"name. Write `{file.stem} = Mix(...)`, or rename the file."
        )
    return declared[file.stem]


def job_names(folder: Path | None = None) -> frozenset[str] | None:
    """Names of the training jobs under `definitions/jobs`, found without importing one.

    None where a name is not spelled out: only Dagster, which takes seconds to load, knows then.

    Raises:
        DeclarationError: a file is no Python.
    """
    names: set[str] = set()
    for file in declaring_files((folder or definitions_folder()) / "jobs"):
        for call in calls(ast.walk(parsed(file)), "training_job"):
            name = next(
                (one.value for one in call.keywords if one.arg == "name"), (*call.args, None)[0]
            )
            if not isinstance(name, ast.Constant):
                return None
            names.add(str(name.value))
    return frozenset(names)


def _declared(module: ModuleType, path: str, file: Path) -> Dataset:
    """The one dataset that a file declares, which must be the one that its path names."""
    candidates = [value for value in vars(module).values() if isinstance(value, Dataset)]
    mine = list(
        {id(one): one for one in candidates if _is_from(one, file) or one.key.path == path}.values()
    )
    if not mine:
        raise DeclarationError(
            f"{shown(file)} declares no dataset. Write `{file.stem} = Dataset(key=..., ...)` "
            "in it, or start its name with '_' if it only helps others."
        )
    for dataset in mine:
        if dataset.key.path != path:
            classification, _, name = path.partition("/")
            raise DeclarationError(
                f"{shown(file)} declares the key {dataset.key}, but a file's path is its key. "
                f"Move it to definitions/datasets/{dataset.key}.py, "
                f'or write key={classification}("{name}").'
            )
    if len(mine) > 1:
        raise DeclarationError(
            f"{shown(file)} declares {path} {len(mine)} times. Keep one of them."
        )
    return mine[0]


def _is_from(dataset: Dataset, file: Path) -> bool:
    return dataset.declared_in == file
