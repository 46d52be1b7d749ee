"""Texts inside a text: what escapes, base64 and hex stand for, layer by layer.

`MRN&#58; 00423178`, `jane.roe%40example.org`, `amFuZS5yb2VAZXhhbXBsZS5vcmc` and JSON inside a JSON
string are read as what they say. A layer never replaces the text it was read from: both are looked
at, so that decoding can hide nothing. Positions lead back to where the encoded part stands.
"""

import base64
import binascii
import html
import quopri
import re
from bisect import bisect_right
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from urllib.parse import unquote_to_bytes

from factory.data.identifiers.normal import normal

LAYERS = 6
"""Encodings inside each other that are read; a text that has more counts as unreadable."""

SHORTEST = 6
"""Characters that something packed must hold to be looked at: shorter, and any word would do."""

BINARY_CHARACTERS = 200
"""Base64 of this length that is no text is a packed file; a shorter one may be a digest."""

LONG = 24
"""Letters of base64 from which on it is tried whatever it begins with: no text comes out of rubbish
of this length."""

_ESCAPES = re.compile(
    r"""(?P<entity>&(?:amp;)*(?:\#0*\d{1,7};?|\#x0*[\da-f]{1,6};?|[a-z][a-z\d]{1,30};))
      | (?P<percent>(?:%(?:25)*[\da-f]{2})+)
      | (?<!\\)(?:(?P<unicode>(?:\\+u[\da-f]{4})+)|(?P<byte>(?:\\+x[\da-f]{2})+)
          |\\+(?P<sign>[nrt"'/]))
      | (?P<word>=\?[\w*-]{1,60}\?q\?[!->@-~]{0,300}\?=(?:\s{1,9}(?==\?))?)
      | (?P<printable>=[ \t]*\r?\n|(?-i:=[2-7][\dA-F]|(?:=[89A-F][\dA-F]){2,}))
      | (?P<tag></?[a-z][^<>]{0,300}>)
      | (?<=\d)-[ \t]*\r?\n[ \t>]{0,8}(?=\d)""",
    re.VERBOSE | re.IGNORECASE,
)
"""In HTML, addresses, JSON and program text, quoted-printable and words of mail headers in it (RFC
2045 and 2047); tags; a number broken over lines."""

_QUOTED = re.compile(
    r"""=2E(?=[A-Za-z])|=3D(?=["'\w])|=0[AD]|(?:=[89A-F][\dA-F]){2}|^[^\n]{60,76}[^\s=]=\r?$""",
    re.MULTILINE,
)
"""What only quoted-printable has: in other texts, `=40` is a value."""

_DOMAIN = re.compile(
    r"(?!(?:mg|mcg|g|ml|l|iu|u|units?|mmol|sec|min|h)\.)[A-Za-z][\w-]{0,62}"
    r"(?:\.[\w-]{1,63}){0,4}\.(?:[a-z]{2,63}|[A-Z]{2,63})(?!\w)"
)
"""What follows the sign of an address, and no dose: `=40example.org`, not `=40mg.po`."""

_SIGNS = {"n": "\n", "r": "\n", "t": "\t"}

_INLINE = re.compile(
    r"</?(?:a|b|em|font|i|mark|s|small|span|strong|sub|sup|u|wbr)\b", re.IGNORECASE
)
"""Tags that do not end a word."""

_LETTERS = r"A-Za-z0-9+/_-"
_PACKED = re.compile(
    rf"""(?<![A-Za-z0-9+_-])
      (?:(?P<hex>(?:0x)?(?:[\da-fA-F]{{2}}[ :]?){{5,}}[\da-fA-F]{{2}}(?![A-Za-z\d]))
        |(?P<base64>(?=(?:[A-Za-f][{_LETTERS}]{{3}}){{2}}|77u[/_]|[/_][/_v]|[{_LETTERS}]{{{LONG}}})
            (?:[{_LETTERS}]{{40,}}\r?\n[ \t>]{{0,8}})*[{_LETTERS}]{{8,}}={{0,2}}))""",
    re.VERBOSE,
)
"""Base64 of ASCII has one of 32 letters in every fourth place. Hex digits may stand apart."""

type Reader = Callable[[re.Match[str]], str | None]
"""What a match stands for; none where it stands for itself."""

_CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\x80-\x9f\ufffd]")
_RUN = re.compile(r"[A-Za-z\d]{20}")
_KINDS_OF_LETTER = (re.compile("[a-z]"), re.compile("[A-Z]"), re.compile(r"\d"))


@dataclass(frozen=True, slots=True)
class Part:
    """A piece of a layer that stands for another piece of the text below."""

    start: int
    end: int
    source_start: int
    source_end: int


@dataclass(frozen=True)
class Layer:
    """A text with the encodings of the one below resolved."""

    text: str
    below: "Layer | None" = None
    parts: list[Part] = field(default_factory=list[Part])
    packed: list[tuple[int, int]] = field(default_factory=list[tuple[int, int]])
    """Where the text below holds base64 of something that is no text."""

    def span(self, start: int, end: int) -> tuple[int, int]:
        """The part of the lowest text that a part of this one stands for."""
        if self.below is None or start >= end:
            return start, end
        return self.below.span(self._source(start)[0], self._source(end - 1)[1])

    def __repr__(self) -> str:
        return f"Layer({len(self.text)} characters, {len(self.parts)} decoded)"

    @cached_property
    def _starts(self) -> list[int]:
        return [part.start for part in self.parts]

    def _source(self, place: int) -> tuple[int, int]:
        """Where a character comes from."""
        before = bisect_right(self._starts, place) - 1
        if before < 0:
            return place, place + 1
        part = self.parts[before]
        if place < part.end:
            return part.source_start, part.source_end
        source = part.source_end + place - part.end
        return source, source + 1


def layers(text: str) -> Iterator[Layer]:
    """The text, and what it becomes when it is decoded, as often as it changes, and once more."""
    layer = Layer(text)
    yield layer
    for _ in range(LAYERS + 1):
        layer = _decoded(layer)
        if layer.parts or layer.packed:
            yield layer
        if not layer.parts:
            return


def _decoded(below: Layer) -> Layer:
    """Escapes first, then what is packed: an escape may stand inside base64, but not around it."""
    quoted = "=" in below.text and _QUOTED.search(below.text) is not None
    escaped = _replaced(below, _ESCAPES, lambda match: _unescaped(match, quoted=quoted))
    return escaped if escaped.parts else _replaced(below, _PACKED, _unpacked)


def _replaced(below: Layer, pattern: re.Pattern[str], read: Reader) -> Layer:
    pieces: list[str] = []
    parts: list[Part] = []
    packed: list[tuple[int, int]] = []
    length = last = 0
    for match in pattern.finditer(below.text):
        value = read(match)
        if value is None:
            packed += [match.span()] * (match.lastgroup == "base64" and _is_file(match[0]))
            continue
        pieces += [below.text[last : match.start()], value]
        start = length + match.start() - last
        length, last = start + len(value), match.end()
        parts.append(Part(start, length, *match.span()))
    if not parts:
        return Layer(below.text, below, packed=packed)
    return Layer("".join([*pieces, below.text[last:]]), below, parts, packed)


def _unescaped(match: re.Match[str], *, quoted: bool) -> str | None:
    whole, group = match[0], match.lastgroup
    if group == "sign":
        return _SIGNS.get(match["sign"].lower(), match["sign"])
    if group == "tag":
        return "" if _INLINE.match(whole) else " "
    if group is None:
        return "-"
    if group == "printable" and not quoted and _is_value(match):
        return None
    value = _VALUES[group](whole)
    return None if value == whole else normal(value).text


def _entity(text: str) -> str:
    return html.unescape("&" + re.sub("amp;", "", text[1:], flags=re.IGNORECASE))


def _percent(text: str) -> str:
    once = re.sub(r"%(?:25)+(?=[\da-fA-F]{2})", "%", text)
    return unquote_to_bytes(once).decode("utf-8", errors="replace")


def _unicode(text: str) -> str:
    units = bytes.fromhex("".join(re.findall(r"u([\da-fA-F]{4})", text)))
    return units.decode("utf-16-be", errors="replace")


def _byte(text: str) -> str:
    data = bytes.fromhex("".join(re.findall(r"x([\da-fA-F]{2})", text)))
    return data.decode("utf-8", errors="replace")


def _is_value(match: re.Match[str]) -> bool:
    """Whether `=40` is a number behind a sign, in a text that shows no quoted-printable."""
    whole = match[0]
    if len(whole) > 3 or "\n" in whole:
        return False
    return whole != "=40" or _DOMAIN.match(match.string, match.end()) is None


def _word(text: str) -> str:
    data = quopri.decodestring(text.rstrip()[:-2].split("?", 3)[3], header=True)
    try:
        return data.decode()
    except UnicodeDecodeError:
        return data.decode("cp1252", errors="replace")


def _printable(text: str) -> str:
    if "\n" in text:
        return ""
    return bytes.fromhex(text.replace("=", "")).decode("utf-8", errors="replace")


_VALUES: dict[str, Callable[[str], str]] = {
    "entity": _entity,
    "percent": _percent,
    "unicode": _unicode,
    "byte": _byte,
    "word": _word,
    "printable": _printable,
}


def _unpacked(match: re.Match[str]) -> str | None:
    whole = match[0]
    if match.lastgroup == "hex":
        bare = re.sub(r"^0x|[ :]", "", whole)
        if bare.isdigit() and bare != whole:  # temperatures, one after the other
            return None
        return _text(bytes.fromhex(bare)) or _base64(whole)
    text = _base64(whole)
    if text is None and "\n" in whole:  # what follows the lines may be a word
        lines, _, rest = whole.rpartition("\n")
        packed = _base64(lines)
        text = None if packed is None else f"{packed}\n{rest}"
    if text is None and "/" in whole:  # or stand before them
        texts = [(_base64(one), one) for one in whole.split("/")]
        if any(value is not None for value, _ in texts):
            text = "/".join(one if value is None else value for value, one in texts)
    return text


def _base64(text: str) -> str | None:
    letters = re.sub(r"[\s>=]", "", text).replace("-", "+").replace("_", "/")
    letters = letters[: len(letters) - (len(letters) % 4 == 1)]
    try:
        return _text(base64.b64decode(letters + "=" * (-len(letters) % 4)))
    except binascii.Error:
        return None


def _text(data: bytes) -> str | None:
    """Bytes as text, if they are printable text and nothing else."""
    if data[1::2].count(0) > len(data) // 4 or data.startswith(b"\xff\xfe"):
        encoding = "utf-16-le"
    elif data[::2].count(0) > len(data) // 4 or data.startswith(b"\xfe\xff"):
        encoding = "utf-16-be"
    else:
        encoding = "utf-8"
    try:
        text = data.decode(encoding)
    except UnicodeDecodeError:
        return None
    if len(text) < SHORTEST or _CONTROL.search(text):
        return None
    return normal(text).text


def _is_file(text: str) -> bool:
    return len(text) >= BINARY_CHARACTERS and may_be_base64(text)


def may_be_base64(text: str) -> bool:
    """Whether capitals, small letters and digits are in it, as base64 has, and words have not.

    Where `-` or `_` are in it, they part no words: in base64 they are one letter of 32.
    """
    parted = "-" in text or "_" in text
    return all(one.search(text) for one in _KINDS_OF_LETTER) and (
        not parted or _RUN.search(text) is not None
    )
