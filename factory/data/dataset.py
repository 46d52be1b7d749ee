"""`Dataset`: the whole declaration of a dataset, one per file under `definitions/datasets/`.

Building one does nothing but check itself. What it becomes is in `steps`; finding the declared
ones is in `discovery`.
"""

import inspect
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from factory.data.checks import FREE_CHECK_NAMES, Check
from factory.data.declared import is_list, is_mapping, is_number
from factory.data.dedup_policy import Dedup
from factory.data.images import Images
from factory.data.licence import is_spdx
from factory.data.loss import Loss
from factory.data.row import Row
from factory.data.sample import Rejected, Sample
from factory.data.sources import Derived, Source
from factory.errors import ClassificationError, DeclarationError
from factory.keys import Key, PrivateKey, PublicKey

type Clean = Callable[[Row], Sample | Rejected]

type Role = Literal["training", "benchmark"]

BENCHMARKS = "benchmarks/"
"""Below this part of either tree lie the benchmarks and nothing else."""

DEFAULT_SPLIT: Mapping[str, float] = {"train": 0.98, "validation": 0.01, "test": 0.01}


@dataclass(frozen=True, kw_only=True)
class Dataset:
    """A source, how a row of it becomes a sample, and what must hold of the result."""

    key: Key
    """The file's path below `definitions/datasets`, as `public(...)` or `private(...)`."""

    license: str
    """SPDX expression. A sample may state its own."""

    source: Source
    clean: Clean
    role: Role = "training"
    """A benchmark is cleaned and no more: it is not deduplicated, split, or ever in a mix."""

    split: Mapping[str, float] = field(default_factory=lambda: dict(DEFAULT_SPLIT))
    """Share of the groups by split name. The shares add up to 1."""

    deduplicate: Dedup | None = field(default_factory=Dedup)
    """What counts as a duplicate, which is removed. None keeps every cleaned sample."""

    images: Images | None = None
    """How images are read. A row that gives one is refused in a dataset that says nothing."""

    loss: Loss = field(default_factory=Loss)
    """Which roles and parts a model learns to write."""

    checks: Sequence[Check] = ()
    """Demanded in addition to those that every dataset gets."""

    max_errors: float = 0.01
    """Rows on which `clean` may raise before the step fails: a share below 1, or a count."""

    tags: Mapping[str, str] = field(default_factory=dict[str, str])
    owners: Sequence[str] = ()
    description: str = ""
    """Shown in Dagster; the declaring file's docstring where it is empty."""

    private_on_purpose: bool = False
    """Said where everything read is public and the result is private all the same."""

    declared_in: Path = field(default=Path(), compare=False, repr=False)
    """The declaring file, part of the code version. Filled in by itself."""

    def __post_init__(self) -> None:
        if self.declared_in == Path():
            object.__setattr__(self, "declared_in", _caller())
        _check_types(self)
        _check_license(self)
        if not self.max_errors >= 0 or (self.max_errors > 1 and self.max_errors % 1):
            raise DeclarationError(
                f"{self.key}: max_errors is {self.max_errors}; write a share of the rows "
                "between 0 and 1, or a whole number of rows."
            )
        _check_split(self)
        _check_checks(self)
        _check_classification(self)
        _check_role(self)


def _caller() -> Path:
    """The file whose code called `Dataset(...)`: outside this module and the generated init."""
    frame = inspect.currentframe()
    while frame is not None and frame.f_code.co_filename in (__file__, "<string>"):
        frame = frame.f_back
    return Path(frame.f_code.co_filename) if frame is not None else Path()


_WANTED = {
    "key": "public(...) or private(...)",
    "license": "an SPDX id, 'CC-BY-4.0'",
    "source": "Git(...) or another source",
    "clean": "a function of a row",
    "split": "a share by name, {'train': 0.98, 'test': 0.02}",
    "deduplicate": "Dedup(...), or None to keep every sample",
    "images": "Images(...), or leave it out",
    "loss": "Loss(...)",
    "checks": "a list, [checks.rows(100, 200)]",
    "max_errors": "a share of the rows or a number of them, 0.01",
    "tags": "texts by name, {'domain': 'radiology'}",
    "owners": "a list of texts, ['team@example.org']",
    "description": "a text",
    "private_on_purpose": "True, or leave it out",
}
"""What may be written for a field, for somebody who wrote something else."""


def _check_types(dataset: Dataset) -> None:
    """A declaration is written by hand and run before a type checker sees it."""
    given: dict[str, object] = {name: getattr(dataset, name) for name in _WANTED}
    right = {
        "key": isinstance(given["key"], PublicKey | PrivateKey),
        "license": isinstance(given["license"], str),
        "source": hasattr(given["source"], "classification"),
        "clean": callable(given["clean"]),
        "split": is_mapping(given["split"], is_number),
        "deduplicate": isinstance(given["deduplicate"], Dedup | None),
        "images": isinstance(given["images"], Images | None),
        "loss": isinstance(given["loss"], Loss),
        "checks": is_list(given["checks"], lambda one: isinstance(one, Check)),
        "max_errors": is_number(given["max_errors"]),
        "tags": is_mapping(given["tags"], lambda one: isinstance(one, str)),
        "owners": is_list(given["owners"], lambda one: isinstance(one, str)),
        "description": isinstance(given["description"], str),
        "private_on_purpose": isinstance(given["private_on_purpose"], bool),
    }
    for name, is_right in right.items():
        if not is_right:
            raise DeclarationError(
                f"{given['key']}: {name} is {given[name]!r}, which is none. Write "
                f"{name}={_WANTED[name]}."
            )


def _check_license(dataset: Dataset) -> None:
    if not is_spdx(dataset.license):
        raise DeclarationError(
            f"{dataset.key}: license {dataset.license!r} is no SPDX expression. Write for instance "
            "CC-BY-4.0, CC0-1.0 AND MIT, or LicenseRef-name for terms that SPDX has no id for."
        )


def _check_split(dataset: Dataset) -> None:
    shares = dataset.split
    for name in shares:
        _ = dataset.key / "energon" / name  # a name that no key can have is refused there
    if not shares or any(share <= 0 for share in shares.values()):
        raise DeclarationError(f"{dataset.key}: every share in split must be above 0: {shares}.")
    if not math.isclose(math.fsum(shares.values()), 1.0, abs_tol=1e-9):
        raise DeclarationError(
            f"{dataset.key}: the shares of split add up to {math.fsum(shares.values()):g}, not 1."
        )


def _check_checks(dataset: Dataset) -> None:
    seen = set[str](FREE_CHECK_NAMES)
    for check in dataset.checks:
        if check.name in seen:
            raise DeclarationError(
                f"{dataset.key} has two checks named {check.name!r}. Give one of them another name."
            )
        seen.add(check.name)


def _check_classification(dataset: Dataset) -> None:
    key, source = dataset.key, dataset.source
    if isinstance(key, PublicKey) and source.classification == "private":
        reads = source.address if isinstance(source, Derived) else f"the private {source.address}"
        raise ClassificationError(
            f"{key} reads {reads}, so it must be private.\n"
            f'Write key=private("{key.name}") and move the file to '
            f"definitions/datasets/private/{key.name}.py."
        )
    expected = isinstance(key, PublicKey) or source.classification == "private"
    if not expected and not dataset.private_on_purpose:
        raise ClassificationError(
            f"{key} is private although everything it reads is public.\n"
            f'Write key=public("{key.name}"), or private_on_purpose=True if it is meant.'
        )
    if expected and dataset.private_on_purpose:
        raise ClassificationError(
            f"{key} says private_on_purpose=True, which only a private dataset with public "
            "sources needs. Leave it out."
        )


def _check_role(dataset: Dataset) -> None:
    key, source = dataset.key, dataset.source
    placed = key.name.startswith(BENCHMARKS)
    if dataset.role not in ("training", "benchmark"):
        raise DeclarationError(f"{key}: role is {dataset.role!r}; write 'training' or 'benchmark'.")
    if placed != (dataset.role == "benchmark"):
        raise DeclarationError(
            f"{key} has the role {dataset.role!r}. Benchmarks, and they alone, lie below "
            f"{key.classification}/{BENCHMARKS}: move the file, or write role='benchmark'."
        )
    read = source.datasets if isinstance(source, Derived) else ()
    measured = [one.key.path for one in read if one.role == "benchmark"]
    if measured and dataset.role != "benchmark":
        raise DeclarationError(
            f"{key} is derived from {', '.join(measured)}, so training on it would be training "
            "on a benchmark. Declare it as a benchmark, or leave that dataset out."
        )
