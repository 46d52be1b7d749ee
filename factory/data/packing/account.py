"""`Account`: where every token and every position of the packed sequences went."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple, Self


class Dropped(NamedTuple):
    """What never reached a pack, for one source and one reason."""

    pieces: int
    tokens: int


@dataclass(frozen=True, kw_only=True, slots=True)
class Account:
    """Counts of one buffer or, added up, of many. One that does not balance cannot be made."""

    pieces_in: int = 0
    tokens_in: int = 0
    pieces: int = 0
    """Packed; a piece that was cut counts once."""

    tokens: int = 0
    dropped: Mapping[tuple[str, str], Dropped] = field(
        default_factory=dict[tuple[str, str], Dropped]
    )
    """By source and reason."""

    packs: int = 0
    slots: int = 0
    """Positions of all packs: packs times context."""

    aligning: int = 0
    """Padding between documents, which the parallel layout asks for."""

    ending: int = 0
    """Padding behind the last document of a pack."""

    cuts: int = 0
    """Times that a pack ended within a piece: 0 unless the regime is naive."""

    def __post_init__(self) -> None:
        pieces = self.pieces + sum(one.pieces for one in self.dropped.values())
        tokens = self.tokens + sum(one.tokens for one in self.dropped.values())
        slots = self.tokens + self.aligning + self.ending
        for name, given, found in (
            ("pieces", self.pieces_in, pieces),
            ("tokens", self.tokens_in, tokens),
            ("positions", self.slots, slots),
        ):
            if given != found:
                raise RuntimeError(
                    f"Packing lost {name}: {given} came in, {found} are packed, dropped or "
                    "padding. This is a defect of the packer; nothing that it made can be used."
                )

    @property
    def waste(self) -> float:
        """Share of the positions that read no token."""
        return (self.aligning + self.ending) / self.slots if self.slots else 0.0

    @property
    def waste_of_alignment(self) -> float:
        """The part of the waste that is the parallel layout's."""
        return self.aligning / self.slots if self.slots else 0.0

    def __add__(self, other: Self) -> "Account":
        dropped_pieces, dropped_tokens = Counter[tuple[str, str]](), Counter[tuple[str, str]]()
        for account in (self, other):
            for name, one in account.dropped.items():
                dropped_pieces[name] += one.pieces
                dropped_tokens[name] += one.tokens
        return Account(
            pieces_in=self.pieces_in + other.pieces_in,
            tokens_in=self.tokens_in + other.tokens_in,
            pieces=self.pieces + other.pieces,
            tokens=self.tokens + other.tokens,
            dropped={
                name: Dropped(count, dropped_tokens[name]) for name, count in dropped_pieces.items()
            },
            packs=self.packs + other.packs,
            slots=self.slots + other.slots,
            aligning=self.aligning + other.aligning,
            ending=self.ending + other.ending,
            cuts=self.cuts + other.cuts,
        )
