"""Formulae: MathML written on one line, as a person would type it: `x_i^2`, `(a + b)/c`.

Formulae that are only a picture have no text at all; `jats` says `[formula]` for them.
"""

# ruff: noqa: RUF001  articles have dashes and signs that look like others

import re
from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from factory.data.row import Element

_SCRIPTS = {
    "msub": ("_",),
    "msup": ("^",),
    "msubsup": ("_", "^"),
    "munder": ("_",),
    "mover": ("^",),
    "munderover": ("_", "^"),
}
_ACCENTS = {"¯": "bar", "‾": "bar", "^": "hat", "ˆ": "hat", "~": "tilde", "˜": "tilde", "→": "vec"}
_SPACED = re.compile(r"[=<>≤≥≈≠≡∝∼→←↔⇒+±∑∏∫∈∪∩]|−|-")


def linear(element: "Element") -> str:
    """A formula as one line of text."""
    return " ".join(_written(element).split())


def _written(element: "Element") -> str:
    name = _name(element)
    children = _elements(element)
    if name in _SCRIPTS and len(children) == len(_SCRIPTS[name]) + 1:
        return _scripts(name, children)
    if name == "mfrac" and len(children) == len(("numerator", "denominator")):
        return f"{_grouped(children[0])}/{_grouped(children[1])}"
    writer = _WRITERS.get(name)
    if writer is not None:
        return writer(element)
    return "".join(map(_written, children)) if children else _symbol(element)


def _symbol(element: "Element") -> str:
    text = re.sub(r"\s+", " ", element.text or "")
    if _name(element) == "mtext":
        return text  # words between symbols: their spaces count
    text = text.strip()
    return f" {text} " if _name(element) == "mo" and _SPACED.fullmatch(text) else text


def _root(element: "Element") -> str:
    children = _elements(element)
    radicand = children[:1] if _name(element) == "mroot" else children
    return f"sqrt({''.join(map(_written, radicand))})"


def _cells(element: "Element") -> str:
    cells = (_written(child).strip() for child in _elements(element))
    return ("; " if _name(element) == "mtable" else ", ").join(cell for cell in cells if cell)


def _space(element: "Element") -> str:
    return " "


def _nothing(element: "Element") -> str:
    return ""


def _fenced(element: "Element") -> str:
    """In brackets, which are attributes here, as is what stands between the parts."""
    separator = element.get("separators", ",").strip()[:1]
    between = f"{separator} " if separator else ""
    inner = between.join(map(_written, _elements(element)))
    return f"{element.get('open', '(')}{inner}{element.get('close', ')')}"


def _scripts(name: str, children: "list[Element]") -> str:
    base, *scripts = children
    mark = _written(scripts[-1]).strip()
    if name == "mover" and mark in _ACCENTS:
        return f"{_ACCENTS[mark]}({_written(base).strip()})"
    written = [f"{sign}{_grouped(one)}" for sign, one in zip(_SCRIPTS[name], scripts, strict=True)]
    return _written(base).rstrip() + "".join(part for part in written if len(part) > 1)


def _grouped(element: "Element") -> str:
    """In brackets where more than one symbol belongs together."""
    text = " ".join(_written(element).split())
    return text if re.fullmatch(r"[^\W_]*|\W", text) else f"({text})"


def _name(element: "Element") -> str:
    return str(element.tag).rpartition("}")[2]


def _elements(parent: "Element") -> "list[Element]":
    """Children without comments and instructions, whose tag is no text."""
    return [child for child in parent if _has_name(child.tag)]


def _has_name(tag: object) -> bool:
    return isinstance(tag, str)


_WRITERS: "dict[str, Callable[[Element], str]]" = {
    "msqrt": _root,
    "mroot": _root,
    "mfenced": _fenced,
    "mtable": _cells,
    "mtr": _cells,
    "mspace": _space,
    "annotation": _nothing,
    "annotation-xml": _nothing,
}
