"""Words that Kubernetes takes: names, labels, paths and variables, as types of fields."""

import re
from pathlib import PurePosixPath
from typing import Annotated

from pydantic import AfterValidator, Field

_LABEL_KEY = re.compile(
    r"([a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?/)?[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?"
)
_LABEL_VALUE = re.compile(r"([A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?)?")
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_TAKEN_PREFIXES = ("DAGSTER_", "FACTORY_", "KUBERAY_", "RAY_AUTH_")
_TAKEN = frozenset(
    {"HOME", "NVIDIA_VISIBLE_DEVICES", "RAY_ADDRESS", "RAY_TMPDIR", "TMPDIR", "USER"}
)


def is_label_value(text: str) -> bool:
    """Whether a label can have that value."""
    return _LABEL_VALUE.fullmatch(text) is not None


def overlap(one: str, other: str) -> bool:
    """Whether one of two absolute paths lies in the other, or they are the same."""
    first, second = PurePosixPath(one), PurePosixPath(other)
    return first.is_relative_to(second) or second.is_relative_to(first)


def _absolute(path: str) -> str:
    if not path.startswith("/") or path.startswith("//") or str(PurePosixPath(path)) != path:
        raise ValueError("write an absolute path, without //, /./ and a / at the end")
    if ".." in PurePosixPath(path).parts or "\0" in path or "\n" in path or ":" in path:
        raise ValueError("write a path without .., : and line breaks, so that it says where it is")
    return path


def _labels(labels: dict[str, str]) -> dict[str, str]:
    for key, value in labels.items():
        if not _LABEL_KEY.fullmatch(key) or not is_label_value(value):
            raise ValueError(
                f"{key}: {value!r} is no label: a key is NAME or DOMAIN/NAME, and name and value "
                "have at most 63 letters, digits, and - _ . between them"
            )
    return labels


def _variables(variables: dict[str, str]) -> dict[str, str]:
    for name in sorted(variables):
        if not _VARIABLE.fullmatch(name):
            raise ValueError(f"{name!r} is no name of a variable: letters, digits and _")
        if name in _TAKEN or name.startswith(_TAKEN_PREFIXES):
            raise ValueError(f"{name}: the factory sets this itself; leave it out")
    return variables


type DnsLabel = Annotated[str, Field(pattern=r"^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$")]
"""The name of a namespace."""

type ObjectName = Annotated[str, Field(pattern=r"^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$", max_length=253)]
"""The name of a Secret, a claim or a class."""

type LabelKey = Annotated[str, Field(pattern=f"^{_LABEL_KEY.pattern}$")]
type QueueName = Annotated[str, Field(pattern=r"^[a-z0-9]([-a-z0-9.]{0,61}[a-z0-9])?$")]
"""It is the value of a label as well as the name of an object."""

type AbsolutePath = Annotated[str, AfterValidator(_absolute)]
type Labels = Annotated[dict[str, str], AfterValidator(_labels)]
type Variables = Annotated[dict[str, str], AfterValidator(_variables)]
