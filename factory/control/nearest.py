"""How a message names what is known when a name is not: the nearest first."""

import difflib
from collections.abc import Iterable

SHOWN = 12
"""Names listed at most; a longer list helps nobody."""


def naming(name: str, known: Iterable[str]) -> str:
    """`Did you mean smoke?` where one is close, and the known names."""
    names = sorted(known)
    if not names:
        return "None is declared."
    close = difflib.get_close_matches(name, names, n=3, cutoff=0.6)
    meant = f"Did you mean {' or '.join(close)}? " if close else ""
    more = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
    return f"{meant}Known: {', '.join(names[:SHOWN])}{more}."
