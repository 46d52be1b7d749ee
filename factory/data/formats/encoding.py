"""Encoding: bytes to text, chunk by chunk, by one rule that loses nothing and guesses nothing.

As declared; else by the mark at the beginning (UTF-8, UTF-16, UTF-32); else strictly as UTF-8; else
as `charset-normalizer` detects it, where the declaration says how sure it must be; else the file is
refused with the offset of the byte. What was used goes into the notes. A file is never read twice,
nor as a whole: whether it is UTF-8 shows when the first byte comes that is none, and if text in
UTF-8 was handed on before, the file is refused, since no single encoding is right for it.
"""

import codecs
from collections.abc import Iterator
from dataclasses import dataclass

from factory.data.formats.notes import UTF_8
from factory.data.formats.opened import Opened
from factory.errors import BadFile

CHUNK = 2**20
SAMPLE = 2**16
"""Bytes around the first one that is not UTF-8 from which an encoding is detected."""

NEAR = 0.05
"""How close to the best a second encoding may come: closer, and it is anybody's guess."""

RIVALS_NAMED = 4

_MARKS = (
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)


def text(file: Opened) -> Iterator[str]:
    """The file's text in chunks, without its mark; line ends as they are.

    Raises:
        BadFile: a byte does not fit the encoding.
    """
    chunks = _text(file)
    first = next(chunks, "")
    yield first.removeprefix("\ufeff")
    yield from chunks


def _text(file: Opened) -> Iterator[str]:
    first = file.stream.read(CHUNK)
    mark = next((name for sign, name in _MARKS if first.startswith(sign)), None)
    declared = file.rows.encoding
    if declared is not None:
        if mark == UTF_8 and codecs.lookup(declared).name not in (UTF_8, "utf-8-sig"):
            raise BadFile(
                f"{file.name}: is declared as {declared} and begins with the mark of UTF-8. "
                "Leave out the encoding."
            )
        file.notes.encoding(file.name, codecs.lookup(declared).name, "declared")
        yield from _strict(file, declared, first, 0)
    elif mark is not None:
        file.notes.encoding(file.name, mark, "by its mark")
        yield from _strict(file, mark, first, 0)
    else:
        yield from _utf8(file, first)


def _strict(file: Opened, encoding: str, first: bytes, offset: int) -> Iterator[str]:
    decoder = codecs.getincrementaldecoder(encoding)("strict")
    for data in _chunks(file, first):
        held = len(decoder.getstate()[0])
        try:
            yield decoder.decode(data, not data)
        except UnicodeDecodeError as error:
            place = offset - held + error.start
            raise BadFile(
                f"{file.name}, byte {place:,}: not {encoding} ({error.reason})."
            ) from None
        except UnicodeError:  # from a codec that wants a mark
            raise BadFile(
                f"{file.name}: is declared as {encoding}, and has no mark at its beginning to say "
                f"in which order its bytes are. Declare {encoding}-le or {encoding}-be."
            ) from None
        offset += len(data)


def _utf8(file: Opened, first: bytes) -> Iterator[str]:
    decoder = codecs.getincrementaldecoder(UTF_8)("strict")
    offset = 0
    plain = True
    for data in _chunks(file, first):
        held = decoder.getstate()[0]
        try:
            decoded = decoder.decode(data, not data)
        except UnicodeDecodeError as error:
            place = offset - len(held) + error.start
            yield from _other(file, _Failed(place, offset - len(held), held + data, plain))
            return
        plain = plain and decoded.isascii()
        offset += len(data)
        yield decoded
    file.notes.encoding(file.name, UTF_8, "by default")


def _chunks(file: Opened, first: bytes) -> Iterator[bytes]:
    """What is left of the file, with an empty chunk at its end."""
    data = first
    while data:
        yield data
        data = file.stream.read(CHUNK)
    yield b""


@dataclass(frozen=True, slots=True)
class _Failed:
    """A chunk that is not UTF-8."""

    place: int
    """Offset in the file of the byte that does not fit."""

    offset: int
    """Of the chunk."""

    data: bytes
    plain: bool
    """Whether everything before the chunk was ASCII, which is the same in nearly any encoding."""


def _other(file: Opened, failed: _Failed) -> Iterator[str]:
    where = f"{file.name}, byte {failed.place:,}: not UTF-8"
    if not failed.plain:
        raise BadFile(
            f"{where}, though characters before it are. Look at the file, and declare "
            "Rows(encoding=...) if it has one encoding."
        )
    wanted = file.rows.min_confidence
    found = detect(failed.data, failed.place - failed.offset)
    if wanted is None or found.confidence < wanted or found.rivals:
        raise BadFile(f"{where}, and no mark says what it is. {found.advice(wanted)}")
    how = f"detected with confidence {found.confidence:.2f}"
    file.notes.encoding(file.name, found.encoding, how)
    yield from _strict(file, found.encoding, failed.data, failed.offset)


@dataclass(frozen=True, slots=True)
class Detected:
    """What an encoding seems to be."""

    encoding: str
    confidence: float
    rivals: tuple[str, ...]
    """Encodings that give another text and fit about as well."""

    def advice(self, wanted: float | None) -> str:
        """What to do about it."""
        if not self.encoding:
            return "No encoding fits it: is it text? If it is, declare Rows(encoding=...)."
        names = ", ".join((self.encoding, *self.rivals[: RIVALS_NAMED - 1]))
        if self.rivals:
            return f"It may be any of {names}: declare Rows(encoding=...)."
        low = "" if wanted is None else f", below the declared {wanted:.2f}"
        return (
            f"It may be {names} (confidence {self.confidence:.2f}{low}): look at it, and declare "
            "Rows(encoding=...)."
        )


def detect(data: bytes, place: int) -> Detected:
    """The encoding of text around the byte at `place`."""
    from charset_normalizer import from_bytes

    begin = max(0, data.rfind(b"\n", 0, max(0, place - SAMPLE // 2)))
    sample = data[begin : begin + SAMPLE]
    if begin + SAMPLE < len(data):  # a cut inside a character would count against its encoding
        sample = sample[: sample.rfind(b"\n") + 1] or sample
    found = list(from_bytes(sample, enable_fallback=False, preemptive_behaviour=False))
    if not found:
        return Detected("", 0.0, ())
    best, *others = found
    rivals = [
        one.encoding
        for one in others
        if str(one) != str(best)
        and one.chaos <= best.chaos + NEAR
        and one.coherence >= best.coherence - NEAR
    ]
    return Detected(best.encoding, 1.0 - best.chaos, tuple(rivals))
