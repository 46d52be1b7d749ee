"""The checks on removed duplicates that every dataset gets: nothing is lost, nothing made up.

`free_checks` adds them to the `deduplicated` step and has the checks of the other steps.
"""

from collections import Counter
from pathlib import Path

from factory.data import layout
from factory.data.checks import CheckResult


def kept_or_removed(directory: Path) -> CheckResult:
    """Every cleaned sample is in one of the two tables, and none is in both."""
    kept, removed = _kept(directory), _removed(directory, "id")
    cleaned = layout.facts_of(directory)["clean_rows"]
    both = set(kept) & set(removed)
    relation = "=" if cleaned == len(kept) + len(removed) else "is not"
    summary = f"{cleaned:,} cleaned {relation} {len(kept):,} kept + {len(removed):,} removed"
    twice = len(removed) - len(set(removed))
    if both or twice:
        summary += f"; {len(both):,} are both kept and removed, {twice:,} removed twice"
    return CheckResult(
        relation == "=" and not both and not twice,
        summary,
        {"cleaned": cleaned, "kept": len(kept), "removed": len(removed), "both": len(both)},
    )


def removed_for_kept(directory: Path) -> CheckResult:
    """Every removed sample names the kept one that it duplicates."""
    kept = set(_kept(directory))
    named = Counter(_removed(directory, "kept"))
    missing = {one: count for one, count in named.items() if one not in kept}
    summary = f"{named.total():,} removed for {len(named):,} that are kept"
    if missing:
        summary = f"{sum(missing.values()):,} removed for {min(missing)!r} or others that are gone"
    return CheckResult(
        not missing, summary, {"removed": named.total(), "for_missing": sum(missing.values())}
    )


def rows_balanced(directory: Path) -> CheckResult:
    """Of the rows that the source gave, each was kept, rejected or removed."""
    facts = layout.facts_of(directory)
    read, rejected = facts["rows_read"], facts["rejected_rows"]
    kept, removed = len(_kept(directory)), len(_removed(directory, "id"))
    balanced = read == kept + rejected + removed
    return CheckResult(
        balanced,
        f"{read:,} read {'=' if balanced else 'is not'} "
        f"{kept:,} kept + {rejected:,} rejected + {removed:,} duplicates",
        {"read": read, "kept": kept, "rejected": rejected, "duplicates": removed},
    )


CHECKS = (
    ("kept_or_removed", kept_or_removed, True, "Samples cleaned = kept + removed."),
    ("removed_for_kept", removed_for_kept, True, "Each was removed for one that is kept."),
    ("rows_balanced", rows_balanced, True, "Rows read = kept + rejected + duplicates."),
)


def _kept(directory: Path) -> list[str]:
    from factory.data import table

    return table.column(directory / layout.SAMPLES, "id")


def _removed(directory: Path, column: str) -> list[str]:
    from factory.data import table

    return table.column(directory / layout.REMOVED, column)
