"""Publishing: finished work becomes files of the version, without being copied."""

from collections.abc import Sequence
from pathlib import Path

from factory.data import table
from factory.data.finished import Finished
from factory.namespace import Staging, Version


def take_over(staging: Staging, directory: str, name: str, done: Sequence[Finished]) -> None:
    """Make a table of the version from one file of each finished shard."""
    for number, one in enumerate(done):
        target = table.file(Path(directory), number)
        staging.link(one.file(name), target.as_posix(), one.files[name])


def share(staging: Staging, version: Version, directory: str) -> None:
    """Let the version have the files that another one has in that directory."""
    for name, entry in version.manifest.files.items():
        if name.startswith(f"{directory}/"):
            staging.link(version.path / name, name, entry)
