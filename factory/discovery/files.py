"""Files of the `definitions` package: which of them declare something, and importing them."""

import ast
import importlib
import importlib.util
import sys
import traceback
from collections.abc import Iterable, Iterator
from pathlib import Path
from types import ModuleType

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


def declaring_files(root: Path) -> Iterator[Path]:
    """The files below a folder that declare something, in the order of their paths."""
    for file in sorted(root.rglob("*.py")):
        parts = file.relative_to(root).parts
        if not any(part.startswith(("_", ".")) for part in parts):
            yield file


def refuse_hidden(root: Path, what: str) -> Iterator[DeclarationError]:
    """A declaration where nothing is looked for would be forgotten in silence."""
    for file in sorted(root.rglob("*.py")):
        path = str(file).removeprefix(
            str(root)
        )  # for a thousand files, parsing paths takes a while
        if "/_" not in path or "/." in path:
            continue
        try:
            tree = parsed(file)
        except DeclarationError as problem:
            yield problem
            continue
        for call in calls(_made_on_import(tree), what):
            yield DeclarationError(
                f"{shown(file)}, line {call.lineno}: {what}(...) declares nothing here, because a "
                "name in that path starts with '_', which marks helpers. Rename the file or the "
                "folder, or make it inside a function if it only helps others."
            )


def parsed(file: Path) -> ast.Module:
    """The syntax tree of a file, which is not imported.

    Raises:
        DeclarationError: it is no Python.
    """
    try:
        return ast.parse(file.read_bytes())
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        line = getattr(error, "lineno", None)
        where = "" if line is None else f", line {line}"
        what = getattr(error, "msg", None) or str(error) or type(error).__name__
        raise DeclarationError(
            f"{shown(file)}{where}: cannot be read as Python, so what it declares is unknown: "
            f"{what}. Mend it, or take the file away."
        ) from error


def calls(nodes: Iterable[ast.AST], name: str) -> Iterator[ast.Call]:
    """The calls of a function or class by that name."""
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


def load(file: Path, kind: str, folder: Path | None) -> ModuleType:
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
        raise type(problem)(f"{shown(file)}: {problem}") from problem
    except (Exception, SystemExit) as error:
        what = f"{type(error).__name__}: {error}{_where(error, file)}"
        raise DeclarationError(f"{shown(file)} cannot be imported: {what}") from error


def _load_from(file: Path, name: str) -> ModuleType:
    """Import a file that is not part of the installed `definitions`."""
    spec = importlib.util.spec_from_file_location(name, file)
    if spec is None or spec.loader is None:
        raise DeclarationError(f"{shown(file)} is not a Python file.")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[name]
        raise
    return module


def shown(file: Path) -> str:
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
