"""Packing beside Megatron-Bridge's own functions and next-fit, on three mixes of medical lengths.

Waste and speed are of each mix's pieces in document order, skew is of shuffled pieces. Only packing
is timed: lists of lengths in memory in, groups out. Peers return lengths, not indices; theirs are
given pieces of those lengths afterwards, outside the clock. What the stream does besides is
measured of ours alone: packs and their boundaries, and where every position of a document goes.
"""

import gc
import time
from collections import Counter, deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import batched
from statistics import median
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from factory.data.encoding import Encoded, fitted
from factory.data.packing import Breaks, Overflow, Pack, Packing, Regime, groups, lay_out
from factory.data.packing.knapsack import knapsack
from factory.data.packing.overflow import NO_LOSS, TOO_LONG
from factory.training.cpu import placeholder
from tests.bench.medical_lengths import (
    COMPONENTS,
    CONTEXT,
    MIXES,
    NOTES,
    SEED,
    TRACES,
    Lengths,
    documents,
    pieces,
)

type Mixes = Mapping[str, Lengths]


class Packer(NamedTuple):
    buffer: int | None
    """Pieces at a time; None for the whole set at once."""

    groups: Callable[[list[int]], list[list[int]]]
    """Lengths to groups, in the order of emission."""

    indices: bool = True
    """Whether groups are of indices, not of lengths."""


DOCUMENTS, SKEW_DOCUMENTS = 120_000, 60_000
BATCH, RANKS, ROUNDS, SHUFFLES = 36, 12, 3, 3


def run() -> str:
    """Measure every packer on every mix; returns the section."""
    mixes = {name: pieces(shares, DOCUMENTS) for name, shares in MIXES.items()}
    packers = _packers()
    parts = [_HEAD, _mixes(mixes), _waste(mixes, packers), _skew(packers)]
    parts += [_alignment(mixes), _whole(mixes), _accounted()]
    return "\n\n".join(parts)


_HEAD = f"""## Packing

Mixes of medical lengths (abstracts, clinical notes, questions, papers, tool traces; log-normal,
PCG64 seed {SEED}, {DOCUMENTS:,} documents), cut to pieces of at most {CONTEXT:,}. "Bridge" is
Megatron-Bridge 0.6.2's `data.packing.algorithms`. Speed is pieces per CPU-second of one core, the
median of {ROUNDS} interleaved rounds, garbage collector off. "in order" is packs as the algorithm
makes them, longest first; `boundary_aware` spreads them over the buffer."""


def _packers() -> dict[str, Packer]:
    with placeholder.where_missing():
        from megatron.bridge.data.packing.algorithms import first_fit_decreasing, first_fit_shuffle
    found = {"none": _ours("none", 1024), "next-fit": Packer(None, _next_fit)}
    for size in (64, 256, 1024, 4096):
        found[f"Bridge first-fit-decreasing, {size:,}, in order"] = _bridge(
            first_fit_decreasing, size
        )
    found |= {
        "Bridge first-fit-decreasing, whole set": _bridge(first_fit_decreasing, None),
        "Bridge first-fit-shuffle, whole set (its default)": _bridge(first_fit_shuffle, None),
        "factory's knapsack, 1,024, in order": Packer(1024, lambda sizes: knapsack(sizes, CONTEXT)),
        "factory's knapsack, 1,024, plain shuffle": Packer(1024, _shuffled),
    }
    for size in (64, 256, 1024, 4096):
        found[f"**factory, boundary_aware, {size:,}**"] = _ours("boundary_aware", size)
    return found


def _shuffled(lengths: list[int]) -> list[list[int]]:
    made = knapsack(lengths, CONTEXT)
    generator = np.random.Generator(np.random.PCG64(lengths[:4]))
    return [made[index] for index in generator.permutation(len(made)).tolist()]


def _ours(regime: Regime, size: int) -> Packer:
    packing = Packing(context=CONTEXT, regime=regime)
    return Packer(size, lambda lengths: groups(lengths, packing))


def _bridge(algorithm: Callable[[list[int], int], list[list[int]]], size: int | None) -> Packer:
    return Packer(size, lambda lengths: algorithm(lengths, CONTEXT), indices=False)


def _next_fit(lengths: list[int]) -> list[list[int]]:
    made: list[list[int]] = []
    room = 0
    for index, length in enumerate(lengths):
        if length > room:
            made.append([])
            room = CONTEXT
        made[-1].append(index)
        room -= length
    return made


def _buffers(lengths: list[int], size: int | None) -> Iterator[list[int]]:
    size = size or len(lengths)
    for start in range(0, len(lengths), size):
        yield lengths[start : start + size]


def _mixes(mixes: Mixes) -> str:
    lines = ["| mix | pieces | tokens | notes by token | waste, one piece a sequence |"]
    lines.append("|---|---|---|---|---|")
    for name, (lengths, kinds) in mixes.items():
        tokens = int(lengths.sum())
        notes = lengths[kinds == NOTES].sum() / tokens
        waste = 1 - tokens / (len(lengths) * CONTEXT)
        lines.append(
            f"| {name} | {len(lengths):,} | {tokens / 1e6:.1f} M | {notes:.1%} | {waste:.2%} |"
        )
    return "\n".join(lines)


def _waste(
    mixes: Mixes,
    packers: dict[str, Packer],
) -> str:
    """Waste and speed of each packer on each mix."""
    lines = ["| packer, buffer | A | S | L | pieces/s A | S | L |", "|---|---|---|---|---|---|---|"]
    waste: dict[str, list[str]] = {name: [] for name in packers}
    speed: dict[str, list[str]] = {name: [] for name in packers}
    for lengths, _ in mixes.values():
        values: list[int] = lengths.tolist()
        seconds: dict[str, list[float]] = {name: [] for name in packers}
        count: dict[str, int] = {}
        for _ in range(ROUNDS):
            for name, packer in packers.items():
                buffers = list(_buffers(values, packer.buffer))
                gc.collect()
                gc.disable()
                started = time.process_time()
                made = [packer.groups(buffer) for buffer in buffers]
                seconds[name].append(time.process_time() - started)
                gc.enable()
                count[name] = sum(map(len, made))
        for name in packers:
            waste[name].append(f"{1 - sum(values) / (count[name] * CONTEXT):.3%}")
            speed[name].append(f"{len(values) / median(seconds[name]) / 1e6:.2f} M")
    lines += [f"| {name} | {' | '.join(waste[name] + speed[name])} |" for name in packers]
    return "\n".join(lines)


def _skew(packers: dict[str, Packer]) -> str:
    """How much the share of clinical notes differs from batch to batch."""
    every, kinds = pieces(MIXES["A"], SKEW_DOCUMENTS)
    found: dict[str, list[tuple[float, ...]]] = {"unpacked stream": []}
    for shuffle in range(SHUFFLES):
        chosen = np.random.Generator(np.random.PCG64(shuffle)).permutation(len(every))
        lengths, notes = every[chosen], (kinds[chosen] == NOTES)
        stream_sd, stream_few = _spread(_unpacked(lengths, notes))
        found["unpacked stream"].append((stream_sd, stream_few, 1, stream_sd, 1))
        for name, packer in packers.items():
            if name == "none":
                continue
            sd, few = _spread(_shares(packer, lengths, notes, 1))
            ranks_sd, _ = _spread(_shares(packer, lengths, notes, RANKS))
            row = (sd, few, sd / stream_sd, ranks_sd, ranks_sd / stream_sd)
            found.setdefault(name, []).append(row)
    lines = [
        f"Mix A, {SKEW_DOCUMENTS:,} documents, pieces shuffled; batches of {BATCH} sequences from "
        f"one rank, or {BATCH // RANKS} from each of {RANKS} ranks with buffers of their own. The "
        f"unpacked stream is cut every {BATCH} x {CONTEXT:,} tokens. Means of {SHUFFLES} shuffles "
        "of the pieces.",
        "",
        "| packer, buffer | sd of a batch's share of notes | batches with < 1% notes | "
        f"sd / unpacked stream's | sd, {RANKS} ranks | sd / unpacked stream's |",
        "|---|---|---|---|---|---|",
    ]
    for name, rows in found.items():
        sd, few, ratio, ranks_sd, ranks_ratio = np.mean(rows, axis=0)
        lines.append(
            f"| {name} | {sd:.4f} | {few:.1%} | {ratio:.2f} | {ranks_sd:.4f} | {ranks_ratio:.2f} |"
        )
    return "\n".join(lines)


def _unpacked(lengths: NDArray[np.int64], notes: NDArray[np.bool_]) -> NDArray[np.float64]:
    """Share of notes in each stretch of a batch's tokens, pieces cut where the stretch ends."""
    size = BATCH * CONTEXT
    ends = np.concatenate(([0], np.cumsum(lengths)))
    of_notes = np.concatenate(([0], np.cumsum(lengths * notes)))
    edges = np.arange(0, int(ends[-1]) + 1, size)
    return np.diff(np.interp(edges, ends, of_notes)) / size


def _indexed(lengths: list[int], packer: Packer) -> list[list[int]]:
    """Groups of indices into the whole stream."""
    made: list[list[int]] = []
    start = 0
    for buffer in _buffers(lengths, packer.buffer):
        result = packer.groups(buffer)
        if not packer.indices:
            waiting: dict[int, deque[int]] = {}
            for index, length in enumerate(buffer):
                waiting.setdefault(length, deque()).append(index)
            result = [[waiting[length].popleft() for length in group] for group in result]
        made += [[start + index for index in group] for group in result]
        start += len(buffer)
    if sorted(index for group in made for index in group) != list(range(len(lengths))):
        raise RuntimeError("A packer lost or doubled a piece.")
    return made


def _shares(
    packer: Packer, lengths: NDArray[np.int64], notes: NDArray[np.bool_], ranks: int
) -> NDArray[np.float64]:
    """Share of notes in each batch, of which every rank packs an equal part."""
    found: list[NDArray[np.int64]] = []
    for rank in range(ranks):
        mine, of_notes = lengths[rank::ranks], (lengths * notes)[rank::ranks]
        made = _indexed(mine.tolist(), packer)
        order = np.concatenate([np.array(group) for group in made])
        starts = np.cumsum([0, *map(len, made)])[:-1]
        found.append(np.stack([np.add.reduceat(one[order], starts) for one in (mine, of_notes)]))
    part = BATCH // ranks
    batches = min(one.shape[1] for one in found) // part
    tokens, of_notes = sum(one[:, : batches * part].reshape(2, -1, part).sum(2) for one in found)
    return of_notes / tokens


def _spread(shares: NDArray[np.float64]) -> tuple[float, float]:
    return float(shares.std()), float((shares < 0.01).mean())


def _alignment(mixes: Mixes) -> str:
    lines = [
        "What alignment costs, buffer 1,024: waste in all, and the alignment's part of it.",
        "",
        "| document lengths rounded up to | A | S | L |",
        "|---|---|---|---|",
    ]
    for unit in (1, 16, 64, 128):
        cells = []
        for lengths, _ in mixes.values():
            packing = Packing(context=CONTEXT, alignment=unit)
            packs = [one for made in _packs(lengths.tolist(), packing) for one in made]
            slots = len(packs) * CONTEXT
            waste = 1 - sum(one.tokens for one in packs) / slots
            cells.append(f"{waste:.2%}, {sum(one.aligning for one in packs) / slots:.2%}")
        lines.append(f"| {unit} | {' | '.join(cells)} |")
    return "\n".join(lines)


def _packs(lengths: Sequence[int], packing: Packing) -> Iterator[list[Pack]]:
    """Buffer after buffer, as the stream packs it."""
    for buffer in batched(lengths, packing.buffer):
        yield [
            one
            for group in groups(buffer, packing)
            for one in lay_out([buffer[index] for index in group], packing)
        ]


def _whole(mixes: Mixes) -> str:
    """The three regimes with packs made, not groups only."""
    lines = [
        "The three regimes, buffer 1,024, with packs as the stream makes them; garbage collector "
        "on. Lost: in less what lies between the boundaries of a pack. Every buffer is packed "
        "twice, and its packs have to be the same.",
        "",
        "| regime | mix | waste | packs | pieces cut | tokens lost | pieces/s |",
        "|---|---|---|---|---|---|---|",
    ]
    for regime in ("none", "naive", "boundary_aware"):
        for name, (lengths, _) in mixes.items():
            values: list[int] = lengths.tolist()
            packing = Packing(context=CONTEXT, regime=regime)
            seconds: list[float] = []
            gc.collect()
            gc.freeze()
            for _ in range(ROUNDS):
                started = time.process_time()
                deque(_packs(values, packing), maxlen=0)
                seconds.append(time.process_time() - started)
            gc.unfreeze()
            counts = _counted(values, packing)
            waste = 1 - counts["tokens"] / (counts["packs"] * CONTEXT)
            lines.append(
                f"| {regime} | {name} | {waste:.3%} | {counts['packs']:,} | {counts['cuts']:,} | "
                f"{sum(values) - counts['tokens']} | {len(values) / median(seconds) / 1e6:.2f} M |"
            )
    return "\n".join(lines)


def _counted(lengths: Sequence[int], packing: Packing) -> Counter[str]:
    """Packs, the tokens that lie in them, and pieces that go on from the pack before."""
    counts = Counter[str]()
    for made, again in zip(_packs(lengths, packing), _packs(lengths, packing), strict=True):
        if made != again:
            raise RuntimeError("The same seed and buffer gave other packs.")
        counts["packs"] += len(made)
        for one in made:
            counts["tokens"] += int(one.boundaries(filled=False).cu_seqlens[-1])
            counts["cuts"] += sum(segment.offset > 0 for segment in one.segments)
    return counts


def _accounted() -> str:
    """Where every position of the documents goes, before packing and in it."""
    lengths, kinds = documents(MIXES["A"], SKEW_DOCUMENTS)
    lines = [
        f"Where every position of mix A goes, {SKEW_DOCUMENTS:,} documents, of which tool traces "
        "carry loss in their last tenth only: cut by the overflow policy, parts without loss "
        "dropped, the rest packed, buffer 1,024. Lost: in less all the others.",
        "",
        "| overflow | in | packed | truncated | no loss token | longer than the context | lost |",
        "|---|---|---|---|---|---|---|",
    ]
    policies: tuple[Overflow, ...] = ("split", "truncate_middle", "drop")
    for policy in policies:
        kept: list[int] = []
        counts = Counter[str]()
        for length, kind in zip(lengths.tolist(), kinds.tolist(), strict=True):
            found = fitted(_encoded(length, kind), policy, CONTEXT)
            kept += [len(one.tokens) for one in found.sequences]
            counts["truncated"] += found.truncated
            counts.update(found.dropped)
        for made in _packs(kept, Packing(context=CONTEXT)):
            counts["packed"] += sum(one.tokens for one in made)
        where = ("packed", "truncated", NO_LOSS, TOO_LONG)
        lost = int(lengths.sum()) - counts.total()
        cells = " | ".join(f"{counts[name]:,}" for name in where)
        lines.append(f"| {policy} | {lengths.sum():,} | {cells} | {lost} |")
    return "\n".join(lines)


_ZEROS = np.zeros(max(most for *_, most in COMPONENTS) + 1, dtype=np.int32)


def _encoded(positions: int, kind: int) -> Encoded:
    mask = np.ones(positions + 1, dtype=np.bool_)
    if kind == TRACES:
        mask[: positions * 9 // 10] = False
    return Encoded(
        tokens=_ZEROS[: positions + 1],
        loss_mask=mask,
        breaks=Breaks(),
        images=(),
        key="",
        source=COMPONENTS[kind][0],
    )
