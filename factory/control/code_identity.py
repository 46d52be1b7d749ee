"""Which code this is, as far as it can be named without an image: commit, sources, lock."""

import hashlib
import subprocess
from pathlib import Path

from factory.settings import CHECKOUT
from factory.spec import CodeIdentity

PACKAGES = ("factory", "definitions")
SUFFIXES = frozenset({".py", ".yaml", ".json", ".toml"})


def code_identity(checkout: Path = CHECKOUT) -> CodeIdentity:
    """The identity of the code under `checkout`, uncommitted changes included."""
    return CodeIdentity(
        commit=_commit(checkout),
        tree=_tree(checkout),
        lock=_sha256(checkout / "requirements.lock"),
    )


def _commit(checkout: Path) -> str | None:
    try:
        done = subprocess.run(  # noqa: S603 - fixed words and our own path
            ["git", "-C", str(checkout), "rev-parse", "HEAD"],  # noqa: S607 - git of the PATH
            capture_output=True,
            text=True,
            check=True,
            timeout=10,
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.strip() or None


def _tree(checkout: Path) -> str:
    digest = hashlib.sha256()
    files = (p for package in PACKAGES for p in (checkout / package).rglob("*") if _is_source(p))
    for path in sorted(files):
        name = path.relative_to(checkout).as_posix()
        digest.update(f"{name}\0{_sha256(path)}\n".encode())
    return digest.hexdigest()


def _is_source(path: Path) -> bool:
    return path.suffix in SUFFIXES and path.is_file() and "__pycache__" not in path.parts


def _sha256(path: Path) -> str:
    content = path.read_bytes() if path.is_file() else b""
    return hashlib.sha256(content).hexdigest()
