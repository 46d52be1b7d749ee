"""Mirrors file by file: a folder with `mirror.toml`, which says where each file of a source lies.

Such a mirror can lay files out as it likes, keep them gzipped, and hold only some of them, which it
then has to say. Every file is held to its hash before it is used. Which folder stands in for which
source is in `mirrors`; the form of `mirror.toml` is described in docs/mirrors.md.
"""

import gzip
import hashlib
import shutil
import tomllib
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Annotated

from pydantic import BaseModel, Field, StrictBool, ValidationError, model_validator

from factory.data import raw
from factory.data.fetch.closed import refuse_closed
from factory.data.fetch.errand import Errand, Fetched
from factory.data.fetch.hashes import alike, sha256
from factory.data.fetch.mirrors import mirror_of
from factory.data.pattern import Pattern
from factory.data.progress import Ticker
from factory.data.sample import canonical
from factory.data.sources import MIRRORED, Pinned, Source
from factory.errors import SourceError

STATEMENT = "mirror.toml"

type _GitBlob = Annotated[str, Field(pattern="^[0-9a-f]{40}$")]
type _Sha256 = Annotated[str, Field(pattern="^[0-9a-f]{64}$")]


class MirrorFile(BaseModel, frozen=True, extra="forbid"):
    """Where one file lies, and the hash of what the source has."""

    path: str
    gunzip: bool = False
    git_blob: _GitBlob | None = None
    sha256: _Sha256 | None = None

    @model_validator(mode="after")
    def _has_one_hash(self) -> "MirrorFile":
        if (self.git_blob is None) == (self.sha256 is None):
            raise ValueError("give git_blob or sha256, one of the two")
        return self

    @property
    def hash(self) -> str:
        """The hash that is given; its length tells which."""
        return self.git_blob or self.sha256 or ""


class MirrorFolder(BaseModel, frozen=True, extra="forbid"):
    """Many files at once: `source` and `path` go before each name; `gunzip` adds `.gz` to paths."""

    source: str
    path: str
    gunzip: bool = False
    git_blobs: dict[str, _GitBlob] = {}
    sha256s: dict[str, _Sha256] = {}

    def files(self) -> Iterator[tuple[str, MirrorFile]]:
        """Each file by its path in the source."""
        for hashes, kind in ((self.git_blobs, "git_blob"), (self.sha256s, "sha256")):
            for name, found in hashes.items():
                path = f"{self.path}{name}{'.gz' if self.gunzip else ''}"
                one = {"path": path, "gunzip": self.gunzip, kind: found}
                yield f"{self.source}{name}", MirrorFile.model_validate(one)


class Statement(BaseModel, frozen=True, extra="forbid"):
    """`mirror.toml`."""

    partial: StrictBool
    pin: str | None = None
    root: str = "."
    files: dict[str, MirrorFile] = {}
    folders: list[MirrorFolder] = []


@dataclass(frozen=True)
class FileMirror:
    """A mirror as its statement describes it."""

    statement: Path
    root: Path
    partial: bool
    pin: str | None
    files: Mapping[str, MirrorFile]

    def kept(self, source: Pinned) -> list[str]:
        """The files of the mirror that the source's row pattern asks for."""
        return raw.kept(self.files, source.rows)

    def is_partial(self, source: Pinned) -> bool:
        """Whether files may be missing: none is if the pattern spells out the names of all."""
        asked = Pattern.parse(source.rows).fetched()
        spelt_out = all(one in self.files and not set("*?") & set(one) for one in asked)
        return self.partial and not spelt_out

    def identity(self, source: Pinned) -> str:
        """A hash of what the source's files are here."""
        found = {name: self.files[name].hash for name in self.kept(source)}
        return hashlib.sha256(canonical(found)).hexdigest()

    def lay_out(self, source: Pinned, errand: Errand) -> Fetched:
        """The files as the source has them, each verified.

        Raises:
            SourceError: the mirror is of another state of the source, or a file is missing or not
                what it should be.
        """
        self._refuse_other_state(source)
        names = raw.wanted_of(list(self.files), source.rows)
        declared = source.hashes
        target = errand.scratch / "files"
        shutil.rmtree(target, ignore_errors=True)
        errand.say(f"taking {source.address} from the mirror {self.statement.parent}")
        for name in Ticker(errand.say, "files verified").over(names):
            refuse_closed(self.root / self.files[name].path, source.classification, errand)
            copy = target / name
            self._place(name, copy)
            if name in declared and (found := sha256(copy)) != declared[name]:
                raise self._other_file(name, found, declared[name])
        return Fetched(target, self.is_partial(source))

    def _refuse_other_state(self, source: Pinned) -> None:
        if self.pin != source.pin and (self.pin is not None or not source.hashes):
            raise SourceError(
                f"The mirror {self.statement} is of {self.pin or 'no state that it names'}, but "
                f"declared is {source.pin} of {source.address}. Mirror that one and write "
                f'pin = "{source.pin}", or take the mirror out of FACTORY_MIRRORS.'
            )
        missing = [n for n in raw.kept(source.hashes, source.rows) if n not in self.files]
        if missing and not self.partial:
            raise SourceError(
                f"The mirror {self.statement} lacks {len(missing):,} of the declared files, the "
                f"first is {missing[0]}. Add them, or write partial = true."
            )

    def _place(self, name: str, copy: Path) -> None:
        one = self.files[name]
        path = self.root / one.path
        if not path.resolve().is_relative_to(self.root.resolve()):
            raise SourceError(
                f"The mirror {self.statement} names {one.path!r}, which leaves {self.root}. "
                "Files of a mirror lie below its root."
            )
        copy.parent.mkdir(parents=True, exist_ok=True)
        try:
            _copy(path, copy, gunzip=one.gunzip)
        except FileNotFoundError as error:
            raise SourceError(
                f"The mirror {self.statement} names {one.path!r} for {name}, which is not there."
            ) from error
        except (EOFError, gzip.BadGzipFile, zlib.error) as error:
            raise SourceError(f"{path} cannot be gunzipped ({error}). Copy it anew.") from error
        found = alike(copy, one.hash)
        if found != one.hash:
            raise self._other_file(name, found, one.hash)

    def _other_file(self, name: str, found: str, wanted: str) -> SourceError:
        return SourceError(
            f"The mirror {self.statement} has another {name} than the source: its hash is {found}, "
            f"the original's is {wanted}. Nothing of it was used. Copy the file anew."
        )


def read(mirror: Path | None) -> FileMirror | None:
    """The mirror in a folder; none where that is a mirror of another kind.

    Raises:
        SourceError: `mirror.toml` cannot be used.
    """
    if mirror is None or not (mirror / STATEMENT).is_file():
        return None
    statement = mirror / STATEMENT
    try:
        said = Statement.model_validate(tomllib.loads(statement.read_text(encoding="utf-8")))
    except ValidationError as error:
        listed = (f"{'.'.join(map(str, one['loc']))}: {one['msg']}" for one in error.errors())
        raise _unusable(statement, "\n" + "\n".join(f"  {one}" for one in listed)) from error
    except (OSError, ValueError) as error:
        raise _unusable(statement, str(error)) from error
    files = dict(said.files)
    for folder in said.folders:
        for name, one in folder.files():
            if name in files:
                raise _unusable(statement, f"{name} is there twice")
            files[name] = one
    for name in files:
        _refuse_path(name, files, statement)
    return FileMirror(statement, mirror / said.root, said.partial, said.pin, files)


def state(source: Source, mirrors: Path | None) -> str:
    """What of a source a partial mirror holds; empty where the source, or all of it, is read.

    It goes into the input id of raw, so that a partial version is never taken for the whole.
    """
    if not isinstance(source, MIRRORED):
        return ""
    mirror = read(mirror_of(source.address, mirrors))
    return mirror.identity(source) if mirror is not None and mirror.partial else ""


def _refuse_path(name: str, files: Mapping[str, MirrorFile], statement: Path) -> None:
    path = PurePosixPath(name)
    if path.is_absolute() or ".." in path.parts or path.as_posix() != name or "\0" in name:
        raise _unusable(statement, f"{name!r} is no path inside a source")
    inside = next((str(parent) for parent in path.parents if str(parent) in files), None)
    if inside:
        raise _unusable(statement, f"{inside} is a file, and {name} lies in it")


def _unusable(statement: Path, problem: str) -> SourceError:
    return SourceError(f"{statement} cannot be used: {problem}\ndocs/mirrors.md has its form.")


def _copy(path: Path, copy: Path, *, gunzip: bool) -> None:
    if not gunzip:
        shutil.copyfile(path, copy)
        return
    with gzip.open(path) as content, copy.open("wb") as target:
        shutil.copyfileobj(content, target, 1 << 20)
