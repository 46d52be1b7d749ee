"""Where things are: a key's directories under the root, and the root itself.

::

    <root>/public/text/plos/raw                 link to the current version, raw.versions/<id>
    <root>/public/text/plos/raw.versions/
        <id>/                                   a version: files, manifest with its hash, checks
        .inputs/                                per input id a link to the newest version of it
        .writing/                               lock of a writer, see `lock`
        .recording/                             lock of who records checks or moves the link
        .staging-<token>/                       what a writer has not published yet
        .work-<input id>/                       what a writer keeps over a crash, see `work`
    <root>/<classification>/runs/<run id>/      run directories, see `runs`

Segments of a key have no dots, so nothing here can be taken for a key.
"""

import contextlib
import hashlib
import re
from dataclasses import dataclass
from pathlib import Path

from factory.errors import NamespaceError
from factory.keys import Key

VERSIONS = ".versions"
WORK = "work"
INPUTS = ".inputs"
_VERSION = re.compile(r"[0-9a-f]{20}")


def is_version_id(name: str) -> bool:
    """Whether that can be the name of a version's directory."""
    return _VERSION.fullmatch(name) is not None


@dataclass(frozen=True)
class Place:
    """The directories of one key."""

    root: Path
    key: Key

    @property
    def link(self) -> Path:
        """`<key>`: the symbolic link to the current version."""
        return self.root / self.key.path

    @property
    def versions(self) -> Path:
        """`<key>.versions`."""
        return self.link.with_name(self.link.name + VERSIONS)

    @property
    def writing(self) -> Path:
        """The lock that a writer holds from its first file to the end of publishing."""
        return self.versions / ".writing"

    @property
    def recording(self) -> Path:
        """The lock held for moments, while check results or the link are replaced."""
        return self.versions / ".recording"

    @property
    def inputs(self) -> Path:
        """The index from input ids to versions."""
        return self.versions / INPUTS

    def input_link(self, input_id: str) -> Path:
        """The entry of that input id in the index."""
        return self.inputs / hashlib.sha256(input_id.encode()).hexdigest()[:40]

    def work(self, input_id: str) -> Path:
        """Where a writer keeps what it has finished of the version made from that input."""
        return self.scratch(WORK, self.input_link(input_id).name)

    def version(self, version: str) -> Path:
        """The directory of that version."""
        return self.versions / version

    def target(self, version: str) -> str:
        """What the link holds when that version is current; relative, so the root can move."""
        return f"{self.versions.name}/{version}"

    def scratch(self, kind: str, token: str) -> Path:
        """A name that only the holder of `token` uses, on the same file system."""
        return self.versions / f".{kind}-{token}"

    def published(self) -> list[str]:
        """Ids of the versions that exist, in no order."""
        with contextlib.suppress(FileNotFoundError):
            return [path.name for path in self.versions.iterdir() if is_version_id(path.name)]
        return []

    def refuse_conflict(self) -> None:
        """Refuse a key above or below another: one's version would lie inside the other's.

        Called after this key's own lock exists, so of two writers at least one sees the other.

        Raises:
            NamespaceError: such a key has versions or is being written.
        """
        if self.link.is_dir() and not self.link.is_symlink():
            try:
                self.link.rmdir()  # left empty by a write that failed
            except OSError:
                raise NamespaceError(
                    f"{self.key} cannot be a version: other keys lie below it in {self.link}. "
                    "Choose a key that is not above another."
                ) from None
        above = self.link.parent
        while above.parent != self.root:
            versions = above.with_name(above.name + VERSIONS)
            if above.is_symlink() or _in_use(versions):
                raise NamespaceError(
                    f"{self.key} lies below {above.relative_to(self.root)}, which has versions of "
                    "its own; it would be a directory inside them. Choose another key."
                )
            above = above.parent


def _in_use(versions: Path) -> bool:
    with contextlib.suppress(FileNotFoundError):
        return any(
            is_version_id(path.name) or path.name == ".writing" for path in versions.iterdir()
        )
    return False


def require_root(root: Path) -> None:
    """Check that the namespace is there, before anything is created under a missing mount.

    Raises:
        NamespaceError: the root is missing or not a directory.
    """
    if root.is_dir():
        return
    problem = "is not a directory" if root.exists() else "does not exist"
    raise NamespaceError(
        f"The namespace root {root} {problem}. Mount it, create it with `mkdir -p`, "
        "or set FACTORY_ROOT to where it is."
    )
