"""JATS and its predecessors: a journal article in XML to plain text, section by section.

Kept are title, abstracts and body: paragraphs, lists, quotes, boxes, formulae as far as they are
text, and the captions of figures and tables. Left out are table cells, reference lists and the
numbers that point to them, supplementary files and the back matter, which say little without what
they refer to. Headings of nested sections name their parents: `Methods / Cell culture`.
"""

# ruff: noqa: RUF001  articles have dashes and signs that look like others

import re
import unicodedata
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from factory.data import licence, mathml

if TYPE_CHECKING:
    from factory.data.row import Element

PARAGRAPH, LINE, CITATION = "\ue001", "\ue002", "\ue003"
"""Marks inside text that is being put together, from the range that no standard text uses."""

HREF = "{http://www.w3.org/1999/xlink}href"
NO_TEXT = "[formula]"

_REPEATS = frozenset({"toc", "graphical", "teaser", "precis"})
"""Abstracts that only repeat the article in fewer words than its abstract."""

_PRIVATE_USE = re.compile("[\ue000-\uf8ff]")
_INVISIBLE = re.compile("[\u00ad\u200b\u2060\ufeff]")
_MARKS = r"\ue003(?:[\s,;–—-]*\ue003)*"
_WITHOUT_CITATIONS = (
    (re.compile(rf"\[[\s–—-]*{_MARKS}[\s,;–—-]*\]"), CITATION),
    (re.compile(rf"\(\s*(?:e\.g\.,?|see|reviewed in)?\s*{_MARKS}[\s,;–—-]*\)"), CITATION),
    (re.compile(rf"[,;]\s*{_MARKS}\s*(?=[,;.)\]])"), ""),
    (re.compile(rf"(?<=[(\[])\s*{_MARKS}\s*[,;:]?\s*"), ""),
    (re.compile(rf"\s*{_MARKS}"), ""),
)
"""What goes with the numbers that point to references: brackets around them, commas between."""

_LOOSE = re.compile(r"[ \t]+([,;.])(?=\s|$)")
_NUMBERS = re.compile(r"[\[(]?\s*\d{1,3}(?:[\s,;–—-]+\d{1,3})*[a-z]?\s*[\])]?")
_EXPONENT = re.compile(r"[−–+-]?\d+")


@dataclass(frozen=True, slots=True)
class Article:
    """What an article says, and what may be done with it."""

    title: str
    sections: tuple[tuple[str, str], ...]
    license: str | None
    """SPDX id; none where the article does not say one clearly."""

    doi: str
    journal: str
    kind: str
    """As the publisher calls it: `research-article`, `editorial`."""

    year: str


def article(root: "Element") -> Article:
    """Read an article.

    Raises:
        ValueError: the element is no JATS article.
    """
    front = root.find("front")
    meta = front.find("article-meta") if front is not None else None
    if root.tag != "article" or front is None or meta is None:
        raise ValueError(f"<{root.tag}> has no front and article-meta, so it is no JATS article")
    title = meta.find("title-group/article-title")
    return Article(
        title=_flat(title) if title is not None else "",
        sections=(*_abstracts(meta), *_body(root)),
        license=_license(meta),
        doi=_plain(meta, "article-id[@pub-id-type='doi']"),
        journal=_plain(front, "journal-meta//journal-title")
        or _plain(front, "journal-meta/journal-id[@journal-id-type='nlm-ta']"),
        kind=root.get("article-type", ""),
        year=_plain(meta, "pub-date/year"),
    )


def _abstracts(meta: "Element") -> Iterator[tuple[str, str]]:
    for abstract in meta.findall("abstract"):
        kind = abstract.get("abstract-type", "")
        if kind not in _REPEATS:
            own = abstract.find("title")
            heading = _flat(own) if own is not None else ""
            yield from _sections(abstract, heading or f"Abstract ({kind})".removesuffix(" ()"))


def _body(root: "Element") -> Iterator[tuple[str, str]]:
    body = root.find("body")
    if body is not None:
        yield from _sections(body, "")


def _sections(parent: "Element", heading: str) -> Iterator[tuple[str, str]]:
    """Text directly in a section, then its sections, in the order of the article."""
    pending: list[str] = []
    for child in _elements(parent):
        if child.tag in ("title", "label", "sec-meta"):
            continue
        if child.tag != "sec":
            pending.append(PARAGRAPH + _marked(child))
            continue
        yield from _section(heading, pending)
        pending = []
        title = child.find("title")
        names = [heading, _flat(title) if title is not None else ""]
        yield from _sections(child, " / ".join(name for name in names if name))
    yield from _section(heading, pending)


def _section(heading: str, pending: list[str]) -> Iterator[tuple[str, str]]:
    text = _finished("".join(pending))
    if text:
        yield heading, text


def _license(meta: "Element") -> str | None:
    """From permissions, or from where older articles have it: even in the copyright line."""
    places = ("permissions/license", "license", "permissions/copyright-statement")
    found = [one for place in (*places, "copyright-statement") for one in meta.findall(place)]
    addresses: list[str] = []
    for one in found:
        addresses += [value for node in one.iter() if (value := node.get(HREF))]
    text = " ".join(" ".join(str(part) for part in one.itertext()) for one in found)
    return licence.spdx(addresses, text)


# Text. Every function returns text with marks; `_finished` turns marks into breaks.


def _marked(element: "Element") -> str:
    writer = _WRITERS.get(str(element.tag))
    return _content(element) if writer is None else writer(element)


def _content(element: "Element") -> str:
    """Text of an element: its own, its children's, and what follows each of them."""
    parts = [_given(element.text)]
    for child in element:
        written = _marked(child) if _has_name(child.tag) else ""
        if child.tag == "sup" and _EXPONENT.fullmatch(written) and parts[-1][-1:].isdigit():
            written = f"^{written}"
        parts += [written, _given(child.tail)]
    return "".join(parts)


def _given(text: str | None) -> str:
    return _PRIVATE_USE.sub("", text or "")


def _paragraph(element: "Element") -> str:
    return f"{PARAGRAPH}{_content(element)}{PARAGRAPH}"


def _list(element: "Element") -> str:
    lines: list[str] = []
    for item in element.findall("list-item"):
        label = item.find("label")
        mark = _flat(label) if label is not None else "-"
        text = _finished("".join(_marked(one) for one in _elements(item) if one.tag != "label"))
        lines.append(f"{mark} {text}".replace("\n\n", LINE).replace("\n", LINE))
    return f"{PARAGRAPH}{LINE.join(lines)}{PARAGRAPH}"


def _captioned(element: "Element") -> str:
    """A figure or table: its label and caption, without the picture or the cells."""
    label, caption = element.find("label"), element.find("caption")
    if caption is None:
        return ""
    parts = [_flat(label)] if label is not None else []
    parts += _finished(_content(caption)).split("\n")
    sentences = [part if part[-1] in ".?!:;" else f"{part}." for part in parts if part]
    return f"{PARAGRAPH}{' '.join(sentences)}{PARAGRAPH}"


def _boxed(element: "Element") -> str:
    """A box: its own title, then all its text; sections in it become paragraphs."""
    return f"{PARAGRAPH}{_content(element)}{PARAGRAPH}"


def _reference(element: "Element") -> str:
    """A number that points to the reference list goes; a name stays, as the sentence needs it."""
    text = _content(element)
    if element.get("ref-type") != "bibr" or not _NUMBERS.fullmatch(_finished(text)):
        return text
    return CITATION


def _formula(element: "Element") -> str:
    text = ""
    for node in element.iter():
        name = str(node.tag).rpartition("}")[2]
        if name == "math" and not text:
            text = mathml.linear(node)
        if name == "tex-math" and not text:
            text = _tex("".join(str(part) for part in node.itertext()))
    if not text:
        own = _finished(_content(element))
        text = own or (NO_TEXT if _is_picture(element) else "")
    label = element.find("label")
    number = f" {_flat(label)}" if label is not None and element.tag == "disp-formula" else ""
    return _given(text) + number


def _display(element: "Element") -> str:
    return f"{PARAGRAPH}{_formula(element)}{PARAGRAPH}"


def _is_picture(element: "Element") -> bool:
    return any(node.tag in ("graphic", "inline-graphic") for node in element.iter())


def _tex(source: str) -> str:
    """The formula inside the small TeX document that publishers wrap around it."""
    found = re.search(r"\\begin\{document\}(.*?)\\end\{document\}", source, re.DOTALL)
    return " ".join((found[1] if found else source).strip().strip("$").split())


def _nothing(element: "Element") -> str:
    return ""


def _break(element: "Element") -> str:
    return " "


_WRITERS: dict[str, Callable[["Element"], str]] = {
    "p": _paragraph,
    "title": _paragraph,
    "list": _list,
    "disp-quote": _paragraph,
    "boxed-text": _boxed,
    "def-item": _paragraph,
    "verse-line": _paragraph,
    "preformat": _paragraph,
    "code": _paragraph,
    "fig": _captioned,
    "table-wrap": _captioned,
    "disp-formula": _display,
    "inline-formula": _formula,
    "{http://www.w3.org/1998/Math/MathML}math": mathml.linear,
    "xref": _reference,
    "break": _break,
} | dict.fromkeys(
    (
        *("graphic", "inline-graphic", "media", "object-id", "supplementary-material"),
        *("fn", "fn-group", "label", "ref-list", "table", "table-wrap-foot"),
        *("index-term", "private-char"),
    ),
    _nothing,
)


def _elements(parent: "Element") -> Iterator["Element"]:
    """Children without comments and instructions, whose tag is no text."""
    return (child for child in parent if _has_name(child.tag))


def _has_name(tag: object) -> bool:
    return isinstance(tag, str)


def _plain(parent: "Element", path: str) -> str:
    found = parent.find(path)
    return "" if found is None else _flat(found)


def _flat(element: "Element") -> str:
    """Text on one line."""
    return _on_one_line(_finished(_content(element)))


def _on_one_line(text: str) -> str:
    return _LOOSE.sub(r"\1", " ".join(text.split()))


def _finished(marked: str) -> str:
    """Breaks for marks, one space for every run of white space, composed characters."""
    text = _INVISIBLE.sub("", marked)
    for pattern, instead in _WITHOUT_CITATIONS:
        text = pattern.sub(instead, text)
    paragraphs = (
        "\n".join(line for part in paragraph.split(LINE) if (line := _on_one_line(part)))
        for paragraph in text.split(PARAGRAPH)
    )
    return unicodedata.normalize("NFC", "\n\n".join(one for one in paragraphs if one))
