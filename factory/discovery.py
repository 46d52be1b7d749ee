"""Discovery: finds what is declared under `definitions/`.

A file under `definitions/datasets` declares the dataset whose key is the file's path; a file under
`definitions/mixes` the mix of its name. A name that starts with `_` marks a helper module, which
declares nothing. Recipes are read, never imported: they need the trainer.
"""

import ast
import importlib
import importlib.util
import json
import sys
import traceback
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from pathlib import Path, PurePosixPath
from types import ModuleType

from pydantic import TypeAdapter

from factory.data.dataset import Dataset
from factory.data.mix import Mix
from factory.data.sources import LocalFiles, PartnerDrop
from factory.errors import ClassificationError, DeclarationError, FactoryError, SpecError
from factory.overrides import Field, Value, parse_all

RECIPES = Path(__file__).parent / "training" / "recipes"
FIELDS = RECIPES / "fields.json"
"""Written by `python -m factory.training.recipes.fields`."""


def definitions_folder() -> Path:
    """The folder of the `definitions` package that this process imports."""
    spec = importlib.util.find_spec("definitions")
    locations = spec.submodule_search_locations if spec is not None else None
    for location in locations or ():
        return Path(location)
    raise DeclarationError(
        "The package 'definitions' cannot be imported, so nothing is declared. "
        "Install the project: `make` does it."
    )


def datasets(folder: Path | None = None) -> dict[str, Dataset]:
    """Every declared dataset by its key's path.

    Raises:
        ClassificationError: a public dataset reads something private.
        DeclarationError: a file cannot be imported, or declares something other than its path.
    """
    root = (folder or definitions_folder()) / "datasets"
    found: dict[str, Dataset] = {}
    problems: list[FactoryError] = [*_refuse_hidden(root, "Dataset")]
    for file in _declaring_files(root):
        path = file.relative_to(root).with_suffix("").as_posix()
        try:
            found[path] = _declared(_load(file, "datasets", folder), path, file)
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
    for problem in _refuse_hidden(root, "Mix"):
        raise problem
    for file in _declaring_files(root):
        name = file.relative_to(root).with_suffix("").as_posix()
        found[name] = _mix(vars(_load(file, "mixes", folder)), file)
    return found


def _mix(module: Mapping[str, object], file: Path) -> Mix:
    """The one mix that a file declares, which must have the file's name: launches go by it."""
    declared = {name: value for name, value in module.items() if isinstance(value, Mix)}
    number = len({id(value) for value in declared.values()})
    if number != 1:
        raise DeclarationError(
            f"{_shown(file)} declares {number} mixes; a file declares the one mix of "
            f"its name. Write `{file.stem} = Mix(...)` once in it."
        )
    if file.stem not in declared:
        raise DeclarationError(
            f"{_shown(file)} declares the mix {next(iter(declared))}, but a mix has its file's "
            f"name. Write `{file.stem} = Mix(...)`, or rename the file."
        )
    return declared[file.stem]


def recipe_names() -> list[str]:
    """Every recipe as `module.function`, found without importing one."""
    return [
        f"{file.stem}.{node.name}"
        for file in sorted(RECIPES.glob("*.py"))
        if file.stem not in ("__init__", "fields") and not file.stem.startswith("_")
        for node in ast.parse(file.read_text(encoding="utf-8")).body
        if isinstance(node, ast.FunctionDef) and not node.name.startswith("_")
    ]


def recipe_fields(recipe: str) -> Mapping[str, Field]:
    """The fields of a recipe that a run may override, by path.

    Raises:
        SpecError: there is no such recipe, or its fields have not been listed.
    """
    if recipe not in recipe_names():
        raise SpecError(f"No recipe {recipe!r}. Known: {', '.join(recipe_names())}.")
    listed = _listed_fields()
    if recipe not in listed:
        raise SpecError(
            f"The fields of {recipe} are not listed in {FIELDS.name}. "
            "Run `python -m factory.training.recipes.fields` and commit the file."
        )
    return listed[recipe]


def check_overrides(recipe: str, overrides: Mapping[str, str]) -> dict[str, Value]:
    """The overrides of a run as values.

    Raises:
        SpecError: an unknown recipe or path, or a value that its field cannot have.
    """
    return parse_all(recipe, overrides, recipe_fields(recipe))


def recipe_values(recipe: str, overrides: Mapping[str, str]) -> dict[str, Value]:
    """The value of every field of a recipe that a run may override, as a run has it.

    Raises:
        SpecError: an unknown recipe or path, or a value that its field cannot have.
    """
    values = {path: field.default for path, field in recipe_fields(recipe).items()}
    return values | check_overrides(recipe, overrides)


@cache
def _listed_fields() -> dict[str, dict[str, Field]]:
    if not FIELDS.is_file():
        return {}
    return TypeAdapter(dict[str, dict[str, Field]]).validate_json(FIELDS.read_bytes())


def job_names(folder: Path | None = None) -> frozenset[str] | None:
    """Names of the training jobs under `definitions/jobs`, found without importing one.

    None where a name is not spelled out: only Dagster, which takes seconds to load, knows then.
    """
    names: set[str] = set()
    for file in _declaring_files((folder or definitions_folder()) / "jobs"):
        for call in _calls(ast.walk(ast.parse(file.read_bytes())), "training_job"):
            name = next(
                (one.value for one in call.keywords if one.arg == "name"), (*call.args, None)[0]
            )
            if not isinstance(name, ast.Constant):
                return None
            names.add(str(name.value))
    return frozenset(names)


def _declaring_files(root: Path) -> Iterator[Path]:
    for file in sorted(root.rglob("*.py")):
        parts = file.relative_to(root).parts
        if not any(part.startswith(("_", ".")) for part in parts):
            yield file


def _refuse_hidden(root: Path, what: str) -> Iterator[DeclarationError]:
    """A declaration where nothing is looked for would be forgotten in silence."""
    for file in sorted(root.rglob("*.py")):
        path = str(file).removeprefix(
            str(root)
        )  # for a thousand files, parsing paths takes a while
        if "/_" not in path or "/." in path:
            continue
        for call in _calls(_made_on_import(ast.parse(file.read_bytes())), what):
            yield DeclarationError(
                f"{_shown(file)}, line {call.lineno}: {what}(...) declares nothing here, because a "
                "name in that path starts with '_', which marks helpers. Rename the file or the "
                "folder, or make it inside a function if it only helps others."
            )


def _calls(nodes: Iterable[ast.AST], name: str) -> Iterator[ast.Call]:
    for node in nodes:
        if isinstance(node, ast.Call):
            function = node.func
            called = function.attr if isinstance(function, ast.Attribute) else function
            if name == (called.id if isinstance(called, ast.Name) else called):
                yield node


def _made_on_import(tree: ast.AST) -> Iterator[ast.AST]:
    """The nodes of a module that are executed when it is imported."""
    for node in ast.iter_child_nodes(tree):
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            yield node
            yield from _made_on_import(node)


def _load(file: Path, kind: str, folder: Path | None) -> ModuleType:
    """Import a declaring file; an error names the file and the line in it that failed."""
    root = definitions_folder() if folder is None else folder
    relative = file.relative_to(root).with_suffix("")
    name = ".".join(
        ["definitions" if folder is None else f"_{kind}_in_{id(folder)}", *relative.parts]
    )
    try:
        if folder is None:
            return importlib.import_module(name)
        return _load_from(file, name)
    except FactoryError as problem:
        raise type(problem)(f"{_shown(file)}: {problem}") from problem
    except (Exception, SystemExit) as error:
        what = f"{type(error).__name__}: {error}{_where(error, file)}"
        raise DeclarationError(f"{_shown(file)} cannot be imported: {what}") from error


def _load_from(file: Path, name: str) -> ModuleType:
    """Import a file that is not part of the installed `definitions`."""
    spec = importlib.util.spec_from_file_location(name, file)
    if spec is None or spec.loader is None:
        raise DeclarationError(f"{_shown(file)} is not a Python file.")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[name]
        raise
    return module


def _declared(module: ModuleType, path: str, file: Path) -> Dataset:
    """The one dataset that a file declares, which must be the one that its path names."""
    candidates = [value for value in vars(module).values() if isinstance(value, Dataset)]
    mine = list(
        {id(one): one for one in candidates if _is_from(one, file) or one.key.path == path}.values()
    )
    if not mine:
        raise DeclarationError(
            f"{_shown(file)} declares no dataset. Write `{file.stem} = Dataset(key=..., ...)` "
            "in it, or start its name with '_' if it only helps others."
        )
    for dataset in mine:
        if dataset.key.path != path:
            classification, _, name = path.partition("/")
            raise DeclarationError(
                f"{_shown(file)} declares the key {dataset.key}, but a file's path is its key. "
                f"Move it to definitions/datasets/{dataset.key}.py, "
                f'or write key={classification}("{name}").'
            )
    if len(mine) > 1:
        raise DeclarationError(
            f"{_shown(file)} declares {path} {len(mine)} times. Keep one of them."
        )
    return mine[0]


def _is_from(dataset: Dataset, file: Path) -> bool:
    return dataset.declared_in == file


def _shown(file: Path) -> str:
    """The path as a person in the checkout would type it, where it is inside one."""
    for parent in file.parents:
        if parent.name == "definitions":
            return file.relative_to(parent.parent).as_posix()
    return str(file)


def _where(error: BaseException, file: Path) -> str:
    """The lines of the traceback that are in the declaring file."""
    frames = [
        frame for frame in traceback.extract_tb(error.__traceback__) if frame.filename == str(file)
    ]
    return "".join(f"\n  line {frame.lineno}: {frame.line}" for frame in frames)
