"""The checks that every dataset gets, and running all checks of a version.

What a declaration can add is in `checks`; the checks on removed duplicates are written in
`duplicate_checks`, that on images in `image_checks`, that on entries in `entry_checks`. All of
these block: a version that fails one stays beside the current one and never replaces it.
"""

import hashlib
import math
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING, Any

from factory.data import duplicate_checks, image_checks, layout
from factory.data.check_form import form
from factory.data.checks import Check, CheckResult
from factory.data.entry_checks import EntriesEqualSplit

if TYPE_CHECKING:
    from factory.data.dataset import Dataset
    from factory.data.steps import Step
    from factory.namespace import CheckRecord, Namespace, Version

SHOWN = 3
"""Offenders that a summary names."""


def free_checks(kind: str, dataset: "Dataset") -> tuple[Check, ...]:
    """The checks of a step that nobody has to declare."""
    images = _images(dataset, kind)
    match kind:
        case "raw":
            return (_check("files_intact", files_intact, kind, "Every file is there, unchanged."),)
        case "clean":
            return (
                _check("schema", schema, kind, "The columns are those of samples."),
                _check("ids_unique", ids_unique, kind, "Every sample has an id of its own."),
                _check("has_rows", has_rows, kind, "At least one sample was kept."),
                _check("rows_accounted", rows_accounted, kind, "Rows read = kept + rejected."),
                *images,
            )
        case "deduplicated":
            ids = _check("ids_unique", ids_unique, kind, "Every sample has an id of its own.")
            return (ids, *(Check(*one, step=kind) for one in duplicate_checks.CHECKS), *images)
        case "split":
            names = tuple(dataset.split)
            shares = Shares(tuple(dataset.split.items()))
            return (
                _check("disjoint", Disjoint(names), kind, "No group is in two splits."),
                _check("nothing_lost", NothingLost(names), kind, "The splits hold every sample."),
                _check("shares", shares, kind, "Each split has its share of the groups."),
            )
        case _:
            return (
                _check("index_opens", index_opens, kind, "Energon's index of the shards opens."),
                _check("count_equals_split", count_equals_split, kind, "As many as the split."),
                _check(
                    "entries_equal_split",
                    EntriesEqualSplit(dataset.loss),
                    kind,
                    "Entries, images and loss policy are those of the split.",
                ),
            )


def run_checks(
    step: "Step", version: "Version", namespace: "Namespace"
) -> "dict[str, CheckRecord]":
    """Run every check of a step on a version and record the results beside it."""
    from factory.namespace import CheckRecord

    records: dict[str, CheckRecord] = {}
    for check in step.checks:
        result = run_one(check, version.path)
        records[check.name] = CheckRecord(
            passed=result.passed,
            blocking=check.blocking,
            summary=result.summary,
            facts=dict(result.facts),
            checked_at=datetime.now(UTC).isoformat(timespec="seconds"),
            form=form(check),
        )
    namespace.record_checks(version, records)
    return records


def run_one(check: Check, directory: Path) -> CheckResult:
    """A check that raises has not passed: a missing file must not look like a good one."""
    try:
        return check.function(directory)
    except Exception as error:
        return CheckResult(False, f"the check could not run: {type(error).__name__}: {error}")


def files_intact(directory: Path) -> CheckResult:
    """Hash every file again and compare with the manifest."""
    damage: list[str] = []
    files = layout.manifest_of(directory).files
    for name, entry in files.items():
        path = directory / name
        if not path.is_file():
            damage.append(f"{name} is missing")
        elif path.stat().st_size != entry.size or _sha256(path) != entry.sha256:
            damage.append(f"{name} differs")
    return CheckResult(
        not damage,
        _first(damage) if damage else f"{len(files):,} files as fetched",
        {"files": len(files), "damaged": len(damage)},
    )


def schema(directory: Path) -> CheckResult:
    """Compare the columns with those that samples have."""
    from factory.data import table

    differing = table.differences(directory / layout.SAMPLES)
    return CheckResult(
        not differing,
        _first(differing) if differing else "the columns of samples",
        {"differing": differing},
    )


def ids_unique(directory: Path) -> CheckResult:
    """Find ids that are missing or repeated."""
    from factory.data import table

    ids = table.column(directory / layout.SAMPLES, "id")
    seen: set[str] = set()
    repeated = [one for one in ids if one in seen or seen.add(one)]
    missing = sum(1 for one in ids if not one)
    problems = [f"id {one!r} is repeated" for one in dict.fromkeys(repeated)]
    if missing:
        problems.insert(0, f"{missing:,} samples have no id")
    return CheckResult(
        not problems,
        _first(problems) if problems else f"{len(ids):,} different ids",
        {"samples": len(ids), "repeated": len(repeated), "missing": missing},
    )


def has_rows(directory: Path) -> CheckResult:
    """Count the samples kept."""
    from factory.data import table

    count = table.rows(directory / layout.SAMPLES)
    facts = layout.facts_of(directory)
    summary = f"{count:,} samples of {facts['rows_read']:,} rows"
    if not count:
        summary += f"; rejected: {facts['rejected'] or 'none, so the source has no rows'}"
    return CheckResult(count > 0, summary, {"samples": count})


def rows_accounted(directory: Path) -> CheckResult:
    """Compare what was read with what lies in the two tables."""
    from factory.data import table

    read = layout.facts_of(directory)["rows_read"]
    kept = table.rows(directory / layout.SAMPLES)
    rejected = table.rows(directory / layout.REJECTED)
    relation = "=" if read == kept + rejected else "is not"
    return CheckResult(
        read == kept + rejected,
        f"{read:,} read {relation} {kept:,} kept + {rejected:,} rejected",
        {"read": read, "kept": kept, "rejected": rejected},
    )


@dataclass(frozen=True, slots=True)
class Disjoint:
    """No group is in two splits."""

    splits: tuple[str, ...]

    def __call__(self, directory: Path) -> CheckResult:
        """Intersect the groups of every two splits."""
        groups = {name: _groups(directory, name) for name in self.splits}
        shared = [
            f"group {min(common)!r} is in {one} and {other}"
            for one, other in combinations(self.splits, 2)
            if (common := groups[one] & groups[other])
        ]
        counts = {name: len(found) for name, found in groups.items()}
        return CheckResult(
            not shared, _first(shared) if shared else "no group in two splits", {"groups": counts}
        )


@dataclass(frozen=True, slots=True)
class NothingLost:
    """The splits together hold exactly the samples that were to be split."""

    splits: tuple[str, ...]

    def __call__(self, directory: Path) -> CheckResult:
        """Hash the union of the splits and compare with the hash of what was split."""
        from factory.data import table
        from factory.data.content import RowsHash

        found = RowsHash()
        counts: dict[str, int] = {}
        for name in self.splits:
            before = found.count
            for row in table.plain_rows(directory / layout.split_table(name)):
                found.add(row)
            counts[name] = found.count - before
        facts = layout.facts_of(directory)
        same = found.hexdigest() == facts["input_content"]
        relation = "the same as" if same else "not the same as"
        return CheckResult(
            same,
            f"{found.count:,} samples, {relation} the {facts['input_rows']:,} to split",
            {"samples": counts, "to_split": facts["input_rows"]},
        )


@dataclass(frozen=True, slots=True)
class Shares:
    """Each split has its share of the groups, as far as chance allows."""

    shares: tuple[tuple[str, float], ...]

    def __call__(self, directory: Path) -> CheckResult:
        """Allow the larger of one point and three binomial standard deviations.

        A split that was filled because the hash left it empty has more than its share by design:
        what was moved is allowed for.
        """
        counts = {name: len(_groups(directory, name)) for name, _ in self.shares}
        total = sum(counts.values())
        moved = sum(layout.facts_of(directory)["filled"].values())
        seen: dict[str, Any] = {}
        wrong: list[str] = []
        for name, share in self.shares:
            found = counts[name] / total if total else 0.0
            deviation = 3 * math.sqrt(share * (1 - share) / total) if total else 0.0
            allowed = max(0.01, deviation) + (moved / total if total else 0.0)
            seen[name] = {"share": found, "declared": share, "allowed_difference": allowed}
            if abs(found - share) > allowed:
                wrong.append(f"{name} has {found:.2%}, not {share:.2%} within {allowed:.2%}")
        shown = ", ".join(f"{name} {value['share']:.1%}" for name, value in seen.items())
        return CheckResult(not wrong and total > 0, _first(wrong) if wrong else shown, seen)


def index_opens(directory: Path) -> CheckResult:
    """Open Energon's index of the shards and compare it with the shards."""
    from factory.data import energon

    problems = energon.index_problems(directory)
    return CheckResult(
        not problems,
        _first(problems) if problems else "the index names every entry of every shard",
        {"problems": len(problems)},
    )


def count_equals_split(directory: Path) -> CheckResult:
    """Compare the number of entries with the number of samples of the split."""
    from factory.data import energon

    count = energon.count(directory)
    wanted = layout.facts_of(directory)["split_rows"]
    return CheckResult(
        count == wanted,
        f"{count:,} entries, {wanted:,} samples in the split",
        {"entries": count, "split_rows": wanted},
    )


def _images(dataset: "Dataset", kind: str) -> tuple[Check, ...]:
    if dataset.images is None:
        return ()
    says = "Every image that is shown is stored, once."
    return (_check("images_stored", image_checks.images_stored, kind, says),)


def _check(name: str, function: Any, kind: str, description: str) -> Check:
    return Check(name, function, True, description, kind)


def _groups(directory: Path, name: str) -> set[str]:
    from factory.data import table

    return set(table.column(directory / layout.split_table(name), "group"))


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _first(problems: Iterable[str]) -> str:
    listed = list(problems)
    more = len(listed) - SHOWN
    return "; ".join(listed[:SHOWN]) + (f"; and {more:,} more" if more > 0 else "")
