"""The card of a dataset: what its deduplicated version holds, and where the other rows went.

Here are the facts, without text of any row; of a private dataset only figures of the whole.
`card_words` puts them into words, `card_page` makes a page in Dagster of them, `factory card`
prints them.
"""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from factory.control import reasons
from factory.data import layout
from factory.data.dataset import Dataset
from factory.data.image_facts import ImageFacts, image_facts
from factory.data.statistics import Statistics
from factory.keys import PrivateKey

if TYPE_CHECKING:
    from factory.namespace import Version

PARTIAL = "PARTIAL: made from a mirror that holds only some of the source."


@dataclass(frozen=True, kw_only=True)
class Card:
    """What is told of one version."""

    dataset: str
    version: str
    confidential: bool
    warnings: tuple[str, ...]
    """What keeps this version from being the whole dataset."""

    license: str
    """As declared."""

    licenses: Mapping[str, int]
    """Samples by licence; empty for a private dataset, where the words are a row's own."""

    license_count: int
    kept: int
    read: int
    rejected: Mapping[str, int]
    duplicates: Mapping[str, int]
    statistics: Statistics | None
    """None for a version that was made before they were counted, or counted otherwise."""

    images: ImageFacts | None

    def facts(self) -> dict[str, Any]:
        """As JSON."""
        counted = self.statistics
        return {
            "dataset": self.dataset,
            "version": self.version,
            "warnings": list(self.warnings),
            "license": self.license,
            "licenses": dict(self.licenses) or self.license_count,
            "rows": {
                "read": self.read,
                "rejected": sum(self.rejected.values()),
                "duplicates": sum(self.duplicates.values()),
                "kept": self.kept,
            },
            "rejected": dict(self.rejected),
            "duplicates": dict(self.duplicates),
            "statistics": counted.facts() if counted else None,
            "images": self.images.facts() if self.images else None,
        }

    def figures(self) -> dict[str, int | float]:
        """The numbers that Dagster draws over time, one plot for each."""
        found: dict[str, int | float] = {
            "rows read": self.read,
            "rows kept": self.kept,
            "rows rejected": sum(self.rejected.values()),
            "duplicate rows": sum(self.duplicates.values()),
        }
        if self.statistics:
            lengths = self.statistics.lengths
            found["tokens"] = lengths.total
            found["tokens of the median sample"] = round(lengths.quantile(0.5))
        if self.images:
            found["images"] = self.images.count
        return found


def card_of(dataset: Dataset, version: "Version", cleaned: "Version") -> Card:
    """The card of a version and of the `clean` one that it was made from, or is."""
    confidential = isinstance(dataset.key, PrivateKey)
    manifest = version.manifest
    facts: dict[str, Any] = dict(manifest.facts)
    counted = _counted(version) if dataset.role == "benchmark" else _statistics(facts)
    seen: dict[str, Any] = dict(cleaned.manifest.facts)
    return Card(
        dataset=dataset.key.path,
        version=version.id,
        confidential=confidential,
        warnings=_warnings(manifest.partial, manifest.limit),
        license=dataset.license,
        licenses={} if confidential or not counted else dict(counted.licenses.most_common()),
        license_count=len(manifest.licenses),
        kept=manifest.rows or 0,
        read=seen["rows_read"],
        rejected=reasons.shown(seen["rejected"], dataset.declared_in, confidential=confidential),
        duplicates=facts.get("duplicates", {}),
        statistics=_told(counted) if counted and confidential else counted,
        images=_images(version, confidential=confidential),
    )


def shown_step(dataset: Dataset) -> str:
    """The step that has the card: the last that holds samples whole."""
    return "clean" if dataset.role == "benchmark" else "deduplicated"


def _counted(version: "Version") -> Statistics:
    """Counted now: a benchmark is small, and `clean` has no statistics in its facts."""
    from factory.data import table

    found = Statistics(version.manifest.rows or 0)
    for sample in table.samples(version.path / layout.SAMPLES):
        found.add(sample)
    return found


def _statistics(facts: Mapping[str, Any]) -> Statistics | None:
    try:
        return Statistics.from_facts(facts["statistics"])
    except (KeyError, ValueError):
        return None


def _told(counted: Statistics) -> Statistics:
    """Without the words of rows: a licence is whatever a row states."""
    return replace(counted, licenses=Counter[str]())


def _images(version: "Version", *, confidential: bool) -> ImageFacts | None:
    """What an image states of itself is a word of the row, so a private one's is not told."""
    found = image_facts(version.path / layout.IMAGES)
    return replace(found, modalities={}) if found and confidential else found


def _warnings(partial: bool, limit: int | None) -> tuple[str, ...]:
    limited = [] if limit is None else [f"LIMITED: made from the first {limit:,} rows only."]
    return tuple([PARTIAL] if partial else []) + tuple(limited)
