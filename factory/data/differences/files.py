"""Files of two versions by name, as their manifests list them; no file is read."""

from factory.data.differences import Counts
from factory.data.differences.examples import Change, Examples, Row
from factory.namespace import Version
from factory.units import size


def compared(before: Version, after: Version, examples: int) -> tuple[Counts, Examples]:
    """Which files came, went, or hold something else."""
    one, other = before.manifest.files, after.manifest.files
    added = sorted(other.keys() - one.keys())
    removed = sorted(one.keys() - other.keys())
    changed = [name for name in sorted(one.keys() & other.keys()) if one[name] != other[name]]
    counts = Counts("files", len(one), len(other), len(added), len(removed), len(changed))
    shown = Examples(
        added=[Row(name, size(other[name].size)) for name in added[:examples]],
        removed=[Row(name, size(one[name].size)) for name in removed[:examples]],
        changed=[
            Row(
                name,
                "",
                [
                    Change("size", size(one[name].size), size(other[name].size)),
                    Change("sha256", one[name].sha256[:16], other[name].sha256[:16]),
                ],
            )
            for name in changed[:examples]
        ],
    )
    return counts, shown
