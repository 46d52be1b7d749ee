"""Text to findings: what looks like an identifier, where, and of which kind; never the value.

Long texts are read in overlapping pieces, so memory and time grow with their length only. When a
recognizer fails the text counts as unread: `ScanFailed` names no more than the kind of failure.
"""

from collections.abc import Iterable, Iterator

from factory.data.identifiers.kinds import PRIORITY, Finding, Kind
from factory.data.identifiers.normal import normal
from factory.data.identifiers.rules import RULES
from factory.errors import ScanFailed

PIECE_CHARACTERS = 50_000
OVERLAP_CHARACTERS = 1_000
"""No rule looks further than this."""

DIGITS = "0123456789"
"""As `normal` writes them, whatever the script."""

type Span = tuple[int, int, Kind]


def scan_text(text: str, *, pseudonym_prefix: str | None = None) -> list[Finding]:
    """What looks like an identifier, in order, no two of them overlapping.

    Args:
        text: any text, also very long.
        pseudonym_prefix: how the delivery's pseudonyms begin; a record number that begins so is
            a pseudonym and no finding.

    Raises:
        ScanFailed: a recognizer failed or gave up, so the text is unread.
    """
    plain = normal(text)
    spans: set[Span] = set()
    failure = ""
    try:
        for offset, piece in _pieces(plain.text):
            spans.update((offset + start, offset + end, kind) for start, end, kind in _look(piece))
    except Exception as error:  # whatever it says may quote the text
        failure = type(error).__name__
    if failure:  # outside the handler: no context that would carry the text along
        raise ScanFailed(
            f"A recognizer of identifiers failed ({failure}) on a text of {len(text)} characters, "
            "so that text counts as unread. Nothing of it is shown here on purpose."
        )
    if pseudonym_prefix is not None:
        spans = {one for one in spans if not _pseudonym(plain.text, one, pseudonym_prefix)}
    return [
        Finding(*plain.span(start, end), kind, kind.direct) for start, end, kind in _apart(spans)
    ]


def _look(text: str) -> Iterator[Span]:
    digits = sum(map(text.count, DIGITS))
    for rule in RULES:
        for start, end in rule.matches(text, digits):
            if not _filler(text[start:end]):
                yield start, end, rule.kind
    yield from _presidio(text)


def _presidio(text: str) -> Iterator[Span]:
    from factory.data.identifiers import recognizers

    before = recognizers.timed_out().count
    for result in recognizers.found(text):
        if not _filler(text[result.start : result.end]):
            yield result.start, result.end, recognizers.ENTITIES[result.entity_type]
    if recognizers.timed_out().count != before:
        raise TimeoutError


def _filler(value: str) -> bool:
    """Whether a number is one digit over and over, which passes most check digits."""
    digits = [one for one in value if one.isdigit()]
    return len(digits) > 3 and len(set(digits)) == 1 and not any(one.isalpha() for one in value)


def _pieces(text: str) -> Iterator[tuple[int, str]]:
    step = PIECE_CHARACTERS - OVERLAP_CHARACTERS
    for offset in range(0, max(1, len(text) - OVERLAP_CHARACTERS), step):
        yield offset, text[offset : offset + PIECE_CHARACTERS]


def _pseudonym(text: str, span: Span, prefix: str) -> bool:
    start, _, kind = span
    return kind is Kind.RECORD_NUMBER and text.startswith(prefix, start)


def _apart(spans: Iterable[Span]) -> list[Span]:
    """Of spans that overlap keep the direct, then the longer one, then the more telling kind."""
    taken: list[Span] = []
    for span in sorted(
        spans, key=lambda one: (not one[2].direct, one[0] - one[1], PRIORITY[one[2]], one[0])
    ):
        if all(span[1] <= other[0] or span[0] >= other[1] for other in taken):
            taken.append(span)
    return sorted(taken)
