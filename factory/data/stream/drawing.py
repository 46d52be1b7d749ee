"""`Drawing`: an entry of a shard to sequences of a context, as the lock of a mix says.

A function of its arguments. What an entry holds never gets into an error of a private dataset.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from factory.data.encoding import Encoded, Refused
from factory.data.encoding.images import ImageProcessor
from factory.data.mixing import MixLock
from factory.data.stream.drawn import Drawn, Shown, drawn
from factory.errors import FactoryError, StepError
from factory.keys import parse


class Encodes(Protocol):
    """What makes tokens of a sample; `factory.data.encoding.Encoder`."""

    def encode(self, sample: Mapping[str, Any], key: str = "") -> Encoded | Refused:
        """One sample in its canonical form."""
        ...


@dataclass(frozen=True, kw_only=True, slots=True)
class Drawing:
    """How entries become sequences."""

    lock: MixLock
    encoder: Encodes
    images: ImageProcessor | None = None
    """None where the model sees no images."""

    def draw(self, source: int, ordinal: int, context: int, raw: Mapping[str, Any]) -> Drawn:
        """The sample of an entry, given by name of its parts as Energon reads them.

        Raises:
            StepError: the entry is no sample that can be encoded; it names dataset and place.
        """
        locked = self.lock.sources[source]
        try:
            shown = Shown(raw, self.images)
            encoded = self.encoder.encode(json.loads(raw["json"]), raw["__key__"])
            made = shown.expanded(encoded)
            return drawn(made, locked.overflow, context, (source, ordinal), shown)
        except FactoryError:
            raise
        except Exception as error:
            if parse(locked.key).classification == "private":
                kind = type(error).__name__
                raise StepError(
                    f"Sample {ordinal:,} of {locked.train} cannot be encoded ({kind})."
                ) from None
            raise StepError(
                f"Sample {ordinal:,} of {locked.train} cannot be encoded: {error}"
            ) from error
