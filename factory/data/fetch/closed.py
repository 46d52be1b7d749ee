"""Closed directories: the namespace and the drop zone, which no public source is read from.

A source is public because of what it is, `Git` or a store of objects, and its address can be a path
of this machine. Paths are judged by where they lead.
"""

from pathlib import Path
from urllib.parse import unquote, urlsplit

from factory.data.fetch.errand import Errand
from factory.errors import ClassificationError
from factory.keys import Classification


def refuse_closed(path: Path, classification: Classification, errand: Errand) -> None:
    """Refuse to read a file or folder of this machine for a public source.

    Raises:
        ClassificationError: it lies in a closed directory, or leads there.
    """
    if classification == "private":
        return
    found = path.resolve()
    for closed in errand.closed:
        if found.is_relative_to(closed.resolve()):
            raise ClassificationError(
                f"{path} leads into {closed}, where private data may lie, and the source is "
                "public. Use Derived for what is in the namespace, PartnerDrop or LocalFiles for "
                "what was delivered."
            )


def local_path(url: str) -> Path | None:
    """The path of this machine that an address names, if it names one."""
    parts = urlsplit(url)
    if parts.scheme in ("file", "local"):
        return Path("/" + unquote(parts.netloc + parts.path).lstrip("/"))
    return Path(url) if parts.scheme == "" and url.startswith("/") else None
