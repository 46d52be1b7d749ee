"""PubMed: one `PubmedArticle` of NLM's baseline, update files or EFetch to plain text.

What the elements mean is in NLM's "MEDLINE/PubMed XML Element Descriptions and their Attributes"
(www.nlm.nih.gov/bsd/licensee/elements_descriptions.html) and in its DTD
(dtd.nlm.nih.gov/ncbi/pubmed/out/pubmed_190101.dtd and later). What matters here:

- `ArticleTitle` is English always; one translated for PubMed stands in square brackets, as NLM
  writes it, and the brackets are kept. A title may begin with one for other reasons: `[14C]amino`.
  `[Not Available].` says that there is no English one: then it is `VernacularTitle`.
- `Abstract` is the article's own, in English; `Label` holds the printed heading of a part, and
  `UNLABELLED` where a structured abstract has a part without one. Those of other bodies, in other
  languages and for lay readers are in `OtherAbstract` and left out: they repeat, or are not free.
- Some older abstracts were cut at 250 or 400 words and say so: see `Citation.truncated`.
- `PubDate` is a `Year` with parts, or `MedlineDate`, free text such as `1979 Dec-1980 Jan`.
- Titles and abstracts hold `b i u sup sub` and MathML since 2018, plain text before.

Full texts are in `jats`, which has no abstract-only records.
"""

import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from factory.data import mathml

if TYPE_CHECKING:
    from factory.data.row import Element

NOT_READ = ("MeshHeadingList", "PubmedData", "AuthorList", "ChemicalList")
"""Parts of a record that `citation` does not look at, more than half of it: see `Row.without`."""

UNLABELLED = "UNLABELLED"
NOT_AVAILABLE = "[Not Available]."

_TRUNCATED = re.compile(r"\(ABSTRACT TRUNCATED(?: AT \d+ WORDS)?\)\s*$")
_YEAR = re.compile(r"\b(?:1[5-9]|20)\d\d\b")
_EXPONENT = re.compile(r"[−–+-]?\d+")  # noqa: RUF001  minus signs as publishers type them
_INVISIBLE = re.compile("[\u00ad\u200b\u2060\ufeff]")
_MATH = "{http://www.w3.org/1998/Math/MathML}math"


@dataclass(frozen=True, slots=True)
class Citation:
    """What a record says about its article."""

    pmid: str
    title: str
    sections: tuple[tuple[str, str], ...]
    """Parts of the abstract, each with its heading as printed; none where there is no abstract."""

    journal: str
    year: str
    """Of the issue; of a span of years the first; empty where the date names none."""

    languages: tuple[str, ...]
    """Of the article, not of this record: three letters, `eng`, `ger`; several in some."""

    types: tuple[str, ...]
    """`Journal Article`, `Case Reports`, `Retracted Publication`."""

    copyright: str
    """What the publisher claims for the abstract; empty where the record says nothing."""

    @property
    def truncated(self) -> bool:
        """NLM cut the abstract, and says so at its end."""
        return bool(self.sections) and _TRUNCATED.search(self.sections[-1][1]) is not None


def citation(root: "Element") -> Citation:
    """Read a record.

    Raises:
        ValueError: the element is no PubmedArticle.
    """
    record = next(root.iterchildren("MedlineCitation"), None)
    article = next(record.iterchildren("Article"), None) if record is not None else None
    if record is None or article is None:
        raise ValueError(
            f"<{root.tag}> has no MedlineCitation with an Article, so it is no PubmedArticle"
        )
    # One walk over the children: a search for each of them takes three times as long.
    parts = {part.tag: part for part in article}
    abstract, journal, types = map(parts.get, ("Abstract", "Journal", "PublicationTypeList"))
    return Citation(
        pmid=_text(next(record.iterchildren("PMID"), None)),
        title=_title(parts.get("ArticleTitle"), parts.get("VernacularTitle")),
        sections=tuple(_sections(abstract)) if abstract is not None else (),
        journal=_text(next(journal.iterchildren("Title"), None)) if journal is not None else "",
        year=_year(journal) if journal is not None else "",
        languages=tuple(map(_text, article.iterchildren("Language"))),
        types=tuple(map(_text, types)) if types is not None else (),
        copyright=_copyright(abstract) if abstract is not None else "",
    )


def headings(root: "Element") -> tuple[str, ...]:
    """The MeSH headings of a record, as PubMed shows them: `Melatonin/*physiology`.

    An asterisk marks what the article is about. Apart from `citation`, because there are so many
    that reading them takes as long as all the rest.
    """
    found: list[str] = []
    for record in root.iterchildren("MedlineCitation"):
        for term in record.iter("DescriptorName", "QualifierName"):
            name = _text(term)
            if term.get("MajorTopicYN") == "Y":
                name = f"*{name}"
            if term.tag == "DescriptorName":
                found.append(name)
            elif found:
                found[-1] += f"/{name}"
    return tuple(found)


def _title(english: "Element | None", own: "Element | None") -> str:
    title = _text(english)
    return _text(own) or title if title in ("", NOT_AVAILABLE) else title


def _sections(abstract: "Element") -> Iterator[tuple[str, str]]:
    for part in abstract.iterchildren("AbstractText"):
        text = _text(part)
        if text:
            label = _tidy(part.get("Label", ""))
            yield "" if label == UNLABELLED else label, text


def _copyright(abstract: "Element") -> str:
    return _text(next(abstract.iterchildren("CopyrightInformation"), None))


def _year(journal: "Element") -> str:
    stated = next(journal.iter("Year", "MedlineDate"), None)  # there is no date but the issue's
    found = _YEAR.search(stated.text or "") if stated is not None else None
    return found[0] if found else ""


def _text(element: "Element | None") -> str:
    """Text on one line, or nothing where there is no element."""
    if element is None:
        return ""
    return _tidy(_marked(element) if len(element) else element.text or "")


def _tidy(text: str) -> str:
    """One space for every run of white space, composed characters, no invisible ones."""
    if not text.isascii():
        text = unicodedata.normalize("NFC", _INVISIBLE.sub("", text))
    elif text.isprintable() and "  " not in text:
        return text.strip()  # most are tidy, which is seen sooner than it is made
    return " ".join(text.split())


def _marked(element: "Element") -> str:
    """Text with mark-up in it; a power stays one: `10^-3`."""
    parts = [element.text or ""]
    for child in element:
        if _has_name(child.tag):
            written = mathml.linear(child) if child.tag == _MATH else _marked(child)
            power = child.tag == "sup" and _EXPONENT.fullmatch(written)
            parts.append(f"^{written}" if power and parts[-1][-1:].isdigit() else written)
        parts.append(child.tail or "")
    return "".join(parts)


def _has_name(tag: object) -> bool:
    """Of an element; comments and instructions have a function for a tag."""
    return isinstance(tag, str)
