"""Discovery: finds what is declared under `definitions/`.

A file under `definitions/datasets` declares the dataset whose key is the file's path. A name that
starts with `_` marks a helper module, which declares nothing.
"""

import importlib
import importlib.util
import sys
import traceback
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

from factory.data.dataset import Dataset
from factory.errors import DeclarationError, FactoryError


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
    problems: list[FactoryError] = []
    for file in _declaring_files(root):
        path = file.relative_to(root).with_suffix("").as_posix()
        try:
            found[path] = _declared(_load(file, "datasets", folder), path, file)
        except FactoryError as problem:
            problems.append(problem)
    if not problems:
        return found
    if len(problems) == 1:
        raise problems[0]
    listed = "\n\n".join(str(problem) for problem in problems)
    raise DeclarationError(f"{len(problems)} declarations cannot be used.\n\n{listed}")


def _declaring_files(root: Path) -> Iterator[Path]:
    for file in sorted(root.rglob("*.py")):
        parts = file.relative_to(root).parts
        if not any(part.startswith(("_", ".")) for part in parts):
            yield file


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
    except Exception as error:
        raise DeclarationError(
            f"{_shown(file)} cannot be imported: {type(error).__name__}: {error}{_where(error, file)}"
        ) from error


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
