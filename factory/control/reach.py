"""Reach: no override of a public run names a file of the private tree, however it is written.

On a cluster the pods of such a run have no private tree (`kube.mounts`). On a machine that has both
trees nothing else would keep it from going on with private weights, or the gate from reading them.
"""

import contextlib
import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from urllib.parse import unquote

from factory.errors import SpecError
from factory.keys import Classification
from factory.spec import RunSpec

_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:")
_LIST = r"[\[\](){}'\",;]"
_BETWEEN = (re.compile(_LIST), re.compile(rf"{_LIST}|\s"))
"""What lies between the items of a list; a path may hold blanks, or be followed by one."""


def refuse_private(spec: RunSpec, classification: Classification, root: Path) -> None:
    """Refuse a public run that names something private.

    Raises:
        SpecError: all that it names, one per line.
    """
    if classification != "private" and (found := list(named_private(spec.overrides, root))):
        raise SpecError("\n".join(found))


def named_private(overrides: Mapping[str, str], root: Path) -> Iterator[str]:
    """What of the overrides lies in the private tree of that root."""
    tree = _places(str(root / "private"))
    for name, value in sorted(overrides.items()):
        places = (place for path in _paths(value) for place in _places(path))
        if any(place.is_relative_to(one) for place in places for one in tree):
            yield (
                f"overrides.{name}={value}: lies in the private tree, and the run is public. What "
                "is made of it would be private: name something else, or train on a private mix."
            )


def _paths(text: str) -> set[str]:
    """Every path that somebody may read in a text: by itself, in a URL, in a list of any of them.

    The trainer is given a text without the blanks around it, and its libraries know more spellings
    than are listed anywhere. In all of them an absolute path begins with one of the slashes.
    """
    whole = {text, unquote(text)}
    items = {item.strip() for one in whole for between in _BETWEEN for item in between.split(one)}
    found = items | {one.strip() for one in whole}
    bare = {_SCHEME.sub("", one, count=1) for one in found if _SCHEME.match(one)}
    inner = {one[at:] for one in found for at, letter in enumerate(one) if letter == "/"}
    return {one for one in found | bare | inner if one}


def _places(path: str) -> set[Path]:
    """Where a path leads: by its words, and by the links on this machine."""
    with contextlib.suppress(ValueError):
        path = os.path.expanduser(path)  # noqa: PTH111  an unknown user is no error
    found = {Path(os.path.abspath(path))}  # noqa: PTH100  no links
    with contextlib.suppress(OSError, ValueError):
        found.add(Path(os.path.realpath(path)))
    return found
