"""Reasons for which rows were rejected, as they may be shown.

Of a private dataset only what the declaration spells out: any other reason may quote a row.
"""

import ast
import functools
from collections.abc import Mapping
from pathlib import Path

HIDDEN_REASON = "(a reason with text of its own; in the table of rejected rows)"


def shown(reasons: Mapping[str, int], declared_in: Path, *, confidential: bool) -> dict[str, int]:
    """Counts by reason, the most frequent first."""
    counts: dict[str, int] = {}
    for reason, count in reasons.items():
        hidden = confidential and reason not in _words_of(declared_in)
        name = HIDDEN_REASON if hidden else reason
        counts[name] = counts.get(name, 0) + count
    return dict(sorted(counts.items(), key=lambda item: -item[1]))


@functools.cache
def _words_of(declaration: Path) -> frozenset[str]:
    """Every string that the declaration spells out, so that none of them comes from a row."""
    tree = ast.parse(declaration.read_bytes())
    return frozenset(
        node.value
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    )
