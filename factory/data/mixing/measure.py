"""Measure: what the samples of a version come to in tokens, from a part of them.

Entries lie in their shards in the order of a hash, so the first ones are like any others. They are
encoded and fitted as a run does it. What was counted is kept in this machine's state: counts, by a
hash of what was counted, and nothing of the samples.
"""

import hashlib
import tarfile
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

from pydantic import BaseModel, Field, ValidationError

from factory.data.encoding import Encoder
from factory.data.mixing.lock import FORM, LockedSource
from factory.data.sample import canonical
from factory.data.stream.drawing import Drawing
from factory.data.stream.drawn import Drawn
from factory.namespace.durable import replace_file

MOST_SAMPLES = 2_000
FIRST_SAMPLES = 200
"""Encoded in any case. They tell how long the others are."""

ENOUGH_TOKENS = 2_000_000
"""Five seconds of encoding. With 200 papers, whose lengths vary by 60%, a mean is good to 4%."""


class Measured(BaseModel, frozen=True, extra="forbid"):
    """Counts of some samples of a version, fitted to a context."""

    samples: int = Field(ge=0, description="Encoded.")
    kept: int = Field(ge=0, description="Of them, those that something is trained on of.")
    lengths: list[int] = Field(description="Positions of each sequence that they became.")
    loss_tokens: int = Field(ge=0, description="Positions that carry loss.")
    dropped: dict[str, int] = Field(description="Samples by the reason that nothing is left.")

    @property
    def tokens(self) -> int:
        """Positions of all sequences."""
        return sum(self.lengths)


@dataclass(frozen=True, kw_only=True, slots=True)
class Meter:
    """Measures versions, each once."""

    drawing: Drawing
    encoder: Encoder
    state: Path | None
    """This machine's own files; None keeps nothing."""

    def measured(self, source: int, folder: Path, context: int) -> Measured:
        """Counts of a source of the lock, whose version lies in that folder.

        Raises:
            StepError: an entry cannot be encoded.
        """
        file = self._file(self.drawing.lock.sources[source], context)
        if file is not None and (found := _read(file)) is not None:
            return found
        entries = _entries(folder)
        made = [self._draw(source, context, raw) for raw in islice(entries, FIRST_SAMPLES)]
        mean = max(1.0, sum(one.tokens for one in made) / max(1, len(made)))
        more = min(MOST_SAMPLES, int(ENOUGH_TOKENS / mean)) - len(made)
        made += [self._draw(source, context, raw) for raw in islice(entries, max(0, more))]
        result = _counted(made)
        if file is not None:
            file.parent.mkdir(parents=True, exist_ok=True)
            scratch = file.with_name(f".{file.name}-{uuid.uuid4().hex}")
            replace_file(file, (result.model_dump_json() + "\n").encode(), scratch)
        return result

    def _draw(self, source: int, context: int, raw: dict[str, Any]) -> "Drawn":
        return self.drawing.draw(source, 0, context, raw)

    def _file(self, source: LockedSource, context: int) -> Path | None:
        if self.state is None:
            return None
        images = self.drawing.images
        decides = {
            "form": FORM,
            "version": [source.train, source.version],
            "encoder": self.encoder.identity,
            "images": None if images is None else images.identity,
            "overflow": source.overflow,
            "context": context,
            "counted": [MOST_SAMPLES, FIRST_SAMPLES, ENOUGH_TOKENS],
        }
        name = hashlib.sha256(canonical(decides)).hexdigest()
        return self.state / "mixes" / "measured" / f"{name}.json"


def _counted(made: list[Drawn]) -> Measured:
    dropped: dict[str, int] = {}
    for one in made:
        for reason, (samples, _) in one.dropped.items():
            if samples:
                dropped[reason] = dropped.get(reason, 0) + samples
    return Measured(
        samples=len(made),
        kept=sum(bool(one.sequences) for one in made),
        lengths=[len(one.tokens) for sample in made for one in sample.sequences],
        loss_tokens=sum(one.loss_tokens for one in made),
        dropped=dropped,
    )


def _read(file: Path) -> Measured | None:
    try:
        return Measured.model_validate_json(file.read_bytes())
    except (FileNotFoundError, ValidationError):  # of an older form, or cut off: measured again
        return None


def _entries(folder: Path) -> Iterator[dict[str, Any]]:
    """Entries of the shards in a folder, by name of their parts, as Energon gives them."""
    for shard in sorted(folder.glob("shard-*.tar")):
        with tarfile.open(shard) as tar:
            entry: dict[str, Any] = {}
            for member in tar:
                key, _, part = member.name.partition(".")
                if entry and entry["__key__"] != key:
                    yield entry
                    entry = {}
                opened = tar.extractfile(member)
                if opened is not None:
                    entry |= {"__key__": key, part: opened.read()}
            if entry:
                yield entry
