"""Fields of an API server's objects. What is missing, or of another type, reads as empty.

An object may come from a version that nobody has seen yet, so nothing here raises.
"""

import re
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, cast

type Object = Mapping[str, Any]

GPU = "nvidia.com/gpu"


def mapping(value: Any, *path: str) -> Object:
    """The object at the end of the path."""
    for name in path:
        value = cast("Object", value).get(name) if isinstance(value, Mapping) else None
    return cast("Object", value) if isinstance(value, Mapping) else {}


def objects(value: Any, *path: str) -> list[Object]:
    """The objects of the list at the end of the path."""
    for name in path:
        value = mapping(value).get(name)
    if isinstance(value, str | bytes) or not isinstance(value, Sequence):
        return []
    return [cast("Object", one) for one in cast("Sequence[Any]", value) if isinstance(one, Mapping)]


def text(value: Any, *path: str) -> str:
    """The text at the end of the path."""
    found = mapping(value, *path[:-1]).get(path[-1])
    return found if isinstance(found, str) else ""


def count(value: Any, *path: str) -> int:
    """The whole number at the end of the path; 0 where there is none."""
    found = mapping(value, *path[:-1]).get(path[-1])
    return found if isinstance(found, int) and not isinstance(found, bool) else 0


def moment(value: Any, *path: str) -> datetime | None:
    """The time at the end of the path, in UTC."""
    try:
        found = datetime.fromisoformat(text(value, *path))
        found = found.replace(tzinfo=found.tzinfo or UTC).astimezone(UTC)
    except (ValueError, OverflowError):
        return None
    return found if 1970 <= found.year < 2200 else None  # so that seconds can be added


def amount(value: Any, *path: str) -> float | None:
    """A quantity without a unit, or in thousandths: `8`, `"8"`, `"300m"`."""
    found = mapping(value, *path[:-1]).get(path[-1])
    if isinstance(found, int | float) and not isinstance(found, bool):
        return float(found)
    if not isinstance(found, str):
        return None
    matched = re.fullmatch(r"(-?[0-9]{1,15}(?:\.[0-9]{1,15})?)(m?)", found)
    return float(matched[1]) / (1000 if matched[2] else 1) if matched else None


def name(value: Any) -> str:
    """The object's name."""
    return text(value, "metadata", "name")


def label(value: Any, key: str) -> str:
    """One label of the object."""
    return text(value, "metadata", "labels", key)


def condition(value: Any, kind: str) -> Object:
    """The condition of that type in the object's status."""
    for one in objects(value, "status", "conditions"):
        if text(one, "type") == kind:
            return one
    return {}


def holds(value: Any, kind: str) -> bool:
    """Whether the object says that the condition is true."""
    return text(condition(value, kind), "status") == "True"


def is_leaving(value: Any) -> bool:
    """Whether the object has been told to go."""
    return bool(text(value, "metadata", "deletionTimestamp"))


def at(event: Object) -> datetime | None:
    """When an event was last seen."""
    return (
        moment(event, "lastTimestamp")
        or moment(event, "series", "lastObservedTime")
        or moment(event, "eventTime")
        or moment(event, "metadata", "creationTimestamp")
    )


def since(event: Object) -> datetime | None:
    """When an event was first seen."""
    return moment(event, "firstTimestamp") or moment(event, "eventTime") or at(event)


def short(words: str, longest: int = 300) -> str:
    """A message as one line that fits into a sentence."""
    line = " ".join(words.split()).rstrip(". ")
    return line if len(line) <= longest else line[: longest - 3] + "..."
