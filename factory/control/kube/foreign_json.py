"""JSON that somebody else has written: an object, whatever it holds, or nothing."""

import json
from typing import Any, cast

_SURROGATE = b"\\ud"


def json_object(data: bytes | str) -> dict[str, Any] | None:
    """The object; nothing where it is none, is not all there, or is nested without an end.

    What is in it can be written as UTF-8: half of a pair of surrogates is a question mark.
    """
    text = data if isinstance(data, bytes) else data.encode(errors="replace")
    try:
        found = json.loads(text)
        if _SURROGATE in text.lower():
            found = json.loads(json.dumps(found, ensure_ascii=False).encode(errors="replace"))
    except (ValueError, RecursionError):
        return None
    return cast("dict[str, Any]", found) if isinstance(found, dict) else None
