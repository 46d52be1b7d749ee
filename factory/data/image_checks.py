"""The check on images that every dataset gets which declares any.

`free_checks` adds it to the steps whose versions have a table of images.
"""

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from factory.data import layout
from factory.data.checks import CheckResult

SHOWN_IN = (
    "image_text.parts.list.element.image",
    "conversation.messages.list.element.parts.list.element.image",
)
"""Where a sample names images, as Parquet calls it."""


def images_stored(directory: Path) -> CheckResult:
    """Every image that a sample shows is stored, and none is stored twice."""
    from factory.data import table

    stored: Counter[str] = Counter()
    if (directory / layout.IMAGES).is_dir():
        stored.update(table.column(directory / layout.IMAGES, "sha256"))
    shown = set(_shown(directory / layout.SAMPLES))
    missing, twice = shown - stored.keys(), stored.total() - len(stored)
    summary = f"{len(shown):,} images shown, {len(stored):,} stored"
    if missing:
        summary += f"; {len(missing):,} of those shown are not stored, as {min(missing)[:16]}"
    if twice:
        summary += f"; {twice:,} are stored again"
    return CheckResult(
        not missing and not twice,
        summary,
        {"shown": len(shown), "stored": len(stored), "missing": len(missing), "again": twice},
    )


def _shown(samples: Path) -> Iterator[str]:
    import pyarrow as pa
    import pyarrow.compute as pc

    from factory.data import table

    for path in table.files(samples):
        for batch in table.batches(path, list(SHOWN_IN)):
            for column in batch.columns:
                yield from _leaves(pa, pc, column)


def _leaves(pa: Any, pc: Any, values: Any) -> list[str]:
    """The texts at the bottom of nested lists and structs with one field each."""
    while not pa.types.is_string(values.type):
        nested = pa.types.is_list(values.type)
        values = pc.list_flatten(values) if nested else pc.struct_field(values, [0])
    return pc.unique(values.drop_null()).to_pylist()
