"""A card in words and tables, as both its page in Dagster and the terminal show it.

All of it is plain text; whoever shows it escapes it for where it is shown.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from factory.control.card import Card
from factory.data.language import UNDETERMINED
from factory.data.statistics import Measure, Statistics
from factory.data.tokens import TOKENIZER

ENTRIES = 12
"""Languages, reasons or licences that are listed; the others are added up."""

PLURALS: Mapping[str, str] = {
    "document": "documents",
    "question": "questions",
    "conversation": "conversations",
    "image_text": "images with text",
}

DECLARED = "(functions declared)"


@dataclass(frozen=True)
class Table:
    """Rows of text below a head; every column but the first holds numbers."""

    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


def summary(card: Card) -> dict[str, str]:
    """The dataset in a few lines, by what each is about."""
    rejected, duplicates = sum(card.rejected.values()), sum(card.duplicates.values())
    kinds = ", ".join(f"{count:,} {name}" for name, count in card.duplicates.items() if count)
    lines = {
        "samples": f"{card.kept:,} of {card.read:,} rows read{_kinds(card.statistics)}",
        "rejected": _share(rejected, card.read),
        "duplicates removed": _share(duplicates, card.read) + (f": {kinds}" if kinds else ""),
        "tokens": _tokens(card.statistics),
        "languages": _languages(card.statistics),
        "conversations": _turns(card.statistics),
        "images": _images(card),
        "licence": _licences(card),
    }
    return {name: text for name, text in lines.items() if text}


def tables(card: Card) -> Iterator[Table]:
    """What does not fit into a line."""
    counted = card.statistics
    if counted and len(counted.kinds) > 1:
        yield _measures(("kind", "samples"), counted.kinds)
    if counted and counted.roles:
        yield _measures(("role", "messages"), _roles(counted))
    if card.rejected:
        yield _reasons(card.rejected, card.read)


def _kinds(counted: Statistics | None) -> str:
    if counted is None or len(counted.kinds) != 1:
        return ""
    return f", all {PLURALS[next(iter(counted.kinds))]}"


def _tokens(counted: Statistics | None) -> str:
    if counted is None:
        return "not counted when this version was made"
    lengths = counted.lengths
    if not lengths.count:
        return "none"
    return (
        f"{lengths.total:,} ({TOKENIZER}); a sample has {lengths.least:,} to {lengths.most:,}, "
        f"half have at most {lengths.quantile(0.5):,.0f}, "
        f"95 % at most {lengths.quantile(0.95):,.0f}"
    )


def _languages(counted: Statistics | None) -> str:
    if counted is None or not counted.languages:
        return ""
    asked = counted.languages.total()
    names = {UNDETERMINED: "not recognized"}
    shares = (
        f"{names.get(code, code)} {_percent(count, asked)}"
        for code, count in counted.languages.most_common()
    )
    of = f" (of {asked:,} samples that were asked)" if asked < counted.lengths.count else ""
    return _listed(shares) + of


def _turns(counted: Statistics | None) -> str:
    if counted is None or not counted.turns.count:
        return ""
    turns = counted.turns
    trained = sum(one.trained_tokens for one in counted.roles.values())
    loss = f"; {_share(trained, counted.kinds['conversation'].tokens)} of their tokens carry loss"
    return (
        f"{turns.least:,} to {turns.most:,} messages, half have at most "
        f"{turns.quantile(0.5):,.0f}{loss if trained else ''}"
    )


def _images(card: Card) -> str:
    found = card.images
    if found is None:
        return ""
    counts = (found.formats, found.modes, found.modalities)
    kinds = "; ".join(_counted(one) for one in counts if one)
    return (
        f"{found.count:,}, {found.narrowest:,} to {found.widest:,} pixels wide, "
        f"{found.lowest:,} to {found.highest:,} high; {kinds}"
    )


def _licences(card: Card) -> str:
    if card.confidential:
        return f"{card.license}; rows state {card.license_count}"
    return _counted(card.licenses) if len(card.licenses) > 1 else [*card.licenses, card.license][0]


def _roles(counted: Statistics) -> dict[str, Measure]:
    """By role, and what is in no message: the functions that a conversation declares."""
    spoken = sum(one.tokens for one in counted.roles.values())
    declared = counted.kinds["conversation"].tokens - spoken
    return counted.roles | ({DECLARED: Measure(tokens=declared)} if declared > 0 else {})


def _measures(what: tuple[str, str], measures: Mapping[str, Measure]) -> Table:
    total = sum(one.tokens for one in measures.values())
    calls = any(one.calls for one in measures.values())
    trained = any(one.trained for one in measures.values())
    columns = [*what, "tokens", "share"]
    columns += ["tool calls"] * calls + ["tokens with loss"] * trained

    def row(name: str, one: Measure) -> tuple[str, ...]:
        cells = [name, f"{one.count:,}", f"{one.tokens:,}", _percent(one.tokens, total)]
        cells += [f"{one.calls:,}"] * calls + [f"{one.trained_tokens:,}"] * trained
        return tuple(cells)

    return Table(tuple(columns), tuple(row(*item) for item in measures.items()))


def _reasons(counts: Mapping[str, int], total: int) -> Table:
    listed = list(counts.items())[:ENTRIES]
    others = sum(counts.values()) - sum(count for _, count in listed)
    if others:
        listed.append((f"{len(counts) - ENTRIES:,} other reasons", others))
    rows = ((name, f"{count:,}", _percent(count, total)) for name, count in listed)
    return Table(("rejected because", "rows", "share"), tuple(rows))


def _counted(counts: Mapping[str, int]) -> str:
    ordered = sorted(counts.items(), key=lambda item: -item[1])
    return _listed(f"{name} {count:,}" for name, count in ordered)


def _listed(names: Iterable[str]) -> str:
    every = list(names)
    others = len(every) - ENTRIES
    return ", ".join(every[:ENTRIES]) + (f", {others:,} others" if others > 0 else "")


def _share(part: int, whole: int) -> str:
    return f"{part:,} ({_percent(part, whole)})" if part else "none"


def _percent(part: int, whole: int) -> str:
    share = 100 * part / max(whole, 1)
    return f"{share:.1f} %" if part == 0 or share >= 0.05 else "< 0.1 %"
