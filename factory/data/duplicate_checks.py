"""The checks on removed duplicates that every dataset gets: nothing is lost, nothing made up.

`free_checks` adds them to the `deduplicated` step and has the checks of the other steps.
"""

from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, cast

from factory.data import layout
from factory.data.checks import CheckResult

if TYPE_CHECKING:
    from factory.data.content import RowsHash


def hash_of_ids(files: Iterable[Path]) -> "RowsHash":
    """The hash of the ids in files of a table, each as often as it is there; in any order."""
    from factory.data.content import RowsHash

    found = RowsHash()
    for path in files:
        for one in _column(path, "id"):
            found.add({"id": one})
    return found


def kept_or_removed(directory: Path) -> CheckResult:
    """Every cleaned sample is in one of the two tables, by its id, and none is in both.

    Compared are hashes of the ids, as many times as they come: only where they differ, ids are
    held to say how.
    """
    from factory.data import table
    from factory.data.content import RowsHash

    cleaned = RowsHash.from_facts(layout.facts_of(directory)["clean_ids"])
    kept = hash_of_ids(table.files(directory / layout.SAMPLES))
    removed = hash_of_ids(table.files(directory / layout.REMOVED))
    counts = {"cleaned": cleaned.count, "kept": kept.count, "removed": removed.count}
    same = cleaned.count == kept.count + removed.count
    summary = (
        f"{cleaned.count:,} cleaned {'=' if same else 'is not'} {kept.count:,} kept + "
        f"{removed.count:,} removed"
    )
    kept.merge(removed)
    if kept == cleaned:
        return CheckResult(True, summary, counts)
    found = Counter(_ids(directory, layout.SAMPLES))
    gone = Counter(_ids(directory, layout.REMOVED))
    both, twice = len(found.keys() & gone.keys()), gone.total() - len(gone)
    if both or twice:
        summary += f"; {both:,} are both kept and removed, {twice:,} removed twice"
    elif same:
        summary += "; but others: their ids are not those of the cleaned samples"
    return CheckResult(False, summary, counts | {"both": both})


def removed_for_kept(directory: Path) -> CheckResult:
    """Every removed sample names the kept one that it duplicates."""
    named = Counter(_ids(directory, layout.REMOVED, "kept"))
    missing = Counter(named)
    for one in _ids(directory, layout.SAMPLES):
        del missing[one]
    summary = f"{named.total():,} removed for {len(named):,} that are kept"
    if missing:
        summary = f"{missing.total():,} removed for {min(missing)!r} or others that are gone"
    return CheckResult(
        not missing, summary, {"removed": named.total(), "for_missing": missing.total()}
    )


def rows_balanced(directory: Path) -> CheckResult:
    """Of the rows that the source gave, each was kept, rejected or removed."""
    from factory.data import table

    facts = layout.facts_of(directory)
    read, rejected = facts["rows_read"], facts["rejected_rows"]
    kept = table.rows(directory / layout.SAMPLES)
    removed = table.rows(directory / layout.REMOVED)
    balanced = read == kept + rejected + removed
    return CheckResult(
        balanced,
        f"{read:,} read {'=' if balanced else 'is not'} "
        f"{kept:,} kept + {rejected:,} rejected + {removed:,} duplicates",
        {"read": read, "kept": kept, "rejected": rejected, "duplicates": removed},
    )


CHECKS = (
    ("kept_or_removed", kept_or_removed, True, "Samples cleaned = kept + removed, each by its id."),
    ("removed_for_kept", removed_for_kept, True, "Each was removed for one that is kept."),
    ("rows_balanced", rows_balanced, True, "Rows read = kept + rejected + duplicates."),
)


def _ids(directory: Path, name: str, column: str = "id") -> Iterator[str]:
    from factory.data import table

    for path in table.files(directory / name):
        yield from _column(path, column)


def _column(path: Path, name: str) -> Iterator[str]:
    from factory.data import table

    for batch in table.batches(path, [name]):
        yield from cast("list[str]", batch.column(name).to_pylist())
