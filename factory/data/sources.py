"""Sources: where the raw files of a dataset come from, and by which hash they are known.

A source is a value: building one fetches nothing. Fetching is in `fetch`, one module per source.
Each knows its classification: what is fetched from the public internet is public, what a partner
delivers is private, and what is derived from other datasets follows them.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any, ClassVar

from factory.data.identifiers.report import Thresholds
from factory.data.pattern import Pattern, Rows
from factory.errors import DeclarationError
from factory.keys import Classification, Key, PublicKey

if TYPE_CHECKING:
    from factory.data.dataset import Dataset

_SHA256 = re.compile(r"[0-9a-f]{64}")
_REVISION = re.compile(r"[0-9a-f]{40}")
_PACKAGE = re.compile(r"[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?")
_VERSION = re.compile(r"[0-9A-Za-z][0-9A-Za-z.+!_-]*")
_URL = re.compile(r"(https?|file)://[^\s]+|git@[^\s:]+:[^\s]+")


@dataclass(frozen=True, kw_only=True)
class PythonPackage:
    """Files inside a wheel on the package index, by name, version and sha256 of the wheel."""

    name: str
    version: str
    sha256: str
    rows: str | Rows
    classification: ClassVar[Classification] = "public"
    inputs: ClassVar[tuple[Key, ...]] = ()

    def __post_init__(self) -> None:
        Pattern.parse(self.rows)
        _require(_PACKAGE, "package name", self.name, "a name as the package index has it")
        _require(_VERSION, "package version", self.version, "one exact version")
        _require(_SHA256, "sha256", self.sha256, "the 64 hexadecimal digits of the wheel's sha256")

    @property
    def address(self) -> str:
        """What a mirror is looked up by."""
        return f"{self.name}=={self.version}"

    def parameters(self) -> dict[str, str]:
        """Everything that decides which files are fetched."""
        return {"package": self.address, "sha256": self.sha256, "files": _files(self.rows)}


@dataclass(frozen=True, kw_only=True)
class Git:
    """Files of one revision of a Git repository."""

    url: str
    revision: str
    rows: str | Rows
    classification: ClassVar[Classification] = "public"
    inputs: ClassVar[tuple[Key, ...]] = ()

    def __post_init__(self) -> None:
        Pattern.parse(self.rows)
        _require(_URL, "url", self.url, "an https or file address")
        _require(
            _REVISION,
            "revision",
            self.revision,
            "all 40 hexadecimal digits of a commit: a branch, tag or short form can move",
        )

    @property
    def address(self) -> str:
        """What a mirror is looked up by."""
        return self.url

    def parameters(self) -> dict[str, str]:
        """Everything that decides which files are fetched."""
        return {"git": self.url, "revision": self.revision, "files": _files(self.rows)}


@dataclass(frozen=True, kw_only=True)
class Http:
    """One file by address and sha256. Interrupted downloads resume where the server allows it."""

    url: str
    sha256: str
    rows: str | Rows
    classification: ClassVar[Classification] = "public"
    inputs: ClassVar[tuple[Key, ...]] = ()

    def __post_init__(self) -> None:
        Pattern.parse(self.rows)
        if not self.url.startswith(("https://", "http://")):
            raise DeclarationError(f"url {self.url!r} is not an http or https address.")
        _require(_SHA256, "sha256", self.sha256, "the 64 hexadecimal digits of the file's sha256")

    @property
    def address(self) -> str:
        """What a mirror is looked up by."""
        return self.url

    def parameters(self) -> dict[str, str]:
        """Everything that decides which files are fetched."""
        return {"url": self.url, "sha256": self.sha256, "files": _files(self.rows)}


@dataclass(frozen=True, kw_only=True)
class LocalFiles:
    """A folder of files of one's own, below `FACTORY_DROPS`. For a partner's see `PartnerDrop`.

    Nothing pins its contents beforehand, so each run reads the folder and the version follows
    from the hashes of what was there.
    """

    folder: str
    rows: str | Rows
    classification: Classification
    inputs: ClassVar[tuple[Key, ...]] = ()

    def __post_init__(self) -> None:
        Pattern.parse(self.rows)
        _refuse_outside(self.folder)
        if self.classification not in ("public", "private"):
            raise DeclarationError(
                f"classification is {self.classification!r}; write 'public' or 'private'."
            )

    @property
    def address(self) -> str:
        """What a mirror is looked up by."""
        return self.folder

    def parameters(self) -> dict[str, str]:
        """Everything that decides which files are fetched, but for the files themselves."""
        return {"folder": self.folder, "files": _files(self.rows)}


@dataclass(frozen=True, kw_only=True)
class PartnerDrop:
    """A delivery with its `delivery.json`, in a folder below `FACTORY_DROPS`: private always.

    It is verified and scanned for identifiers before anything of it is published. As with
    `LocalFiles`, the version follows from what was there.
    """

    folder: str
    rows: str | Rows
    thresholds: Thresholds = field(default_factory=Thresholds)
    """How many identifiers of each kind may be there: none that point to a person directly."""

    classification: ClassVar[Classification] = "private"
    inputs: ClassVar[tuple[Key, ...]] = ()

    def __post_init__(self) -> None:
        Pattern.parse(self.rows)
        _refuse_outside(self.folder)

    @property
    def address(self) -> str:
        """What a mirror is looked up by."""
        return self.folder

    def parameters(self) -> dict[str, Any]:
        """Everything that decides what is taken in, but for the delivery itself."""
        thresholds = self.thresholds.model_dump(mode="json")
        return {
            "folder": self.folder,
            "rows": Pattern.parse(self.rows).rows.parameters(),
            "thresholds": thresholds,
        }


@dataclass(frozen=True, kw_only=True)
class Derived:
    """The cleaned samples of other datasets: each row is one of them, as JSON."""

    datasets: "tuple[Dataset, ...]"
    rows: str = field(default="**/*.jsonl", init=False)

    def __post_init__(self) -> None:
        if not self.datasets:
            raise DeclarationError("Derived(datasets=...) names no dataset to derive from.")

    @property
    def inputs(self) -> tuple[Key, ...]:
        """The assets that are read."""
        return tuple(dataset.key / "clean" for dataset in self.datasets)

    @property
    def classification(self) -> Classification:
        """Private if any dataset is."""
        every_public = all(isinstance(dataset.key, PublicKey) for dataset in self.datasets)
        return "public" if every_public else "private"

    @property
    def address(self) -> str:
        """Shown in errors; nothing can mirror it."""
        return ", ".join(dataset.key.path for dataset in self.datasets)

    def parameters(self) -> Mapping[str, str]:
        """None: the input versions say it all."""
        return {}


type Source = PythonPackage | Git | Http | LocalFiles | PartnerDrop | Derived


def _files(rows: str | Rows) -> str:
    return " ".join(Pattern.parse(rows).fetched())


def _refuse_outside(drop_folder: str) -> None:
    folder = PurePosixPath(drop_folder)
    if folder.is_absolute() or ".." in folder.parts or not folder.parts:
        raise DeclarationError(
            f"Drop folder {drop_folder!r} must be a path below FACTORY_DROPS: "
            "not absolute, not empty, no '..'."
        )


def _require(pattern: re.Pattern[str], what: str, value: str, wanted: str) -> None:
    if not pattern.fullmatch(value):
        raise DeclarationError(f"{what} {value!r} cannot be used; write {wanted}.")
