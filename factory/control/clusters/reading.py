"""From files to clusters. An error names file, field and value, and says what to do.

Except values that could be a secret: those of `token` and `ca`, of fields that do not exist, and
anything that looks like one. A wrong file stops what is about its own cluster, and nothing else.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Annotated, Any, cast

from pydantic import Field, TypeAdapter, ValidationError

from factory.control.clusters.common import Cluster
from factory.control.clusters.fields import UNSAID, fields, named, shown
from factory.control.clusters.kubernetes import Kubernetes
from factory.control.clusters.local import Local
from factory.control.clusters.plain import what_it_holds, what_to_write
from factory.control.nearest import naming
from factory.errors import DeclarationError, SpecError
from factory.settings import CHECKOUT

FOLDER = CHECKOUT / "definitions" / "clusters"
KINDS = {"local": Local, "kubernetes": Kubernetes}

SCHEMA: TypeAdapter[Local | Kubernetes] = TypeAdapter(
    Annotated[Local | Kubernetes, Field(discriminator="kind")]
)
"""Every kind of cluster."""

_SUFFIX = ".yaml"
_FOR_TEXTS = frozenset({"string_type", "invalid_key"})


@dataclass(frozen=True)
class Declared:
    """What the files of a folder declare, and what is wrong with those that declare nothing."""

    clusters: dict[str, Kubernetes | Local]
    wrong: dict[str, str]


def declared(folder: Path = FOLDER) -> Declared:
    """Every declared cluster by name, and the problem of every other file."""
    found = Declared({}, {})
    for path in _files(folder):
        name = path.stem if path.suffix == _SUFFIX else path.name
        try:
            found.clusters[name] = _read(path)
        except DeclarationError as error:
            found.wrong[name] = str(error)
    return found


def cluster(name: str, folder: Path = FOLDER) -> Kubernetes | Local:
    """The cluster of that name; no other file is read.

    Raises:
        SpecError: no file declares it.
        DeclarationError: its file is not a cluster.
    """
    files = {path.name: path for path in _files(folder)}
    other = (path for path in files.values() if path.stem == name)
    found = files.get(f"{name}{_SUFFIX}") or next(other, None)
    if found is None:
        known = {path.stem for path in files.values()}
        raise SpecError(f"No cluster {shown(name)} in definitions/clusters. {naming(name, known)}")
    return _read(found)


def _files(folder: Path) -> list[Path]:
    """Files that are meant as clusters; what begins with a dot is an editor's."""
    return sorted(
        path for path in folder.glob("[!.]*.*") if path.suffix.lower() in (_SUFFIX, ".yml")
    )


def _read(path: Path) -> Kubernetes | Local:
    where = f"definitions/clusters/{named([path.name])}"
    if path.suffix != _SUFFIX:
        raise DeclarationError(f"{where} is not read: rename it to {path.stem}{_SUFFIX}.")
    content = fields(_text(path, where), where)
    if not isinstance(content, dict):
        raise DeclarationError(f"{where} holds {what_it_holds(content)}, not fields of a cluster.")
    given = cast("dict[str, Any]", content)
    kind = str(given.get("kind"))
    if kind not in KINDS:
        said = f"is of kind {shown(kind)}" if "kind" in given else "has no `kind`"
        raise DeclarationError(f"{where} {said}; known kinds: {', '.join(sorted(KINDS))}.")
    try:
        result = KINDS[kind].model_validate(given)
    except ValidationError as error:
        problems = [_problem(KINDS[kind], dict(one)) for one in error.errors()]
        raise DeclarationError(f"{where} is not a cluster: {'; '.join(problems)}.") from None
    if result.name != path.stem:
        raise DeclarationError(
            f"{where} names its cluster {shown(result.name)}. File and name must be the same word."
        )
    return result


def _text(path: Path, where: str) -> str:
    """What is in a file.

    Raises:
        DeclarationError: it is none that can be read, or its text is not UTF-8.
    """
    try:
        if path.exists() and not path.is_file():  # reading a pipe would wait for ever
            raise DeclarationError(f"{where} is no file. Remove it, or give it another ending.")
        return path.read_bytes().decode("utf-8-sig")
    except OSError as error:
        raise DeclarationError(
            f"{where} cannot be read: {error.strerror}. Write it anew, or remove it."
        ) from None
    except UnicodeDecodeError as error:
        line = error.object.count(b"\n", 0, error.start) + 1
        raise DeclarationError(
            f"{where}, line {line}, is not UTF-8. Save the file as UTF-8, which editors offer."
        ) from None


def _problem(model: type[Cluster], error: dict[str, Any]) -> str:
    place = [part for part in error["loc"] if part != "[key]"]
    name = named(place)
    if error["type"] == "extra_forbidden":
        return f"{name}: no such field. {naming(str(place[-1]), _known(model, place[:-1]))}"[:-1]
    if error["type"] == "missing":
        return f"{name} is missing"
    said, value = what_to_write(error), error["input"]
    if error["type"] in _FOR_TEXTS and isinstance(value, int | float | date):
        said = "put it in quotes"
    if not place or place[0] in UNSAID or not isinstance(value, str | int | float | date):
        return f"{name}: {said}" if name else said
    return f"{name} is {shown(value)}: {said}"


def _known(model: type[Cluster], place: Sequence[str | int]) -> list[str]:
    """The fields that there are at a place of the file."""
    schema: Any = model.model_json_schema()
    here: Any = schema
    for part in place:
        node = _resolved(schema, here)
        inner = node.get("properties", {}).get(part) or node.get("items")
        here = inner or node.get("additionalProperties") or {}
    return sorted(_resolved(schema, here).get("properties", {}))


def _resolved(schema: Any, node: Any) -> Any:
    """What a node of a schema refers to."""
    for option in node.get("anyOf", ()):
        if "$ref" in option:
            node = option
    while "$ref" in node:
        node = schema["$defs"][node["$ref"].rpartition("/")[2]]
    return node
