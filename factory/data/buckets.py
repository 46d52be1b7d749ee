"""Buckets: samples and images brought from the order of the input into that of the output.

The output of `energon` is ordered by a hash, so every shard of it has samples from every shard of
the input. Rows are therefore first scattered to files, one for each bucket, which is a run of
output shards that fits into the memory; then each bucket is sorted. `preparing` does both.
"""

import bisect
import struct
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

from factory.data.energon import Stored

BUCKET_BYTES = 128 * 2**20
"""About so much text is sorted at once."""

MOST_BUCKETS = 256
"""So many files are open at once. Buckets of a dataset of more than 32 GiB are larger."""

_FRAME = struct.Struct(">64s8sQ")
"""Hash, extension and size of an image, before its bytes."""


@dataclass(frozen=True)
class Buckets:
    """Which places, and which shards of the output, belong to each bucket."""

    first_shards: Sequence[int]
    """The number of the first shard of each bucket."""

    first_places: Sequence[str]
    """The place of the first sample of each bucket."""

    shards: int

    @classmethod
    def plan(cls, places: Sequence[str], per_shard: int, size: int) -> "Buckets":
        """Buckets for samples with these places, in order, that have so many bytes together."""
        shards = -(-len(places) // per_shard)
        count = max(1, min(-(-size // BUCKET_BYTES), MOST_BUCKETS, shards))
        firsts = sorted({number * shards // count for number in range(count)})
        return cls(firsts, [places[first * per_shard] for first in firsts], shards)

    def of(self, place: str) -> int:
        """The bucket of a sample."""
        return max(0, bisect.bisect_right(self.first_places, place) - 1)

    def shards_of(self, bucket: int) -> range:
        """The numbers of the output shards in a bucket."""
        last = bucket + 1 == len(self.first_shards)
        end = self.shards if last else self.first_shards[bucket + 1]
        return range(self.first_shards[bucket], end)


@dataclass
class Files:
    """Open files to append to, one for each bucket that has anything."""

    folder: Path
    ending: str
    _stack: ExitStack = field(default_factory=ExitStack, init=False)
    _files: dict[int, IO[bytes]] = field(default_factory=dict[int, IO[bytes]], init=False)

    def write(self, bucket: int, data: bytes) -> None:
        """Append to the file of a bucket."""
        if bucket not in self._files:
            file = (self.folder / name(bucket, self.ending)).open("wb")
            self._files[bucket] = self._stack.enter_context(file)
        self._files[bucket].write(data)

    def write_image(self, bucket: int, image: Stored) -> None:
        """Append an image to the file of a bucket."""
        head = _FRAME.pack(image.sha256.encode(), image.extension.encode(), len(image.data))
        self.write(bucket, head + image.data)

    def close(self) -> None:
        """Close them all."""
        self._stack.close()


def name(bucket: int, ending: str) -> str:
    """The name of the file that holds what goes into a bucket."""
    return f"{bucket:03d}.{ending}"


@dataclass(frozen=True, slots=True)
class Held:
    """Where the bytes of an image are."""

    file: Path
    offset: int
    size: int
    sha256: str
    extension: str

    def read(self) -> Stored:
        """The image."""
        with self.file.open("rb") as file:
            file.seek(self.offset)
            return Stored(self.sha256, self.extension, file.read(self.size))


def held(files: Sequence[Path]) -> Iterator[Held]:
    """The images in files that `write_image` wrote, without their bytes."""
    for path in files:
        with path.open("rb") as file:
            while head := file.read(_FRAME.size):
                sha256, extension, size = _FRAME.unpack(head)
                ending = extension.rstrip(b"\0").decode()
                yield Held(path, file.tell(), size, sha256.decode(), ending)
                file.seek(size, 1)
