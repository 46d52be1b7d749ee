"""The check of an Energon version's contents: its entries and images are those of the split.

`free_checks` adds it to the step `energon`. It reads the shards one after the other and holds one
entry at a time.
"""

import hashlib
import json
import tarfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from factory.data import layout
from factory.data.checks import CheckResult
from factory.data.loss import FILE as LOSS
from factory.data.loss import Loss

SHOWN = 3
"""Faults that a summary names."""


@dataclass(frozen=True, slots=True)
class EntriesEqualSplit:
    """The shards hold the samples of the split and the images they show; `loss.json` is declared.

    Compared are hashes: of the samples as the split counted them, of the bytes of each image with
    its name. Faults are told by shard and place, without a word of a sample.
    """

    policy: Loss

    def __call__(self, directory: Path) -> CheckResult:
        """Read every entry of every shard."""
        from factory.data.content import RowsHash

        found = RowsHash()
        faults: list[str] = []
        images = 0
        for shard in sorted(directory.glob("shard-*.tar")):
            for number, entry in enumerate(_entries(shard), start=1):
                row = json.loads(entry.content)
                found.add(row)
                images += len(entry.images)
                fault = _fault(entry, row)
                if fault and len(faults) < SHOWN:
                    faults.append(f"entry {number:,} of {shard.name} {fault}")
        if found.hexdigest() != layout.facts_of(directory)["split_content"]:
            faults.insert(0, f"the {found.count:,} entries are not the samples of the split")
        if (directory / LOSS).read_bytes() != self.policy.to_json():
            faults.insert(0, f"{LOSS} is not what is declared")
        return CheckResult(
            not faults,
            "; ".join(faults[:SHOWN])
            if faults
            else f"{found.count:,} entries and {images:,} images, as in the split",
            {"entries": found.count, "images": images, "faults": faults},
        )


@dataclass(frozen=True, slots=True)
class _Entry:
    name: str
    content: bytes
    images: dict[str, str]
    """Hashes of the bytes of what lies beside it, by the names."""


def _entries(shard: Path) -> Iterator[_Entry]:
    """Entries in the order of the tar, in which the sample comes before its images."""
    name, content, images = "", b"", dict[str, str]()
    with tarfile.open(shard, "r|") as tar:
        for member in tar:
            file = tar.extractfile(member)
            data = file.read() if file is not None else b""
            begun, _, ending = member.name.partition(".")
            if ending == "json":
                if content:
                    yield _Entry(name, content, images)
                name, content, images = begun, data, {}
            else:
                images[member.name] = hashlib.sha256(data).hexdigest()
    if content:
        yield _Entry(name, content, images)


def _fault(entry: _Entry, row: dict[str, Any]) -> str:
    """What is wrong with an entry; empty if nothing is."""
    from factory.data.energon import entry_name
    from factory.data.sample import Sample

    if entry.name != entry_name(row["id"]):
        return "does not have the name of its sample"
    shown = {one.image for one in Sample.from_dict(row).pictures}
    if set(entry.images.values()) != shown or len(entry.images) != len(shown):
        return f"shows {len(shown):,} images, and not just these lie beside it"
    for name, digest in entry.images.items():
        if name.rpartition(".")[0] != f"{entry.name}.{digest[:16]}":
            return "has an image under the name of another"
    return ""
