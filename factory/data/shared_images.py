"""Images of a version: each is stored once, whichever shards have samples that show it.

Within a shard the `Writer` sees to that. Of those that several shards have, the first shard keeps
its copy; the others are written again without it. Later steps share the files of `clean`.
"""

import json
from collections.abc import Iterable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any, Self, cast

import pyarrow as pa
import pyarrow.compute as pc

from factory.data import layout, table
from factory.data.engines import Tick
from factory.data.finished import Facts, Finished
from factory.data.images import Image
from factory.data.phases import Workshop
from factory.data.shards import Shard
from factory.namespace import Staging

FILE = "images.parquet"


@dataclass
class Writer:
    """Writes the images of a shard, if there are any, each once."""

    folder: Path
    _seen: set[str] = field(default_factory=set[str], init=False)
    _stack: ExitStack = field(default_factory=ExitStack, init=False)
    _writer: table.Writer | None = field(default=None, init=False)

    def add(self, images: Iterable[Image]) -> None:
        """Store those that are not stored yet."""
        for image in images:
            if image.sha256 in self._seen:
                continue
            self._seen.add(image.sha256)
            self._open().add(_row(image), len(image.data))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._stack.__exit__(kind, error, trace)

    def _open(self) -> table.Writer:
        if self._writer is None:
            writer = table.Writer(self.folder / FILE, table.IMAGES)
            self._writer = self._stack.enter_context(writer)
        return self._writer


def take_over(staging: Staging, shop: Workshop, done: Sequence[Finished]) -> None:
    """Make the table of images from those of the shards; there is none where no sample has any."""
    shards = [
        Shard(number, (str(one.file(FILE)),), one.files[FILE].size)
        for number, one in enumerate(done)
        if FILE in one.files
    ]
    if not shards:
        return
    repeated = shop.once("images", lambda folder: _repeated(shards, folder))
    again = [shard for shard in shards if _name(shard) in repeated.files]
    task = Without(repeated.folder)
    written = shop.every("images-once", task, again, what="images written") if again else []
    files = {shard.number: done[shard.number] for shard in shards}
    files |= {shard.number: one for shard, one in zip(again, written, strict=True)}
    for number, one in sorted(files.items()):
        if FILE in one.files:
            target = table.file(Path(layout.IMAGES), number).as_posix()
            staging.link(one.file(FILE), target, one.files[FILE])


@dataclass(frozen=True)
class Without:
    """Writes the images of a shard again, without those that an earlier one has."""

    repeated: Path

    def __call__(self, shard: Shard, folder: Path, tick: Tick) -> Facts:
        """Leave out what is listed; no file at all if nothing is left."""
        listed: list[str] = json.loads((self.repeated / _name(shard)).read_bytes())
        gone = pa.array(listed, pa.string())
        with table.BatchWriter(folder / FILE, table.IMAGES) as writer:
            for batch in table.batches(Path(shard.names[0])):
                left = batch.filter(pc.invert(pc.is_in(batch.column("sha256"), gone)))
                writer.add(left)
                tick(batch.num_rows)
        if not writer.rows:
            (folder / FILE).unlink()
        return {}


def _repeated(shards: Sequence[Shard], folder: Path) -> Facts:
    """A file for each shard with images that an earlier one has: which those are."""
    seen: set[str] = set()
    for shard in shards:
        names: list[str] = []
        for batch in table.batches(Path(shard.names[0]), ["sha256"]):
            names += cast("list[str]", batch.column("sha256").to_pylist())
        again = [name for name in names if name in seen]
        if again:
            (folder / _name(shard)).write_text(json.dumps(again))
        seen.update(names)
    return {"images": len(seen)}


def _name(shard: Shard) -> str:
    return f"{shard.number}.json"


def _row(image: Image) -> dict[str, Any]:
    return {
        "sha256": image.sha256,
        "format": image.format,
        "width": image.width,
        "height": image.height,
        "mode": image.mode,
        "meta": sorted(image.meta.items()),
        "data": image.data,
    }
