"""The form of a check: one word for its code and its bounds, kept with every result.

A result says what a check found in the form that it had then. Where the form has changed since, the
result is outdated: `freshness` runs the check again and the gate of a run does not trust it.

The form is made of what this process has loaded, not of files: the byte code of the function, of
the functions and classes of ours that it names, and of the values that it was given. What it
imports while it runs (tables, indexes) is not followed, and neither are third-party packages: a
form says what is demanded, not with which tools that is found out. Doc strings do not count.
"""

import functools
import hashlib
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import fields, is_dataclass
from types import CodeType, FunctionType, MethodType
from typing import Any

from factory.data.checks import Check

OUTDATED = "checked by an older form of the check"

_SIMPLE = (str, bytes, int, float, complex, bool, type(None), type(...))
_METHODS = frozenset({"__call__", "__init__", "__post_init__"})
type Seen = dict[int, Any]
"""By identity; held, so that no identity is used twice."""

_ADDRESS = re.compile(r" at 0x[0-9a-f]+")


def form(check: Check) -> str:
    """The form of that check."""
    try:
        return _form(check)
    except TypeError:  # what it was given cannot be hashed
        return _form.__wrapped__(check)


@functools.lru_cache(maxsize=100_000)
def _form(check: Check) -> str:
    told = [check.name, repr(check.blocking), *_told(check.function, _home(check.function), {})]
    return hashlib.sha256("\n".join(told).encode(errors="backslashreplace")).hexdigest()[:20]


def _home(function: Any) -> str:
    """The package whose code counts beside that of the factory and of the definitions."""
    module = getattr(function, "__module__", None) or type(function).__module__
    return str(module).partition(".")[0]


def _told(value: Any, home: str, seen: Seen) -> Iterator[str]:
    """What a value says, line by line; of what was told already only that it comes again."""
    if isinstance(value, _SIMPLE):
        yield repr(value)
    elif isinstance(value, tuple | frozenset):
        yield from _values(value, home, seen)
    elif id(value) in seen:
        yield "again"
    else:
        seen[id(value)] = value
        yield from _parts(value, home, seen)


def _parts(value: Any, home: str, seen: Seen) -> Iterator[str]:
    match value:
        case FunctionType():
            yield from _function(value, home, seen)
        case MethodType():
            yield from _values((value.__func__, value.__self__), home, seen)
        case functools.partial():
            yield from _values((value.func, value.args, value.keywords), home, seen)
        case type():
            yield from _class(value, home, seen)
        case CodeType():
            yield from _code(value, home, seen, value.co_consts)
        case Mapping() | list() | set():
            yield from _values(value, home, seen)
        case _:
            yield from _object(value, home, seen)


def _values(values: Any, home: str, seen: Seen) -> Iterator[str]:
    """The members of a container; of a set in an order of their own."""
    kind = type(values).__name__
    items = getattr(values, "items", None)
    members: list[Any] = list(items() if items is not None else values)
    yield f"{kind} of {len(members)}"
    if isinstance(values, set | frozenset):
        yield from sorted("\n".join(_told(one, home, dict(seen))) for one in members)
    else:
        yield from _each(members, home, seen)


def _each(values: Iterable[Any], home: str, seen: Seen) -> Iterator[str]:
    for value in values:
        yield from _told(value, home, seen)


def _function(function: FunctionType, home: str, seen: Seen) -> Iterator[str]:
    yield function.__qualname__
    if not _is_ours(function, home):
        return
    code = function.__code__
    constants = code.co_consts
    if constants and constants[0] == function.__doc__:
        constants = constants[1:]
    yield from _code(code, home, seen, constants)
    yield from _told(function.__defaults__, home, seen)
    yield from _told(function.__kwdefaults__, home, seen)
    for cell in function.__closure__ or ():
        yield from _told(cell.cell_contents, home, seen)
    for name in sorted(_names(code)):
        if name in function.__globals__:
            yield from _named(name, function.__globals__[name], home, seen)


def _named(name: str, value: Any, home: str, seen: Seen) -> Iterator[str]:
    """What a module's name stands for: code, and constants; a cache or a counter is none."""
    if isinstance(value, FunctionType | type | re.Pattern) or (
        name.isupper() and isinstance(value, (*_SIMPLE, tuple, frozenset, dict, list, set))
    ):
        yield name
        yield from _told(value, home, seen)


def _code(code: CodeType, home: str, seen: Seen, constants: tuple[Any, ...]) -> Iterator[str]:
    yield code.co_code.hex()
    yield " ".join((*code.co_names, *code.co_varnames, *code.co_freevars))
    yield from _each(constants, home, seen)


def _names(code: CodeType) -> set[str]:
    inner = (_names(one) for one in code.co_consts if isinstance(one, CodeType))
    return set(code.co_names).union(*inner)


def _class(kind: type, home: str, seen: Seen) -> Iterator[str]:
    yield kind.__qualname__
    if not _is_ours(kind, home):
        return
    for name, member in sorted(vars(kind).items()):
        if name in _METHODS or not name.startswith("__"):
            value = getattr(member, "__func__", None) or getattr(member, "fget", None) or member
            if isinstance(value, (*_SIMPLE, FunctionType, tuple)):
                yield name
                yield from _told(value, home, seen)
    yield from _each(kind.__bases__, home, seen)


def _object(value: Any, home: str, seen: Seen) -> Iterator[str]:
    if is_dataclass(value):
        state = {one.name: getattr(value, one.name) for one in fields(value)}
    else:
        state = getattr(value, "__dict__", None)
    yield from _told(type(value), home, seen)
    if state is None:
        yield _ADDRESS.sub("", repr(value))
    else:
        yield from _told(state, home, seen)


def _is_ours(value: FunctionType | type, home: str) -> bool:
    return value.__module__.partition(".")[0] in {"factory", "definitions", home} - {"builtins"}
