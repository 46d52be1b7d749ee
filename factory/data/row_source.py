"""What of a declaring file decides rows: all of it, but for arguments that only judge or pass on.

`Dataset(checks=..., split=..., tags=...)` at the top level of a file says what must hold of rows,
where they go and what they are called, never what is in them. Without this, a changed bound would
clean a dataset anew. What those arguments decide in other steps is in the parameters of these.
Where the file reads its own dataset by name, as `one.tags` in `clean`, all of it decides.
"""

import ast
import re
from collections.abc import Iterator, Sequence

DECIDE_NO_ROW = frozenset({"checks", "deduplicate", "description", "owners", "split", "tags"})

_LINE_END = re.compile(rb"\r\n|\r|\n")


def deciding(content: bytes, tree: ast.Module) -> bytes:
    """The source of a module without those arguments, and without what stands between the others.

    Args:
        content: the source, in UTF-8.
        tree: the same, parsed.
    """
    declarations = list(_declarations(tree))
    assigned = [target for targets, _ in declarations for target in targets]
    if not declarations or _is_read(assigned, tree):
        return content
    starts = [0, *(found.end() for found in _LINE_END.finditer(content))]
    parts: list[bytes] = []
    position = 0
    for _, call in declarations:
        kept = [
            content[slice(*_span(one, starts))]
            for one in (*call.args, *call.keywords)
            if not (isinstance(one, ast.keyword) and one.arg in DECIDE_NO_ROW)
        ]
        opened = _span(call.func, starts)[1]
        parts += [content[position:opened], b"(", b", ".join(kept), b")"]
        position = _span(call, starts)[1]
    return b"".join([*parts, content[position:]])


def _declarations(tree: ast.Module) -> Iterator[tuple[Sequence[ast.expr], ast.Call]]:
    """What each dataset is assigned to, and the call that makes it."""
    for statement in tree.body:
        if not isinstance(statement, ast.Assign | ast.AnnAssign):
            continue
        call = statement.value
        targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
        if (
            isinstance(call, ast.Call)
            and isinstance(call.func, ast.Name)
            and call.func.id == "Dataset"
        ):
            yield targets, call


def _is_read(targets: list[ast.expr], tree: ast.Module) -> bool:
    """Whether a dataset is asked for anywhere; in a lambda that may be in its declaration."""
    names = {one.id for one in targets if isinstance(one, ast.Name)}
    return any(
        isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load) and node.id in names
        for node in ast.walk(tree)
    )


def _span(node: ast.expr | ast.keyword, starts: list[int]) -> tuple[int, int]:
    """Where a node begins and ends, in bytes."""
    end_line, end_column = node.end_lineno or node.lineno, node.end_col_offset or 0
    return starts[node.lineno - 1] + node.col_offset, starts[end_line - 1] + end_column
