"""Reach: no override of a public run names a file of the private tree, however it is written.

On a cluster the pods of such a run have no private tree (`kube.mounts`). On a machine that has both
trees nothing else would keep it from going on with private weights, or the gate from reading them.
"""

import contextlib
import os
from collections.abc import Iterator, Mapping
from pathlib import Path

from factory.errors import SpecError
from factory.keys import Classification
from factory.spec import RunSpec

_SCHEME = "file://"


def refuse_private(spec: RunSpec, classification: Classification, root: Path) -> None:
    """Refuse a public run that names something private.

    Raises:
        SpecError: all that it names, one per line.
    """
    if classification != "private" and (found := list(named_private(spec.overrides, root))):
        raise SpecError("\n".join(found))


def named_private(overrides: Mapping[str, str], root: Path) -> Iterator[str]:
    """What of the overrides lies in the private tree of that root."""
    tree = root / "private"
    for name, value in sorted(overrides.items()):
        if any(path.is_relative_to(one) for path in _paths(value) for one in _paths(str(tree))):
            yield (
                f"overrides.{name}={value}: lies in the private tree, and the run is public. What "
                "is made of it would be private: name something else, or train on a private mix."
            )


def _paths(text: str) -> set[Path]:
    """Where a text leads if it is a path: by its words, and by the links on this machine."""
    path = text.removeprefix(_SCHEME)
    with contextlib.suppress(OSError, ValueError):
        return {Path(os.path.abspath(path)), Path(path).resolve()}  # noqa: PTH100  no links
    return set()
