"""Sources in a store of objects: S3, and any other that fsspec can read.

Fetching is in `fetch.objects`; the other sources are in `sources`.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from factory.data.pattern import Pattern
from factory.data.source_files import (
    DIGITS,
    SHA256,
    SourceFiles,
    refuse_classification,
    refuse_outside,
    require,
)
from factory.errors import DeclarationError
from factory.keys import Classification

_STORE = re.compile(r"[a-z][a-z0-9+.-]*://(?![^/]*:[^/]*@)[^\s?#]+")
"""One protocol, and a folder or bucket. `name:password@host` does not fit."""


@dataclass(frozen=True, kw_only=True)
class Fsspec(SourceFiles):
    """Files below any address that fsspec can read, each with its sha256.

    The hashes are declared in `files`, by path below `url`, or stand in a file there, in the form
    of `sha256sum`, whose own hash is declared. Credentials come from the environment.
    """

    url: str
    classification: Classification
    files: Mapping[str, str] | None = None
    manifest: str | None = None
    """Path below `url` of the file with the hashes."""

    manifest_sha256: str | None = None

    def _check(self) -> None:
        if not _STORE.fullmatch(self.url):
            raise DeclarationError(  # which is not shown, because it may hold a password
                "The url cannot be used; write an address as s3://bucket/folder, without a "
                "password, a signature or '?': credentials are taken from the environment."
            )
        refuse_classification(self.classification)
        if (self.files is None) == (self.manifest is None):
            raise DeclarationError(
                f"{self.url}: give the sha256 of each file in `files`, or of a manifest in "
                "`manifest` and `manifest_sha256`; one of the two."
            )
        for name, sha256 in self._stated():
            refuse_outside(name, f"the folder {self.url}", "Path")
            require(SHA256, f"sha256 of {name}", sha256, DIGITS)
        if self.files is not None and not Pattern.parse(self.rows).matching(self.files):
            raise DeclarationError(f"{self.url}: no declared file fits the rows {self.named()!r}.")

    def _stated(self) -> list[tuple[str, str]]:
        if self.manifest is not None:
            return [(self.manifest, self.manifest_sha256 or "")]
        return list((self.files or {}).items())

    @property
    def address(self) -> str:
        """What a mirror is looked up by."""
        return self.url

    @property
    def pin(self) -> str | None:
        """Which state of the source is meant, where not each file says it."""
        return self.manifest_sha256

    @property
    def hashes(self) -> Mapping[str, str]:
        """The sha256 of each file, where it is declared."""
        return self.files or {}

    def parameters(self) -> dict[str, Any]:
        """Everything that decides which files are fetched."""
        counting = Pattern.parse(self.rows).kept(self.hashes)
        declared = {name: self.hashes[name] for name in counting}
        stated = {"manifest": self.manifest, "sha256": self.manifest_sha256}
        return {"url": self.url, "files": self.named(), "sha256": declared or stated}


@dataclass(frozen=True, kw_only=True)
class S3(Fsspec):
    """Objects of an S3 bucket below `s3://bucket/prefix`, each with its sha256; see `Fsspec`."""

    anonymous: bool = False
    """Whether to ask without credentials, as open buckets want it."""

    def _check(self) -> None:
        if not self.url.startswith("s3://"):
            raise DeclarationError(f"url {self.url!r} is not of S3; write s3://bucket/prefix.")
        super()._check()
