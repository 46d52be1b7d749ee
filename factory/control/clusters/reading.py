"""From files to clusters. An error names file, field and value, and says what to do.

Except values that could be a secret: those of `token` and `ca`, of fields that do not exist, and
anything that looks like one. A file with such a thing in it is refused before it is parsed.
"""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, cast

from pydantic import Field, TypeAdapter, ValidationError

from factory.control.clusters.common import Cluster
from factory.control.clusters.kubernetes import Kubernetes
from factory.control.clusters.local import Local
from factory.control.nearest import naming
from factory.errors import DeclarationError, SpecError
from factory.settings import CHECKOUT

FOLDER = CHECKOUT / "definitions" / "clusters"
KINDS = {"local": Local, "kubernetes": Kubernetes}

SCHEMA: TypeAdapter[Local | Kubernetes] = TypeAdapter(
    Annotated[Local | Kubernetes, Field(discriminator="kind")]
)
"""Every kind of cluster."""

_SECRET = re.compile(
    r"eyJ[\w-]{8,}\.[\w-]{8,}"  # a JSON web token, as Kubernetes issues
    r"|-----BEGIN [A-Z ]*PRIVATE KEY-----"
    r"|://[^/\s@]*@"  # an address with a user
)
_UNSAID = frozenset({"token", "ca", "environment", "rank_environment"})
_SHOWN_CHARACTERS = 80


def clusters(folder: Path = FOLDER) -> dict[str, Kubernetes | Local]:
    """Every declared cluster by name.

    Raises:
        DeclarationError: a file is not a cluster, or its name is not the file's.
    """
    read = (_read(path) for path in sorted(folder.glob("*.yaml")))
    return {cluster.name: cluster for cluster in read}


def cluster(name: str, folder: Path = FOLDER) -> Kubernetes | Local:
    """The cluster of that name.

    Raises:
        SpecError: no file declares it.
        DeclarationError: a file is not a cluster.
    """
    known = clusters(folder)
    if name not in known:
        raise SpecError(f"No cluster {name!r} in definitions/clusters. {naming(name, known)}")
    return known[name]


def _read(path: Path) -> Kubernetes | Local:
    where = f"definitions/clusters/{path.name}"
    content = _parsed(path, where)
    if not isinstance(content, dict):
        raise DeclarationError(f"{where} holds {type(content).__name__}, not fields of a cluster.")
    fields = cast("dict[str, Any]", content)
    kind = str(fields.get("kind"))
    if kind not in KINDS:
        said = f"is of kind {kind[:_SHOWN_CHARACTERS]!r}" if "kind" in fields else "has no `kind`"
        raise DeclarationError(f"{where} {said}; known kinds: {', '.join(sorted(KINDS))}.")
    try:
        result = KINDS[kind].model_validate(fields)
    except ValidationError as error:
        problems = [_problem(KINDS[kind], dict(one)) for one in error.errors()]
        raise DeclarationError(f"{where} is not a cluster: {'; '.join(problems)}.") from None
    if result.name != path.stem:
        raise DeclarationError(
            f"{where} names its cluster {result.name!r}. File and name must be the same word."
        )
    return result


def _parsed(path: Path, where: str) -> Any:
    import yaml

    text = path.read_text(encoding="utf-8")
    if found := _SECRET.search(text):
        line = text.count("\n", 0, found.start()) + 1
        raise DeclarationError(
            f"{where}, line {line}, holds what looks like a token, a key or a password, and this "
            "file is committed. Revoke it, and write where the token is read from: "
            "`token: {file: PATH}`."
        )
    try:
        return yaml.safe_load(text)
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else 1
        raise DeclarationError(f"{where}, line {line}, is not YAML: {error.problem}.") from None
    except yaml.YAMLError as error:
        raise DeclarationError(f"{where} is not YAML: {type(error).__name__}.") from None


def _problem(model: type[Cluster], error: dict[str, Any]) -> str:
    place = [part for part in error["loc"] if part != "[key]"]
    name = ".".join(map(str, place))
    if error["type"] == "extra_forbidden":
        return f"{name}: no such field. {naming(str(place[-1]), _fields(model, place[:-1]))}"[:-1]
    if error["type"] == "missing":
        return f"{name} is missing"
    said = str(error["msg"]).removeprefix("Value error, ").rstrip(".")
    value = error["input"]
    if not place or place[0] in _UNSAID or not isinstance(value, str | int | float):
        return f"{name}: {said}" if name else said
    return f"{name} is {str(value)[:_SHOWN_CHARACTERS]!r}: {said}"


def _fields(model: type[Cluster], place: Sequence[str | int]) -> list[str]:
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
