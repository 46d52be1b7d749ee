"""PubMed records to text: by hand on small ones, and against the XML of 30,000 real ones."""

import gzip
import html
import re
import unicodedata
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from lxml import etree

from factory.data import pubmed

MATHML = 'xmlns:mml="http://www.w3.org/1998/Math/MathML"'


def element(article: str, beside: str = "") -> etree._Element:
    return etree.fromstring(
        f"<PubmedArticle {MATHML}><MedlineCitation><PMID Version='1'>7</PMID>"
        f"<Article>{article}</Article>{beside}</MedlineCitation><PubmedData><ArticleIdList>"
        "<ArticleId IdType='pubmed'>8</ArticleId></ArticleIdList></PubmedData></PubmedArticle>"
    )


def record(article: str, beside: str = "") -> pubmed.Citation:
    return pubmed.citation(element(article, beside))


def title(content: str) -> str:
    return record(f"<ArticleTitle>{content}</ArticleTitle>").title


def test_a_whole_record():
    found = record(
        """<Journal><ISSN>1</ISSN><JournalIssue><Volume>50</Volume><PubDate><Year>1979</Year>
        <Month>Jun</Month></PubDate></JournalIssue><Title>The  Journal</Title></Journal>
        <ArticleTitle>[The pineal body].</ArticleTitle>
        <Abstract><AbstractText Label="AIM" NlmCategory="OBJECTIVE">To see.</AbstractText>
        <AbstractText Label="UNLABELLED">Seen.</AbstractText>
        <AbstractText Label="NOTE"> </AbstractText>
        <CopyrightInformation>Copyright 1979 S. Karger AG.</CopyrightInformation></Abstract>
        <Language>afr</Language><Language>eng</Language>
        <PublicationTypeList><PublicationType UI="D016428">Journal Article</PublicationType>
        <PublicationType UI="D016441">Retracted Publication</PublicationType></PublicationTypeList>
        <VernacularTitle>Die pineale klier.</VernacularTitle>""",
        """<MeshHeadingList><MeshHeading><DescriptorName>Humans</DescriptorName></MeshHeading>
        </MeshHeadingList>
        <OtherAbstract Type="NASA" Language="eng"><AbstractText>Other.</AbstractText>
        </OtherAbstract>""",
    )
    assert found == pubmed.Citation(
        pmid="7",
        title="[The pineal body].",
        sections=(("AIM", "To see."), ("", "Seen.")),
        journal="The Journal",
        year="1979",
        languages=("afr", "eng"),
        types=("Journal Article", "Retracted Publication"),
        copyright="Copyright 1979 S. Karger AG.",
    )


def test_a_record_with_nothing_but_an_article():
    assert record("") == pubmed.Citation("7", "", (), "", "", (), (), "")


def test_headings_with_their_qualifiers():
    root = element(
        "",
        """<MeshHeadingList><MeshHeading><DescriptorName MajorTopicYN="Y">Humans</DescriptorName>
        </MeshHeading><MeshHeading><DescriptorName MajorTopicYN="N">Melatonin</DescriptorName>
        <QualifierName MajorTopicYN="Y">physiology</QualifierName>
        <QualifierName MajorTopicYN="N">blood</QualifierName></MeshHeading></MeshHeadingList>""",
    )
    assert pubmed.headings(root) == ("*Humans", "Melatonin/*physiology/blood")
    assert pubmed.headings(element("")) == ()


@pytest.mark.parametrize(
    "xml",
    [
        "<PubmedArticle/>",
        "<PubmedArticle><MedlineCitation/></PubmedArticle>",
        "<PubmedBookArticle><BookDocument/></PubmedBookArticle>",
    ],
)
def test_anything_else_is_no_record(xml: str) -> None:
    with pytest.raises(ValueError, match="no PubmedArticle"):
        pubmed.citation(etree.fromstring(xml))


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("a\n   b\t c", "a b c"),
        ("a\u00a0b", "a b"),
        ("co\u00adop", "coop"),
        ("cafe\u0301", "café"),
        ("[14C]amino acids.", "[14C]amino acids."),
        ("CO<sub>2</sub>, <i>E. <b>coli</b></i> end", "CO2, E. coli end"),
        ("10<sup>-3</sup> m<sup>2</sup> Ca<sup>2+</sup>", "10^-3 m2 Ca2+"),
        ("one<!-- no --> two<?no no?>", "one two"),
        (
            "p<mml:math><mml:msup><mml:mi>x</mml:mi><mml:mn>2</mml:mn></mml:msup></mml:math> q",
            "px^2 q",
        ),
    ],
)
def test_mark_up_in_a_title(given: str, expected: str) -> None:
    assert title(given) == expected


def test_without_an_english_title_the_own_one():
    english, own = "<ArticleTitle>[Not Available].</ArticleTitle>", "<VernacularTitle>Über."
    assert record(f"{english}{own}</VernacularTitle>").title == "Über."
    assert record(english).title == "[Not Available]."


@pytest.mark.parametrize(
    ("date", "year"),
    [
        ("<Year>1979</Year><Month>Jun</Month>", "1979"),
        ("<MedlineDate>1979 Dec-1980 Jan</MedlineDate>", "1979"),
        ("<MedlineDate>Spring 1998</MedlineDate>", "1998"),
        ("<MedlineDate>n.d.</MedlineDate>", ""),
        ("", ""),
    ],
)
def test_years(date: str, year: str) -> None:
    issue = f"<JournalIssue><PubDate>{date}</PubDate></JournalIssue>"
    assert record(f"<Journal>{issue}</Journal>").year == year


@pytest.mark.parametrize(
    ("end", "truncated"),
    [
        ("so(ABSTRACT TRUNCATED AT 250 WORDS)", True),
        ("so. (ABSTRACT TRUNCATED)", True),
        ("so (ABSTRACT TRUNCATED AT 400 WORDS) more", False),
        ("so.", False),
    ],
)
def test_abstracts_cut_by_nlm(end: str, *, truncated: bool) -> None:
    parts = f"<AbstractText>First.</AbstractText><AbstractText>{end}</AbstractText>"
    assert record(f"<Abstract>{parts}</Abstract>").truncated is truncated
    assert not record("").truncated


@pytest.fixture(scope="module")
def real(shared_data: Path) -> list[tuple[bytes, pubmed.Citation, tuple[str, ...]]]:
    """Every sixth record of the file: its XML, and what was read of it."""
    (path,) = (shared_data / "pubmed_baseline").glob("*.xml.gz")
    found: list[tuple[bytes, pubmed.Citation, tuple[str, ...]]] = []
    for number, xml in enumerate(_records(gzip.decompress(path.read_bytes()))):
        if number % 6 == 0:
            root = etree.fromstring(xml)
            found.append((xml, pubmed.citation(root), pubmed.headings(root)))
    return found


def _records(data: bytes) -> Iterator[bytes]:
    for found in re.finditer(rb"<PubmedArticle>.*?</PubmedArticle>", data, re.DOTALL):
        yield found[0]


def test_real_records_say_who_they_are(real):
    assert len(real) == 5_000
    assert len({citation.pmid for _, citation, _ in real}) == 5_000
    for _, citation, _ in real:
        assert citation.pmid.isdigit()
        assert citation.title
        assert citation.journal
        assert 1975 <= int(citation.year) <= 1981
        assert all(re.fullmatch("[a-z]{3}", one) for one in citation.languages)
        assert citation.types
        assert citation.copyright == ""
    assert sum(bool(citation.sections) for _, citation, _ in real) > 2_400


def test_real_text_is_all_there(real):
    """Letters only, from the raw bytes: nothing of title or abstract is lost, nothing gets in."""
    for xml, citation, _ in real:
        text = xml.decode()
        parts = re.findall(r"<Abstract>(.*?)</Abstract>", text, re.DOTALL)
        assert _letters("".join(text for _, text in citation.sections)) == _raw("".join(parts))
        whole = re.search(r"<ArticleTitle>(.*?)</ArticleTitle>", text, re.DOTALL)
        assert whole
        assert _letters(citation.title) == _raw(whole[1])


def test_real_headings_are_all_there(real):
    for xml, _, headings in real:
        assert len(headings) == xml.count(b"<MeshHeading>")
        assert sum(one.count("/") for one in headings) >= xml.count(b"<QualifierName")
    counted = Counter(heading for _, _, headings in real for heading in headings)
    assert counted["Humans"] > 2_500


def test_real_text_is_tidy(real):
    for _, citation, _ in real:
        texts = [citation.title, citation.journal]
        texts += [part for section in citation.sections for part in section]
        for text in texts:
            assert text == unicodedata.normalize("NFC", " ".join(text.split()))


def test_the_record_with_mark_up_and_labels(shared_data: Path):
    root = etree.parse(shared_data / "pubmed_baseline" / "pubmed-29768149.xml").getroot()
    found = pubmed.citation(root[0])
    assert [heading for heading, _ in found.sections] == [
        *("BACKGROUND", "METHODS", "RESULTS", "CONCLUSIONS"),
    ]
    assert found.sections[0][1].endswith("alternative to conventional treatment strategies.")
    assert "Randomized Controlled Trial" in found.types
    assert found.year == "2018"


def _raw(xml: str) -> str:
    return _letters(html.unescape(re.sub(r"<[^>]*>", "", xml)))


def _letters(text: str) -> str:
    return re.sub(r"[^a-z]", "", text.lower())
