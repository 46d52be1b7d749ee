"""From the text of a YAML file to fields: each key once, each value one that there is.

YAML alone lets the last of two keys win, and fails with the errors of whatever type it takes a
value for.
"""

import re
from typing import Any

from factory.control.clusters.secrecy import LOOKS_SECRET
from factory.errors import DeclarationError

UNSAID = frozenset({"token", "ca", "environment", "rank_environment"})
"""Fields whose values stay out of errors, for one may be a secret."""

_SHOWN_CHARACTERS = 80
_NAMED_BY_YAML = re.compile(r"\b(alias|anchor|handle|tag) (?:'[^']*'|\"[^\"]*\")")
_KINDS = {"int": "a number", "float": "a number", "bool": "yes or no", "timestamp": "a date"}


def shown(value: object) -> str:
    """A value as an error says it: of one line, not endless, and nothing behind a question mark."""
    try:
        text = str(value)
    except ValueError:  # Python writes no integers of more than 4,300 digits
        return "a number of thousands of digits"
    address, mark, _ = text.partition("?")
    return repr((f"{address}?..." if "://" in address and mark else text)[:_SHOWN_CHARACTERS])


def named(place: tuple[Any, ...] | list[Any]) -> str:
    """A field by the names that lead to it."""
    words = (str(part) if str(part).isprintable() else shown(part) for part in place)
    return ".".join(word[:_SHOWN_CHARACTERS] for word in words)


def fields(text: str, where: str) -> Any:
    """What the text of a file holds.

    Raises:
        DeclarationError: it looks as if it held a secret, or is no YAML, or has a field twice, or
            a value that is none; `where` names the file.
    """
    if found := LOOKS_SECRET.search(text):
        raise DeclarationError(
            f"{where}, line {_line(text, found.start())}, holds what looks like a token, a key or "
            "a password, and this file is committed. Revoke it, and write where the token is read "
            "from: `token: {file: PATH}`."
        )
    try:
        return _constructed(text, where)
    except RecursionError:
        raise DeclarationError(
            f"{where} has hundreds of lists or mappings in each other, and a cluster has six. Is "
            "it the right file?"
        ) from None


def _constructed(text: str, where: str) -> Any:
    import yaml
    from yaml.reader import ReaderError

    try:
        loader = yaml.SafeLoader(text)
        node = loader.get_single_node()
        if node is None:
            return None
        _Look(loader, where).at(node, ())
        return loader.construct_document(node)
    except ReaderError as error:
        line = _line(text, error.position)
        raise DeclarationError(
            f"{where}, line {line}, holds a character that no text has (number "
            f"{error.character}). Remove it."
        ) from None
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else 1
        raise DeclarationError(f"{where}, line {line}, is not YAML: {_said(error)}.") from None


class _Look:
    """Goes through everything in a file once, before anything is made of it."""

    def __init__(self, loader: Any, where: str) -> None:
        self._loader = loader
        self._where = where
        self._seen: set[int] = set()

    def at(self, node: Any, place: tuple[str, ...]) -> None:
        """Look at a node and at those below it.

        Raises:
            DeclarationError: a field is there twice, or a value is none.
        """
        if id(node) in self._seen:  # an alias: of what was seen, or of what it lies in
            return
        self._seen.add(id(node))
        if node.id == "scalar" and not _is_merge(node):
            self._scalar(node, place)
        elif node.id == "sequence":
            for number, one in enumerate(node.value):
                self.at(one, (*place, str(number)))
        elif node.id == "mapping":
            self._mapping(node, place)

    def _mapping(self, node: Any, place: tuple[str, ...]) -> None:
        lines: dict[str, int] = {}
        for key, value in node.value:
            self.at(key, place)
            name = key.value if key.id == "scalar" else "?"
            line = key.start_mark.line + 1
            if name in lines and key.id == "scalar" and not _is_merge(key):
                raise DeclarationError(
                    f"{self._where}, line {line}: {named([*place, name])} is there already, in "
                    f"line {lines[name]}, and only one of the two would hold. Remove one."
                )
            lines[name] = line
            self.at(value, (*place, name))

    def _scalar(self, node: Any, place: tuple[str, ...]) -> None:
        try:
            self._loader.construct_object(node)
        except (ValueError, LookupError, AttributeError, OverflowError):
            kind = _KINDS.get(node.tag.rpartition(":")[2], "a value")
            what = named(place) or "a value"
            said = "" if set(place[:1]) & UNSAID else f" {shown(node.value)},"
            raise DeclarationError(
                f"{self._where}, line {node.start_mark.line + 1}: {what} is{said} taken for "
                f"{kind}, which it is not. Put it in quotes, or correct it."
            ) from None


def _is_merge(key: Any) -> bool:
    """Whether it is `<<`, which brings in the fields of another mapping."""
    return key.tag.endswith(":merge")


def _said(error: Any) -> str:
    """What YAML says is wrong, without names from the file: a password may begin with ! or *."""
    from yaml.composer import ComposerError

    of_document = error.context if isinstance(error, ComposerError) else None
    said = ", ".join(filter(None, (of_document, error.problem)))
    return _NAMED_BY_YAML.sub(r"\1", said)


def _line(text: str, position: int) -> int:
    return text.count("\n", 0, position) + 1
