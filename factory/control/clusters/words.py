"""Words that Kubernetes takes: names, labels, paths and variables, as types of fields."""

import re
from pathlib import PurePosixPath
from typing import Annotated

from pydantic import AfterValidator, Field
from pydantic.config import JsonDict

from factory.control.clusters.secrecy import holds_secret

MAX_VARIABLE_BYTES = 128 * 1024 - 1
"""Linux starts no process with a longer one, name and value together."""

_PART = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_DOMAIN = rf"{_PART}(\.{_PART})*"
_NAME = r"[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?"
_LABEL_KEY = re.compile(rf"({_DOMAIN}/)?{_NAME}")
_LABEL_VALUE = re.compile(rf"({_NAME})?")
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")

_A_WORD = "63 letters, digits, and - _ . between them"
_A_KEY = f"write NAME or DOMAIN/NAME, the name of at most {_A_WORD}"
_MAX_DOMAIN_CHARACTERS = 253
_OF_KUBERNETES = "kubernetes.io"
_OF_QUOTAS = "requests."

_NAMED_SO = "the name says that it holds a secret, and this file is committed"
_TAKEN_PREFIXES = ("DAGSTER_", "FACTORY_", "KUBERAY_", "RAY_AUTH_")
_OURS = {
    *("HOME", "NVIDIA_VISIBLE_DEVICES", "PYTHONDONTWRITEBYTECODE", "PYTHONFAULTHANDLER"),
    *("PYTHONUNBUFFERED", "RAY_COLOR_PREFIX", "RAY_DEDUP_LOGS", "RAY_JOB_STOP_WAIT_TIME_S"),
    *("RAY_TMPDIR", "RAY_USAGE_STATS_ENABLED", "TMPDIR", "USER"),
}
_KUBERAYS = {
    *("FQ_RAY_IP", "RAY_ADDRESS", "RAY_CLOUD_INSTANCE_ID", "RAY_CLUSTER_NAME"),
    *("RAY_CLUSTER_NAMESPACE", "RAY_ENABLE_K8S_TOKEN_AUTH", "RAY_IP", "RAY_NODE_TYPE_NAME"),
    *("RAY_PORT", "RAY_REDIS_ADDRESS", "RAY_enable_autoscaler_v2", "REDIS_USERNAME"),
}
"""Set for every container, or taken as a wish for another kind of cluster, which is refused."""

_TAKEN = frozenset(_OURS | _KUBERAYS)


def is_label_value(text: str) -> bool:
    """Whether a label can have that value."""
    return _LABEL_VALUE.fullmatch(text) is not None


def unusable(name: str, value: str) -> str | None:
    """Why no process can be given that variable; nothing if one can."""
    size = len(f"{name}={value}".encode("utf-8", "surrogatepass"))
    if size > MAX_VARIABLE_BYTES:
        return f"has {size:,} bytes, and no process starts with more than {MAX_VARIABLE_BYTES:,}"
    if "\0" in value or not _is_utf8(value):
        return "holds a NUL or what is no UTF-8, and no process starts with that"
    return None


def overlap(one: str, other: str) -> bool:
    """Whether one of two absolute paths lies in the other, or they are the same."""
    first, second = PurePosixPath(one), PurePosixPath(other)
    return first.is_relative_to(second) or second.is_relative_to(first)


def _is_utf8(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _label_key(key: str) -> str:
    domain, _, _ = key.rpartition("/")
    if not _LABEL_KEY.fullmatch(key) or len(domain) > _MAX_DOMAIN_CHARACTERS:
        raise ValueError(f"{key!r} is no key of a label: {_A_KEY}")
    return key


def _device(name: str) -> str:
    domain, slash, _ = _label_key(name).rpartition("/")
    if not slash or domain.endswith(_OF_KUBERNETES) or domain.startswith(_OF_QUOTAS):
        raise ValueError(
            f"{name!r} is no device of a plugin: write it as nodes list it, DOMAIN/NAME, for "
            "instance nvidia.com/gpu. CPUs and memory have fields of their own"
        )
    if len(domain) > _MAX_DOMAIN_CHARACTERS - len(_OF_QUOTAS):
        raise ValueError(f"{name!r} is longer than a quota can name")
    return name


def _absolute(path: str) -> str:
    if not path.startswith("/") or path.startswith("//") or str(PurePosixPath(path)) != path:
        raise ValueError("write an absolute path, without //, /./ and a / at the end")
    if ".." in PurePosixPath(path).parts or not path.isprintable() or ":" in path:
        raise ValueError("write a path without .., : and line breaks, so that it says where it is")
    return path


def _labels(labels: dict[str, str]) -> dict[str, str]:
    for key, value in labels.items():
        _label_key(key)
        if not is_label_value(value):
            raise ValueError(f"{key}: {value!r} is no label: a value has at most {_A_WORD}")
    return labels


def _variables(variables: dict[str, str]) -> dict[str, str]:
    for name, value in sorted(variables.items()):
        _variable(name, value)
        if name in _TAKEN or name.startswith(_TAKEN_PREFIXES):
            raise ValueError(f"{name}: the factory sets this itself; leave it out")
        if holds_secret(name, value):
            raise ValueError(
                f"{name}: {_NAMED_SO}. Remove it, and revoke what was there. A file on a volume "
                "of `mounts` can hold it, and a variable say where that file is; what pulls the "
                "image is a Secret in `pull_secrets`"
            )
    return variables


def _of_program(variables: dict[str, str]) -> dict[str, str]:
    for name, value in sorted(variables.items()):
        _variable(name, value)
        if holds_secret(name, value):
            raise ValueError(
                f"{name}: {_NAMED_SO}. Remove it, revoke what was there, and set it in the "
                "factory's own environment, which the program gets too"
            )
    return variables


def _variable(name: str, value: str) -> None:
    if not _VARIABLE.fullmatch(name):
        raise ValueError(f"{name!r} is no name of a variable: letters, digits and _")
    if problem := unusable(name, value):
        raise ValueError(f"{name} {problem}")


def _argument(text: str) -> str:
    if problem := unusable("argument", text):
        raise ValueError(problem)
    return text


_DNS_LABEL = r"^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$"
_OBJECT_NAME = f"^{_DOMAIN}$"

PATTERNS = {
    _DNS_LABEL: "at most 63 small letters, digits, and - between them",
    _OBJECT_NAME: "small letters, digits, and - and . between them",
    f"^{_LABEL_VALUE.pattern}$": f"at most {_A_WORD}",
    f"^{_NAME}$": f"at most {_A_WORD}",
    r"^[-._a-zA-Z0-9]+$": "letters, digits, - _ and .",
}
"""Patterns of fields, in words."""

type DnsLabel = Annotated[str, Field(pattern=_DNS_LABEL)]
"""The name of a namespace."""

type ObjectName = Annotated[str, Field(pattern=_OBJECT_NAME, max_length=253)]
"""The name of a Secret, a claim or an attachment."""

_KEYS: JsonDict = {"pattern": f"^{_LABEL_KEY.pattern}$"}
type LabelKey = Annotated[str, AfterValidator(_label_key), Field(json_schema_extra=_KEYS)]
type LabelValue = Annotated[str, Field(pattern=f"^{_LABEL_VALUE.pattern}$")]
type Device = Annotated[str, AfterValidator(_device), Field(json_schema_extra=_KEYS)]
"""What a device plugin calls what it counts."""

type QueueName = Annotated[str, Field(pattern=_OBJECT_NAME, max_length=63)]
"""It is the value of a label as well as the name of an object."""

type ClassName = QueueName
"""Of a PriorityClass, which KAI reads from a label too."""

_NO_DOTS = r"(\.{0,2}[^./:\x00\n][^/:\x00\n]*|\.{3,}[^/:\x00\n]*)"
_PATHS: JsonDict = {"pattern": rf"^(/|(/{_NO_DOTS})+)$"}
type AbsolutePath = Annotated[str, AfterValidator(_absolute), Field(json_schema_extra=_PATHS)]
type Labels = Annotated[dict[str, str], AfterValidator(_labels)]
type Variables = Annotated[dict[str, str], AfterValidator(_variables)]
type ProgramVariables = Annotated[dict[str, str], AfterValidator(_of_program)]
type Argument = Annotated[str, AfterValidator(_argument)]
