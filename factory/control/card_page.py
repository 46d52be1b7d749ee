"""The card of a dataset as one page of markdown, which Dagster shows with the materialization.

Its facts are in `card`, samples are rendered by `previews`, pictures drawn by `figures`. A page
lives in the event log, so its size is bounded: the last sections go first.
"""

from collections.abc import Iterator, Mapping

from factory.control import figures, markdown
from factory.control.card import Card
from factory.data.language import UNDETERMINED
from factory.data.statistics import Measure, Statistics

LIMIT = 190_000
"""Characters of a page."""

ENTRIES = 12
"""Languages, reasons or licences that are listed; the others are added up."""

LEFT_OUT = "*More did not fit here; the version's directory has everything.*"


def page(card: Card, pictures: str = "", samples: str = "") -> str:
    """The whole card. Pictures and samples are given for public datasets only."""
    sections = [
        *(f"**{warning}**" for warning in card.warnings),
        _summary(card),
        *_statistics(card),
        _images(card),
        pictures,
        _counts("rejected because", card.rejected, card.read),
        f"**Some samples**\n\n{samples}" if samples else "",
    ]
    return _bounded(section for section in sections if section)


def _bounded(sections: Iterator[str]) -> str:
    shown: list[str] = []
    left = LIMIT
    for section in sections:
        left -= len(section) + 2
        if left < len(LEFT_OUT):
            shown.append(LEFT_OUT)
            break
        shown.append(section)
    return "\n\n".join(shown)


def _summary(card: Card) -> str:
    gone = sum(card.rejected.values()), sum(card.duplicates.values())
    kinds = ", ".join(f"{one:,} {name}" for name, one in card.duplicates.items() if one)
    rows = {
        "samples": f"**{card.kept:,}** of {card.read:,} rows read",
        "rejected": _share(gone[0], card.read),
        "duplicates": _share(gone[1], card.read) + (f": {kinds}" if kinds else ""),
        "tokens": _tokens(card.statistics),
        "languages": _languages(card.statistics),
        "licence": _licences(card),
    }
    return markdown.table(("", ""), ((f"**{name}**", text) for name, text in rows.items() if text))


def _tokens(counted: Statistics | None) -> str:
    if counted is None:
        return "not counted when this version was made"
    lengths = counted.lengths
    if not lengths.count:
        return "0"
    return (
        f"**{lengths.total:,}**; a sample has {lengths.least:,} to {lengths.most:,}, "
        f"half of them up to {lengths.quantile(0.5):,.0f}, "
        f"95 % up to {lengths.quantile(0.95):,.0f}"
    )


def _languages(counted: Statistics | None) -> str:
    if counted is None or not counted.languages:
        return ""
    asked = counted.languages.total()
    names = {UNDETERMINED: "not recognized"}
    shares = [
        f"{names.get(code, code)} {count / asked:.1%}"
        for code, count in counted.languages.most_common(ENTRIES)
    ]
    rest = len(counted.languages) - len(shares)
    others = f", {rest} others" if rest > 0 else ""
    of = f" (of {asked:,} samples)" if asked < counted.lengths.count else ""
    return ", ".join(shares) + others + of


def _licences(card: Card) -> str:
    if card.confidential:
        return f"{markdown.escaped(card.license)}; {card.license_count} stated by rows"
    stated = list(card.licenses.items())
    if len(stated) <= 1:
        return markdown.escaped(next(iter(card.licenses), card.license))
    listed = [f"{markdown.escaped(name)} {count:,}" for name, count in stated[:ENTRIES]]
    others = len(stated) - len(listed)
    return ", ".join(listed) + (f", {others} others" if others else "")


def _statistics(card: Card) -> Iterator[str]:
    counted = card.statistics
    if counted is None:
        return
    yield figures.lengths(counted.lengths, unit=f"tokens of a sample ({_TOKENIZER})")
    if len(counted.kinds) > 1:
        yield _measures("kind", "samples", counted.kinds)
    if counted.roles:
        yield _measures("role", "messages", counted.roles)
        yield _turns(counted)


_TOKENIZER = "Tekken"


def _measures(what: str, many: str, measures: Mapping[str, Measure]) -> str:
    total = sum(one.tokens for one in measures.values()) or 1
    calls = any(one.calls for one in measures.values())
    trained = any(one.trained for one in measures.values())
    columns = [what, many, "tokens", "share"]
    columns += ["tool calls"] * calls + ["tokens with loss"] * trained

    def row(name: str, one: Measure) -> list[str]:
        cells = [name, f"{one.count:,}", f"{one.tokens:,}", f"{one.tokens / total:.1%}"]
        cells += [f"{one.calls:,}"] * calls + [_share(one.trained_tokens, one.tokens)] * trained
        return cells

    return markdown.table(columns, (row(*item) for item in measures.items()), numbers=True)


def _turns(counted: Statistics) -> str:
    turns = counted.turns
    return (
        f"A conversation has {turns.least:,} to {turns.most:,} messages, "
        f"half of them up to {turns.quantile(0.5):,.0f}."
    )


def _images(card: Card) -> str:
    found = card.images
    if found is None:
        return ""
    kinds = ", ".join(f"{count:,} {name}" for name, count in found.formats.items())
    modes = ", ".join(f"{count:,} {name}" for name, count in found.modes.items())
    stated = ", ".join(
        f"{count:,} {markdown.escaped(name)}" for name, count in found.modalities.items()
    )
    text = (
        f"**{found.count:,} images**, {found.narrowest:,} to {found.widest:,} pixels wide, "
        f"{found.lowest:,} to {found.highest:,} high: {kinds}; {modes}"
    )
    return text + (f"; modality {stated}" if stated else "") + "."


def _counts(what: str, counts: Mapping[str, int], total: int) -> str:
    if not counts:
        return ""
    listed = list(counts.items())[:ENTRIES]
    others = sum(counts.values()) - sum(count for _, count in listed)
    if others:
        listed.append((f"{len(counts) - ENTRIES} other reasons", others))
    rows = (
        (markdown.cell(name, 160), f"{count:,}", f"{count / max(total, 1):.1%}")
        for name, count in listed
    )
    return markdown.table((what, "rows", "share"), rows, numbers=True)


def _share(part: int, whole: int) -> str:
    return f"{part:,} ({part / max(whole, 1):.1%})"
