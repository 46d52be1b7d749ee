"""Where the code refuses something, found by reading it: each place and what it says there."""

import ast
import importlib
import inspect
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from factory import errors
from tests.conftest import CHECKOUT

VALUE = "…"
"""Stands for what a message says of the input."""

ERRORS = {
    name
    for name, one in vars(errors).items()
    if inspect.isclass(one) and issubclass(one, errors.FactoryError)
}

PACKAGES = ("factory/data", "factory/namespace")
MODULES = (
    "factory/control/gates.py",
    "factory/discovery/__init__.py",
    "factory/discovery/files.py",
    "factory/keys.py",
)

OF_RUNS = ("SpecError",)
"""Errors that say nothing of data."""

AFTERWARDS = "factory/data/encoding/"
"""What a run makes of samples has refusals of its own."""


@dataclass(frozen=True)
class Site:
    """A place that refuses."""

    module: str
    first: int
    last: int
    error: str
    """The class; empty where a function makes the error."""

    text: str

    @property
    def shown(self) -> str:
        """Where it is and what it says."""
        return f"{self.module}:{self.first}: {self.text!r}"


def modules() -> list[str]:
    """Every module whose refusals have to be in the table."""
    found = [path for one in PACKAGES for path in (CHECKOUT / one).rglob("*.py")]
    names = [path.relative_to(CHECKOUT).as_posix() for path in found]
    return sorted([*(one for one in names if not one.startswith(AFTERWARDS)), *MODULES])


def sites(module: str) -> Iterator[Site]:
    """The places of a module that refuse with words of their own."""
    tree = ast.parse((CHECKOUT / module).read_bytes())
    raised = {id(one.exc) for one in ast.walk(tree) if isinstance(one, ast.Raise)}
    for call in ast.walk(tree):
        if not isinstance(call, ast.Call) or not call.args:
            continue
        name = getattr(call.func, "id", getattr(call.func, "attr", ""))
        error = name if name in ERRORS else ""
        marks = name == "bad" and isinstance(call.func, ast.Attribute)
        helps = id(call) in raised and not name[:1].isupper()
        if (error or marks or helps) and error not in OF_RUNS:
            texts = [_text(one, module) for one in call.args]
            said = " ".join(one for one in texts if one.strip(f"{VALUE} "))
            if said:
                yield Site(module, call.lineno, call.end_lineno or call.lineno, error, said)


def reasons(module: str) -> set[str]:
    """The texts that a module keeps as its constants."""
    values = vars(importlib.import_module(_dotted(module)))
    return {one for name, one in values.items() if name.isupper() and isinstance(one, str)}


def _text(node: ast.expr, module: str) -> str:
    match node:
        case ast.Constant(value=str(text)):
            return text
        case ast.JoinedStr(values=parts):
            return "".join(_text(one, module) for one in parts)
        case ast.BinOp(left=left, op=ast.Add(), right=right):
            return _text(left, module) + _text(right, module)
        case ast.Name(id=name) if name.isupper():
            return _constant(module, name)
        case ast.Attribute(value=ast.Name(id=owner), attr=name) if name.isupper():
            return _constant(module, f"{owner}.{name}")
        case _:
            return VALUE


def _constant(module: str, name: str) -> str:
    value: object = importlib.import_module(_dotted(module))
    for part in name.split("."):
        value = getattr(value, part, None)
    return value if isinstance(value, str) else VALUE


def _dotted(module: str) -> str:
    path = Path(module).with_suffix("")
    return ".".join(path.parts[:-1] if path.name == "__init__" else path.parts)
