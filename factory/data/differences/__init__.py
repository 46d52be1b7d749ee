"""What differs between two versions of one key, and why.

`compare` is the way in. The manifests are compared first, because they say why: other code, other
parameters, other inputs (`causes`). Then what the versions hold: samples by id (`matching`, read by
`holdings`, shown by `examples`), or files by name (`files`) where a version has no samples.

Memory is bounded by about 100 bytes for each sample of both versions, whatever they hold.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from factory.data.differences.causes import Cause
    from factory.data.differences.examples import Examples
    from factory.namespace import Version


@dataclass(frozen=True)
class Counts:
    """How many there are of each kind: of samples, or of files."""

    of: str
    """`rows` or `files`."""

    before: int
    after: int
    added: int = 0
    removed: int = 0
    changed: int = 0
    """The same id, with another content."""

    moved: Mapping[str, int] = field(default_factory=dict[str, int])
    """The same content in another split: by `train -> test`."""

    reordered: bool = False
    """Nothing else differs, and yet the content ids do: the order does, or the shards."""

    @property
    def equal(self) -> bool:
        """Whether the two versions hold the same."""
        return not (self.added or self.removed or self.changed or self.moved or self.reordered)


@dataclass(frozen=True)
class Difference:
    """Two versions of one key, compared."""

    key: str
    before: str
    after: str
    causes: "list[Cause]"
    counts: Counts
    examples: "Examples"

    @property
    def verdict(self) -> str:
        """One line: `clean code changed, rows equal`."""
        step = self.key.rpartition("/")[2]
        names = [cause.name for cause in self.causes if cause.decides]
        why = f"{', '.join(names)} changed" if names else "same code, parameters and inputs"
        return f"{step} {why}, {_effect(self.counts)}"

    def facts(self) -> dict[str, Any]:
        """Everything, for JSON."""
        return {
            "key": self.key,
            "before": self.before,
            "after": self.after,
            "verdict": self.verdict,
            "causes": [asdict(cause) for cause in self.causes],
            "counts": asdict(self.counts),
            "examples": asdict(self.examples),
        }


def compare(before: "Version", after: "Version", examples: int = 3) -> Difference:
    """Compare two versions; `examples` is how many to show of each kind.

    Raises:
        DamagedVersion: a manifest cannot be read.
        StepError: what a version holds cannot be read.
    """
    from factory.data.differences import causes, files, samples

    content = samples if samples.has_samples(before, after) else files
    counts, shown = content.compared(before, after, examples)
    return Difference(
        before.key.path, before.id, after.id, causes.causes(before, after), counts, shown
    )


def _effect(counts: Counts) -> str:
    if counts.equal:
        return f"{counts.of} equal"
    if counts.reordered:
        return f"{counts.of} equal, in another order"
    parts = [
        f"{number:,} {what}"
        for what, number in (
            ("added", counts.added),
            ("removed", counts.removed),
            ("changed", counts.changed),
            ("moved", sum(counts.moved.values())),
        )
        if number
    ]
    return f"{counts.of}: {', '.join(parts)}"
