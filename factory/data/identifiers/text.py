"""Text to findings: what looks like an identifier, where, and of which kind; never the value.

What is encoded in a text is read too, see `encoded`. Long texts are read in overlapping pieces, so
memory and time grow with their length only. When a recognizer fails the text counts as unread:
`ScanFailed` names no more than the kind of failure.
"""

from collections.abc import Iterable, Iterator

from factory.data.identifiers.encoded import LAYERS, Layer, layers
from factory.data.identifiers.kinds import PRIORITY, Finding, Kind
from factory.data.identifiers.normal import normal
from factory.data.identifiers.rules import RULES
from factory.errors import ScanFailed

PIECE_CHARACTERS = 50_000
OVERLAP_CHARACTERS = 1_000
"""No rule looks further than this."""

LONGEST_WORD = 100

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
        for number, layer in enumerate(layers(plain.text)):
            spans.update(_spans(layer, pseudonym_prefix))
            if number > LAYERS:
                spans.update(
                    (*layer.span(part.start, part.end), Kind.UNREADABLE) for part in layer.parts
                )
    except Exception as error:  # whatever it says may quote the text
        failure = type(error).__name__
    if failure:  # outside the handler: no context that would carry the text along
        raise ScanFailed(
            f"A recognizer of identifiers failed ({failure}) on a text of {len(text)} characters, "
            "so that text counts as unread. Nothing of it is shown here on purpose."
        )
    return [
        Finding(*plain.span(start, end), kind, kind.direct) for start, end, kind in _apart(spans)
    ]


def _spans(layer: Layer, pseudonym_prefix: str | None) -> Iterator[Span]:
    """What a layer says, in places of the lowest one, and what it could not take apart."""
    for first, last in _windows(layer):
        for offset, piece in _pieces(layer.text, first, last):
            for start, end, kind in _look(piece):
                span = offset + start, offset + end, kind
                if pseudonym_prefix is None or not _pseudonym(layer.text, span, pseudonym_prefix):
                    yield *layer.span(span[0], span[1]), kind
    if layer.below is not None:
        for start, end in layer.packed:
            yield *layer.below.span(start, end), Kind.UNREADABLE


def _windows(layer: Layer) -> Iterator[tuple[int, int]]:
    """What is to be read of a layer: the surroundings of what was decoded, cut between words."""
    if layer.below is None:
        yield 0, len(layer.text)
        return
    first = last = 0
    for part in layer.parts:
        if part.start - OVERLAP_CHARACTERS > last:
            if last:
                yield first, last
            first = _between_words(layer.text, part.start - OVERLAP_CHARACTERS)
        last = min(len(layer.text), part.end + OVERLAP_CHARACTERS)
    if layer.parts:
        yield first, last


def _between_words(text: str, place: int) -> int:
    """The next blank: half a number would be another one."""
    blank = text.find(" ", place, place + LONGEST_WORD)
    return place if blank < 0 else blank


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


def _pieces(text: str, first: int, last: int) -> Iterator[tuple[int, str]]:
    step = PIECE_CHARACTERS - OVERLAP_CHARACTERS
    for offset in range(first, max(first + 1, last - OVERLAP_CHARACTERS), step):
        yield offset, text[offset : min(last, offset + PIECE_CHARACTERS)]


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
