"""Values of FHIR in a line of text: codes by their display, quantities with units, names, dates.

JSON does not say of which type a value is, its fields do. An extension inside a value, the system
of a code and what a value is used for (`use`, `rank`) are left out.
"""

import base64
import binascii
import re
from collections.abc import Callable, Iterable, Mapping
from html import unescape
from typing import Any, cast

type Json = Mapping[str, Any]

BETWEEN = "; "

_CONTACTS = frozenset({"phone", "fax", "email", "pager", "url", "sms", "other"})
_TAGS = re.compile(r"<[^>]*>")


def label(name: str) -> str:
    """An element's name for a reader: `birthDate` is `Birth date`, `valueQuantity` is `Value`."""
    choice = _CHOICE.fullmatch(name)
    words = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", " ", choice[1] if choice else name)
    return words.replace("-", " ").replace("_", " ").strip().capitalize()


def text(value: object) -> str:
    """A value as text; empty where there is nothing to say."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, str):
        return value.strip()
    if isinstance(value, Mapping):
        return _complex(cast("Json", value))
    if isinstance(value, list):
        return _joined(map(text, cast("list[object]", value)))
    return "" if value is None else str(value)


def shape(value: object) -> "Callable[[Json], str] | None":
    """What reads a value whole, if it is of a data type; elements of other kinds have parts."""
    if not isinstance(value, Mapping):
        return None
    fields = {name: one for name, one in cast("Json", value).items() if name not in _ASIDE}
    names = frozenset(fields)
    for known, is_one, read in _SHAPES:
        if names and names <= known and is_one(fields):
            return read
    return None


def extension(value: Json) -> tuple[str, str]:
    """Label and text of an extension; of one made of others, their texts."""
    address = str(value.get("url", ""))
    name = re.sub(r"^us-core-", "", address.rstrip("/").rpartition("/")[2])
    own = (one for key, one in value.items() if key.startswith("value"))
    inner = cast("list[Json]", value.get("extension") or [])
    texts = [text(one) for one in own]
    texts += [said for _, said in map(extension, inner)]
    return label(name), _joined(dict.fromkeys(texts))


def _complex(value: Json) -> str:
    read = shape(value)
    if read is not None:
        return read(value)
    parts = (f"{label(name)}: {text(one)}" for name, one in value.items() if name not in _ASIDE)
    return ", ".join(part for part in parts if not part.endswith(": "))


def _joined(texts: Iterable[str]) -> str:
    return BETWEEN.join(one for one in texts if one)


def _words(*values: object) -> str:
    return " ".join(one for one in map(text, values) if one)


def _coding(value: Json) -> str:
    display, code = text(value.get("display")), text(value.get("code"))
    return f"{display} ({code})" if display and code else display or code


def _concept(value: Json) -> str:
    written = text(value.get("text"))
    codes = [_coding(one) for one in value.get("coding") or () if one]
    return _joined(dict.fromkeys([written, *codes])) if written not in codes else _joined(codes)


def _quantity(value: Json) -> str:
    unit = value.get("unit") or value.get("code")
    return _words(value.get("comparator"), value.get("value"), unit)


def _range(value: Json) -> str:
    low, high = text(value.get("low")), text(value.get("high"))
    if low and high:
        return f"{low} to {high}"
    return f"from {low}" if low else f"up to {high}"


def _ratio(value: Json) -> str:
    return f"{text(value.get('numerator'))} / {text(value.get('denominator'))}"


def _period(value: Json) -> str:
    start, end = text(value.get("start")), text(value.get("end"))
    if start and end:
        return f"{start} to {end}"
    return f"since {start}" if start else f"until {end}"


def _reference(value: Json) -> str:
    return text(value.get("display") or value.get("reference") or value.get("identifier"))


def _identifier(value: Json) -> str:
    kind = text(value.get("type"))
    number = text(value.get("value"))
    return f"{kind} {number}" if kind else number


def _contact(value: Json) -> str:
    use = text(value.get("use"))
    kind = text(value.get("system"))
    return f"{text(value.get('value'))} ({f'{kind}, {use}' if use else kind})"


def _name(value: Json) -> str:
    if value.get("text"):
        return text(value["text"])
    names = (one for key in ("prefix", "given") for one in value.get(key) or ())
    return _words(*names, value.get("family"), *(value.get("suffix") or ()))


def _address(value: Json) -> str:
    if value.get("text"):
        return text(value["text"])
    place = _words(value.get("state"), value.get("postalCode"))
    lines = [*(value.get("line") or ()), value.get("city"), value.get("district"), place]
    return ", ".join(one for one in map(text, [*lines, value.get("country")]) if one)


def _annotation(value: Json) -> str:
    author = value.get("authorString") or value.get("authorReference")
    said = [text(author), text(value.get("time"))]
    about = ", ".join(one for one in said if one)
    return f"{text(value['text'])} ({about})" if about else text(value["text"])


def _attachment(value: Json) -> str:
    """The text of an attached text, with its lines; of others what they are."""
    kind = text(value.get("contentType"))
    data = value.get("data")
    if isinstance(data, str) and kind.startswith("text/"):
        try:
            written = base64.b64decode(data, validate=True).decode()
        except (binascii.Error, ValueError):
            written = ""
        if written.strip():
            return (
                unescape(_TAGS.sub("", written)) if kind.startswith("text/html") else written
            ).strip()
    named = text(value.get("title") or value.get("url"))
    return " ".join(one for one in (named, f"[{kind or 'attachment'}]") if one)


def _narrative(value: Json) -> str:
    return " ".join(unescape(_TAGS.sub(" ", str(value.get("div", "")))).split())


def _is_text(*names: str) -> Callable[[Json], bool]:
    """Whether one of these is there, and all that are there are text."""
    return lambda value: (
        any(name in value for name in names)
        and all(isinstance(value[name], str) for name in names if name in value)
    )


def _has(*names: str) -> Callable[[Json], bool]:
    return lambda value: any(name in value for name in names)


def _is_quantity(value: Json) -> bool:
    number = value.get("value")
    return isinstance(number, int | float) and not isinstance(number, bool)


def _is_contact(value: Json) -> bool:
    return value.get("system") in _CONTACTS and "value" in value


_ASIDE = frozenset({"id", "extension", "modifierExtension"})

type _Shape[Names] = tuple[Names, Callable[[Json], bool], Callable[[Json], str]]

_TYPES: tuple[_Shape[str], ...] = (
    ("status div", _is_text("div"), _narrative),
    ("coding text", _has("coding", "text"), _concept),
    ("system version code display userSelected", _is_text("code", "display"), _coding),
    ("value comparator unit system code", _is_quantity, _quantity),
    ("low high", _has("low", "high"), _range),
    ("numerator denominator", _has("numerator", "denominator"), _ratio),
    ("start end", _is_text("start", "end"), _period),
    ("use system value rank period", _is_contact, _contact),
    ("use type system value period assigner", _is_text("value"), _identifier),
    ("reference type identifier display", _has("reference", "display"), _reference),
    ("use text family given prefix suffix period", _has("family", "given"), _name),
    (
        "use type text line city district state postalCode country period",
        _is_text("city", "state", "country", "postalCode", "text"),
        _address,
    ),
    ("authorString authorReference time text", _is_text("text"), _annotation),
    (
        "contentType language data url size hash title creation",
        _is_text("contentType", "data", "url"),
        _attachment,
    ),
)
"""Fields that a data type can have, what tells it from others with some of them, and its text."""

_SHAPES: tuple[_Shape[frozenset[str]], ...] = tuple(
    (frozenset(names.split()), is_one, read) for names, is_one, read in _TYPES
)

_CHOICE = re.compile(
    "(value|effective|onset|abatement|deceased|multipleBirth|medication|performed|occurrence|"
    "serviced|scheduled|timing|product|reported|asNeeded|rate|dose|born|age|collected|allowed|"
    "used|content|entity|item|due|start|event|defaultValue|location|diagnosis|procedure)"
    "(Boolean|Integer|Decimal|String|Date|DateTime|Time|Instant|Code|Uri|CodeableConcept|Coding|"
    "Quantity|Range|Ratio|Period|Reference|Age|Duration|Identifier|Attachment|Annotation|Timing|"
    "SampledData|Money|HumanName|Address|ContactPoint)"
)
"""Elements whose name says of which type their value is."""
