"""Valid submissions with one thing broken: in the cluster's file, in the spec, in what is pinned.

What is broken is in `wrong_files` and `wrong_launches`. Each is handed in as `factory manifest
--server` hands in a launch, and the server that it would reach notes who comes.
"""

from collections.abc import Callable, Sequence
from copy import deepcopy
from dataclasses import dataclass, replace
from pathlib import Path
from random import Random
from typing import Any

import yaml

from factory.control.clusters import Kubernetes, cluster
from factory.control.kube.api import Api, Patience
from factory.control.kube.preview import Preview, validate
from factory.control.kube.rayjob import rayjob
from factory.control.kube.submission import Submission
from factory.control.specs import parsed
from factory.errors import DeclarationError, SpecError

type Fields = dict[str, Any]
type OfFile = Callable[[Random, Fields], Any]
type OfSpec = Callable[[Random], Fields]
type OfSubmission = Callable[[Random, Submission], Submission]


@dataclass(frozen=True)
class Wrong:
    """What is broken, and what the factory says of it."""

    kind: str
    says: str
    file: OfFile | None = None
    spec: OfSpec | None = None
    submission: OfSubmission | None = None


@dataclass(frozen=True)
class Tried:
    """How often it was tried, and what became of it."""

    kind: str
    tried: int
    refused: int
    asked: int


class Asked(Exception):
    """Somebody came to the server."""


class Untouched(Api):
    """A server that nobody should come to."""

    def __init__(self, where: Kubernetes) -> None:
        super().__init__(where.name, "https://untouched.test", None, _NoTokens(), Patience())

    def ask(self, method: str, path: str, *_: Any, **__: Any) -> bytes:
        raise Asked(f"{method} {path}")


class _NoTokens:
    def token(self) -> str:
        return ""

    def renew(self) -> None:
        return None


def hand_in(one: Wrong, random: Random, valid: tuple[Fields, Submission], folder: Path) -> None:
    """Break a valid submission and hand it in.

    Raises:
        DeclarationError: its cluster is none.
        SpecError: it cannot be run there.
        Asked: the factory did not notice.
    """
    fields, chosen = deepcopy(valid)
    if one.file is not None:
        one.file(random, fields)
    chosen = replace(chosen, cluster=_declared(fields, folder))
    if one.spec is not None:
        spec = parsed({**chosen.launch.spec.model_dump(), **one.spec(random)})
        chosen = replace(chosen, launch=chosen.launch.model_copy(update={"spec": spec}))
    if one.submission is not None:
        chosen = one.submission(random, chosen)
    validate(Preview(rayjob(chosen), chosen.cluster), connected=Untouched)


def count(
    table: Sequence[Wrong], random: Random, valid: Sequence[tuple[Fields, Submission]], folder: Path
) -> list[Tried]:
    """Every one of them on each of the valid submissions, for the page of benchmarks."""
    found: list[Tried] = []
    for one in table:
        refused = asked = 0
        for each in valid:
            try:
                hand_in(one, random, each, folder)
            except (DeclarationError, SpecError) as error:
                refused += one.says in str(error)
            except Asked:
                asked += 1
        found.append(Tried(one.kind, len(valid), refused, asked))
    return found


def _declared(fields: Fields, folder: Path) -> Kubernetes:
    path = folder / f"{fields['name']}.yaml"
    path.write_text(yaml.safe_dump(fields), encoding="utf-8")
    try:
        found = cluster(fields["name"], folder)
    finally:
        path.unlink()
    assert isinstance(found, Kubernetes)
    return found
