"""What a writer keeps over a crash, and files that a new version shares with others.

A step that was cut off finds its work again under its input id, beside the versions of its key and
so in the same tree; only the holder of the `writing` lock touches it. Where it was left for good,
`sweep` removes it when it is old.
"""

import contextlib
import os
import shutil
from dataclasses import dataclass, field
from pathlib import Path

from factory.namespace.manifest import FileEntry


@dataclass
class Work:
    """The directory of one input id, and the files that were taken from elsewhere."""

    path: Path
    links: dict[str, FileEntry] = field(default_factory=dict[str, FileEntry], init=False)
    """Files of the version that other names exist for, with what they must hold."""

    def open(self) -> Path:
        """The directory, made if this is the first attempt."""
        self.path.mkdir(exist_ok=True)
        os.utime(self.path)
        return self.path

    def drop(self) -> None:
        """Give up what was done: the version is published, or can never be made from this."""
        shutil.rmtree(self.path, ignore_errors=True)

    def link(self, source: Path, target: Path, name: str, entry: FileEntry) -> None:
        """Let the version have a file that exists already, of which `entry` says what it holds.

        Only for files that nobody changes: of a published version, or of finished work. Where the
        file system has no hard links, or no more of this file, it is copied.
        """
        target.parent.mkdir(parents=True, exist_ok=True)
        try:
            os.link(source, target)
        except FileExistsError:
            raise
        except OSError:
            with contextlib.suppress(FileNotFoundError):
                target.unlink()
            shutil.copyfile(source, target)
        self.links[name] = entry
