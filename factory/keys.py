"""Keys: one name for an asset and for its directory.

`public("text/medquad")` is the Dagster asset `public/text/medquad` and the directory of the same
name in the namespace. A key knows its classification by its type, so a function that exposes data
takes a `PublicKey` and a type checker refuses anything else. Directories: `namespace`.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal, overload

from factory.errors import ClassificationError, KeyFormatError

type Classification = Literal["public", "private"]

RESERVED = frozenset({"runs"})
"""First segments that hold something other than assets."""

MAX_SEGMENT_CHARACTERS = 64
"""`<segment>.versions` and staging names must stay under the 255 bytes of POSIX `NAME_MAX`."""

MAX_KEY_CHARACTERS = 512
"""Root, key, version and file name together must stay under the 4,096 bytes of `PATH_MAX`."""

_SEGMENT = re.compile(r"[a-z0-9_]+")


@dataclass(frozen=True, order=True)
class _Key:
    name: str
    """Everything after the classification: `text/medquad`."""

    classification: ClassVar[Classification]

    def __post_init__(self) -> None:
        _check(self.name, f"{self.classification}/{self.name}")

    @property
    def path(self) -> str:
        """Asset key and directory in one: `public/text/medquad`."""
        return f"{self.classification}/{self.name}"

    @property
    def parts(self) -> tuple[str, ...]:
        """The segments of `path`, as Dagster's `AssetKey` takes them."""
        return tuple(self.path.split("/"))

    def __str__(self) -> str:
        return self.path


@dataclass(frozen=True, order=True)
class PublicKey(_Key):
    """A key that anyone may read. Nothing private was among its inputs."""

    classification: ClassVar[Classification] = "public"

    def __truediv__(self, segment: str) -> "PublicKey":
        return PublicKey(f"{self.name}/{segment}")

    __str__ = _Key.__str__


@dataclass(frozen=True, order=True)
class PrivateKey(_Key):
    """A key under the private tree: mounts and identities decide who reads it."""

    classification: ClassVar[Classification] = "private"

    def __truediv__(self, segment: str) -> "PrivateKey":
        return PrivateKey(f"{self.name}/{segment}")

    __str__ = _Key.__str__


type Key = PublicKey | PrivateKey


def public(name: str) -> PublicKey:
    """The public key of that name, `text/medquad`."""
    return PublicKey(name)


def private(name: str) -> PrivateKey:
    """The private key of that name, `text/discharge_letters`."""
    return PrivateKey(name)


def parse(path: str) -> Key:
    """The key of a path such as `public/text/medquad`.

    Raises:
        KeyFormatError: the path does not start with `public/` or `private/`, or is not a valid key.
    """
    classification, _, name = path.partition("/")
    if classification == "public":
        return PublicKey(name)
    if classification == "private":
        return PrivateKey(name)
    raise KeyFormatError(
        f"Key {path!r} starts with {classification!r}; a key starts with public/ or private/, "
        "for instance public/text/plos."
    )


@overload
def derive(name: str, inputs: Sequence[PublicKey]) -> PublicKey: ...
@overload
def derive(name: str, inputs: Sequence[Key]) -> Key: ...
def derive(name: str, inputs: Sequence[Key]) -> Key:
    """Name an output after its inputs: private if any input is private.

    Raises:
        ClassificationError: there are no inputs, so nothing says what the output may be.
    """
    if not inputs:
        raise ClassificationError(
            f"{name!r} has no inputs to derive a classification from. "
            "A source states its own: write public(...) or private(...)."
        )
    if all(isinstance(key, PublicKey) for key in inputs):
        return PublicKey(name)
    return PrivateKey(name)


def _check(name: str, path: str) -> None:
    if len(path) > MAX_KEY_CHARACTERS:
        raise KeyFormatError(
            f"Key {path[:80]!r}... has {len(path)} characters; "
            f"file systems allow {MAX_KEY_CHARACTERS}. Shorten it."
        )
    segments = name.split("/")
    for segment in segments:
        if not _SEGMENT.fullmatch(segment):
            raise KeyFormatError(
                f"Key {path!r} has the segment {segment!r}; a segment is one or more of "
                "a-z, 0-9 and _, so there is no empty, dotted or upper-case one."
            )
        if len(segment) > MAX_SEGMENT_CHARACTERS:
            raise KeyFormatError(
                f"Key {path!r} has a segment of {len(segment)} characters; "
                f"the limit is {MAX_SEGMENT_CHARACTERS}. Shorten it."
            )
    if segments[0] in RESERVED:
        raise KeyFormatError(
            f"Key {path!r} is under {segments[0]!r}, which holds run directories. "
            "Choose another first segment."
        )
