"""Hashes of files, as those who publish them state them."""

import hashlib
from pathlib import Path


def sha256(path: Path) -> str:
    """The sha256 of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def git_blob(path: Path) -> str:
    """What Git calls a file of this content."""
    digest = hashlib.sha1(b"blob %d\0" % path.stat().st_size, usedforsecurity=False)
    with path.open("rb") as file:
        while chunk := file.read(1 << 20):
            digest.update(chunk)
    return digest.hexdigest()


def alike(path: Path, stated: str) -> str:
    """The hash of a file of the same kind as the stated one: 40 digits are Git's, 64 a sha256."""
    return git_blob(path) if len(stated) == 40 else sha256(path)
