"""Objects of a store that fsspec can read, S3 above all, each held to its declared sha256.

An object arrives in parts in a file that is named by its hash; what has arrived stays over a broken
connection and over a restart. Nothing of an object is used before its hash is right. Credentials
are found by the store's own library in the environment; messages name addresses and kinds of
errors, and never quote what a library says, because that may hold an identity or a signature.
"""

import re
import shutil
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from factory.data import raw
from factory.data.fetch.closed import local_path, refuse_closed
from factory.data.fetch.errand import Errand
from factory.data.fetch.hashes import sha256
from factory.data.progress import Ticker
from factory.data.source_files import refuse_outside
from factory.data.stores import S3, Fsspec
from factory.errors import DeclarationError, SourceError

AT_ONCE = 8
"""Objects at the same time."""

CHUNK_BYTES = 8 << 20
SECONDS_BEFORE_RETRY = (0.2, 1.0, 3.0, 10.0)

_LINE = re.compile(r"([0-9a-f]{64}) [ *](?:\./)?(.+)")


def fetch(source: Fsspec, errand: Errand) -> Path:
    """The folder that holds the objects, by their paths below the address.

    Raises:
        SourceError: they cannot be fetched whole, or their hashes are others.
    """
    store = _store(source, errand)
    local = errand.mirror or local_path(source.url)
    if local is not None:  # before anything there is read, its manifest included
        refuse_closed(local, source.classification, errand)
    hashes = source.hashes or _read_manifest(source, store)
    names = raw.wanted_of(list(hashes), source.rows)
    if local is not None:
        for name in names:
            refuse_closed(local / name, source.classification, errand)
    ticker = Ticker(errand.say, "objects fetched")
    with ThreadPoolExecutor(AT_ONCE) as pool:
        first_names = {hashes[name]: name for name in names}
        under_way = [pool.submit(store.fetch, name, one) for one, name in first_names.items()]
        try:
            for one in ticker.over(as_completed(under_way)):
                one.result()
        except BaseException:
            pool.shutdown(cancel_futures=True)
            raise
    files = errand.scratch / "files"
    shutil.rmtree(files, ignore_errors=True)
    for name in names:
        copy = files / name
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(store.arrived(hashes[name]), copy)
    return files


@dataclass(frozen=True)
class _Store:
    """Where the objects are, and where they go."""

    system: Any
    base: str
    address: str
    parts: Path

    def arrived(self, wanted: str) -> Path:
        return self.parts / wanted

    def fetch(self, name: str, wanted: str) -> Path:
        """Bring one object here, whole and right."""
        target = self.arrived(wanted)
        part = target.with_suffix(".part")
        if target.exists():
            return target
        resumed = part.exists()
        self._receive(name, part)
        if (found := sha256(part)) != wanted and resumed:
            part.unlink()  # what was there before may have been of another object
            self._receive(name, part)
            found = sha256(part)
        if found != wanted:
            part.unlink()
            raise SourceError(
                f"{self.address}/{name} is not the file that was declared: its sha256 is {found}, "
                f"declared is {wanted}. Nothing of it was used. Has somebody replaced it? Look at "
                "it before you change the declaration."
            )
        part.replace(target)
        return target

    def _receive(self, name: str, part: Path) -> None:
        path = f"{self.base}/{name}"
        size = int(self._asked(name, lambda: self.system.info(path)["size"]))
        if part.exists() and part.stat().st_size > size:
            part.unlink()
        with part.open("ab") as file:
            while (start := file.tell()) < size:
                end = min(start + CHUNK_BYTES, size)
                chunk = self._asked(name, lambda: self._range(path, start, end))  # noqa: B023
                if len(chunk) != end - start:
                    raise SourceError(
                        f"{self.address} sends other parts of {name} than those asked for. "
                        "Declare the file with Http, which does not depend on it."
                    )
                file.write(chunk)

    def _range(self, path: str, start: int, end: int) -> bytes:
        return self.system.cat_file(path, start=start, end=end)

    def _asked[T](self, name: str, ask: Callable[[], T]) -> T:
        """Ask the store, and again where the way to it may have failed."""
        waits = iter(SECONDS_BEFORE_RETRY)
        while True:
            try:
                return ask()
            except Exception as error:
                problem, final = _problem(error), _is_final(error)
            wait = next(waits, None)
            if final or wait is None:
                # Outside the handler: what the library said must not become the cause.
                raise SourceError(f"{self.address}/{name} {problem}")
            time.sleep(wait)


def _store(source: Fsspec, errand: Errand) -> _Store:
    import fsspec.core

    parts = errand.scratch / "parts"
    parts.mkdir(exist_ok=True)
    options: dict[str, Any] = {}
    if isinstance(source, S3) and source.anonymous and errand.mirror is None:
        options["anon"] = True
    url = str(errand.mirror or source.url)
    url_to_fs: Any = fsspec.core.url_to_fs
    problem = ""
    try:
        system, base = url_to_fs(url, skip_instance_cache=True, **options)
    except ImportError as error:
        problem = f"needs a package that is not installed ({error.name or 'see fsspec'})"
    except ValueError:
        problem = "is of a protocol that fsspec does not know"
    else:
        return _Store(system, str(base).rstrip("/"), url.rstrip("/"), parts)
    raise SourceError(f"{source.url} {problem}.")


def _read_manifest(source: Fsspec, store: _Store) -> Mapping[str, str]:
    """The hashes that a file of the store states; its own is declared."""
    name, wanted = source.manifest or "", source.manifest_sha256 or ""
    text = store.fetch(name, wanted).read_text(encoding="utf-8", errors="replace")
    hashes: dict[str, str] = {}
    for number, line in enumerate(text.splitlines(), start=1):
        found = _LINE.fullmatch(line)
        if found is None:
            raise SourceError(
                f"{source.url}/{name}, line {number}: not a sha256, two spaces and a path, as "
                "`sha256sum` writes them."
            )
        try:
            refuse_outside(found[2], f"the folder {source.url}", "Path")
        except DeclarationError as error:
            raise SourceError(f"{source.url}/{name}, line {number}: {error}") from error
        hashes[found[2]] = found[1]
    return hashes


def _is_final(error: Exception) -> bool:
    of_identity = "Credentials" in type(error).__name__ or "Token" in type(error).__name__
    return of_identity or isinstance(error, FileNotFoundError | PermissionError)


def _problem(error: Exception) -> str:
    kind = type(error).__name__
    match error:
        case FileNotFoundError():
            return "is not there. Check the address and the path, and that it was uploaded."
        case PermissionError():
            return (
                "may not be read with the credentials of this environment. Ask for access, or run "
                "the step where the identity has it."
            )
        case _ if _is_final(error):
            return (
                f"needs credentials that this environment does not have ({kind}). Set them as the "
                "store's own tools read them; for an open bucket declare anonymous=True."
            )
        case _:
            return (
                f"could not be fetched in {len(SECONDS_BEFORE_RETRY) + 1} tries ({kind}). What "
                "arrived is kept, and running the step again goes on from there. FACTORY_MIRRORS "
                "can name a local copy."
            )
