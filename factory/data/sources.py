"""Sources: where the raw files of a dataset come from, and by which hash they are known.

A source is a value: building one fetches nothing. Fetching is in `fetch`, one module per source.
Each knows its classification: what is fetched from the public internet is public, what a partner
delivers is private, what lies in a store of one's own says it, and what is derived from other
datasets follows them.
"""

import re
import urllib.parse
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from factory.data.identifiers.report import Thresholds
from factory.data.pattern import Pattern
from factory.data.source_files import (
    DIGITS,
    SHA256,
    SourceFiles,
    refuse_classification,
    refuse_outside,
    require,
)
from factory.data.stores import Fsspec
from factory.errors import DeclarationError
from factory.keys import Classification, Key, PublicKey

if TYPE_CHECKING:
    from factory.data.dataset import Dataset

_REVISION = re.compile(r"[0-9a-f]{40}")
_PACKAGE = re.compile(r"[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?")
_VERSION = re.compile(r"[0-9A-Za-z][0-9A-Za-z.+!_-]*")
_URL = re.compile(r"(https?|file)://[^\s]+|git@[^\s:]+:[^\s]+")
_REPO = re.compile(r"[A-Za-z0-9][\w.-]*(/[A-Za-z0-9][\w.-]*)?")

_COMMIT = "all 40 hexadecimal digits of a commit: a branch, tag or short form can move"


@dataclass(frozen=True, kw_only=True)
class _Published(SourceFiles):
    """What anybody can fetch."""

    classification: ClassVar[Classification] = "public"

    @property
    def hashes(self) -> Mapping[str, str]:
        """The sha256 of each file, where it is declared."""
        return {}


@dataclass(frozen=True, kw_only=True)
class PythonPackage(_Published):
    """Files inside a wheel on the package index, by name, version and sha256 of the wheel."""

    name: str
    version: str
    sha256: str

    def _check(self) -> None:
        require(_PACKAGE, "package name", self.name, "a name as the package index has it")
        require(_VERSION, "package version", self.version, "one exact version")
        require(SHA256, "sha256", self.sha256, DIGITS)

    @property
    def address(self) -> str:
        """What a mirror is looked up by."""
        return f"{self.name}=={self.version}"

    @property
    def pin(self) -> str:
        """Which state of the source is meant."""
        return self.sha256

    def parameters(self) -> dict[str, Any]:
        """Everything that decides which files are fetched."""
        return {"package": self.address, "sha256": self.sha256, "files": self.named()}


@dataclass(frozen=True, kw_only=True)
class Git(_Published):
    """Files of one revision of a Git repository."""

    url: str
    revision: str

    def _check(self) -> None:
        require(_URL, "url", self.url, "an https or file address")
        require(_REVISION, "revision", self.revision, _COMMIT)

    @property
    def address(self) -> str:
        """What a mirror is looked up by."""
        return self.url

    @property
    def pin(self) -> str:
        """Which state of the source is meant."""
        return self.revision

    def parameters(self) -> dict[str, Any]:
        """Everything that decides which files are fetched."""
        return {"git": self.url, "revision": self.revision, "files": self.named()}


@dataclass(frozen=True, kw_only=True)
class HuggingFace(_Published):
    """Files of one commit of a repository on the Hugging Face hub."""

    repo: str
    revision: str
    kind: Literal["dataset", "model", "space"] = "dataset"

    def _check(self) -> None:
        require(_REPO, "repository", self.repo, "owner/name as the hub has it")
        require(_REVISION, "revision", self.revision, _COMMIT)
        if self.kind not in ("dataset", "model", "space"):
            raise DeclarationError(f"kind {self.kind!r} is not 'dataset', 'model' or 'space'.")

    @property
    def address(self) -> str:
        """What a mirror is looked up by."""
        return f"hf://{self.kind}s/{self.repo}"

    @property
    def pin(self) -> str:
        """Which state of the source is meant."""
        return self.revision

    def parameters(self) -> dict[str, Any]:
        """Everything that decides which files are fetched."""
        return {"hub": self.address, "revision": self.revision, "files": self.named()}


@dataclass(frozen=True, kw_only=True)
class Http(_Published):
    """One file by address and sha256. Interrupted downloads resume where the server allows it."""

    url: str
    sha256: str

    def _check(self) -> None:
        if not self.url.startswith(("https://", "http://")):
            raise DeclarationError(f"url {self.url!r} is not an http or https address.")
        require(SHA256, "sha256", self.sha256, DIGITS)

    @property
    def file(self) -> str:
        """The name that the address gives the file."""
        name = PurePosixPath(urllib.parse.unquote(urllib.parse.urlsplit(self.url).path)).name
        return name if name not in ("", ".", "..") else "download"

    @property
    def address(self) -> str:
        """What a mirror is looked up by."""
        return self.url

    @property
    def pin(self) -> str:
        """Which state of the source is meant."""
        return self.sha256

    @property
    def hashes(self) -> Mapping[str, str]:
        """The sha256 of the one file."""
        return {self.file: self.sha256}

    def parameters(self) -> dict[str, Any]:
        """Everything that decides which files are fetched."""
        return {"url": self.url, "sha256": self.sha256, "files": self.named()}


@dataclass(frozen=True, kw_only=True)
class LocalFiles(SourceFiles):
    """A folder of files of one's own, below `FACTORY_DROPS`. For a partner's see `PartnerDrop`.

    Nothing pins its contents beforehand, so each run reads the folder and the version follows
    from the hashes of what was there.
    """

    folder: str
    classification: Classification

    def _check(self) -> None:
        refuse_outside(self.folder, "FACTORY_DROPS", "Drop folder")
        refuse_classification(self.classification)

    @property
    def address(self) -> str:
        """What messages call it."""
        return self.folder

    def parameters(self) -> dict[str, Any]:
        """Everything that decides which files are fetched, but for the files themselves."""
        return {"folder": self.folder, "files": self.named()}


@dataclass(frozen=True, kw_only=True)
class PartnerDrop(SourceFiles):
    """A delivery with its `delivery.json`, in a folder below `FACTORY_DROPS`: private always.

    It is verified and scanned for identifiers before anything of it is published. As with
    `LocalFiles`, the version follows from what was there.
    """

    folder: str
    thresholds: Thresholds = field(default_factory=Thresholds)
    """How many identifiers of each kind may be there: none that point to a person directly."""

    classification: ClassVar[Classification] = "private"

    def _check(self) -> None:
        refuse_outside(self.folder, "FACTORY_DROPS", "Drop folder")

    @property
    def address(self) -> str:
        """What messages call it."""
        return self.folder

    def parameters(self) -> dict[str, Any]:
        """Everything that decides what is taken in, but for the delivery itself."""
        rows = Pattern.parse(self.rows).rows.parameters()
        thresholds = self.thresholds.model_dump(mode="json")
        return {"folder": self.folder, "rows": rows, "thresholds": thresholds}


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
        """What messages call it."""
        return ", ".join(dataset.key.path for dataset in self.datasets)

    def parameters(self) -> Mapping[str, str]:
        """None: the input versions say it all."""
        return {}


type Pinned = PythonPackage | Git | HuggingFace | Http | Fsspec
type Source = Pinned | LocalFiles | PartnerDrop | Derived

MIRRORED = (PythonPackage, Git, HuggingFace, Http, Fsspec)
"""Sources that a hash or revision pins, so that a copy can stand in for them."""
