"""JATS to text: by hand on small articles, and against the XML of real ones."""

import gzip
import re
import unicodedata
from pathlib import Path

import pytest
from lxml import etree

from factory.data import jats, mathml

XLINK = 'xmlns:xlink="http://www.w3.org/1999/xlink"'
MATHML = 'xmlns:mml="http://www.w3.org/1998/Math/MathML"'
META = """<journal-meta><journal-title-group><journal-title>J</journal-title>
</journal-title-group></journal-meta>"""


def parsed(xml: str) -> etree._Element:
    parser = etree.XMLParser(remove_comments=True, remove_pis=True)
    return etree.fromstring(xml, parser)


def body(content: str) -> list[tuple[str, str]]:
    article = jats.article(
        parsed(
            f"<article {XLINK} {MATHML}><front>{META}<article-meta/></front>"
            f"<body>{content}</body></article>"
        )
    )
    return list(article.sections)


def text(paragraph: str) -> str:
    ((heading, found),) = body(f"<p>{paragraph}</p>")
    assert heading == ""
    return found


def math(content: str) -> str:
    return mathml.linear(parsed(f"<mml:math {MATHML}>{content}</mml:math>"))


def test_sections_nest_and_keep_their_order():
    assert body(
        "<p>Before.</p><sec><title>A</title><p>a1</p><sec><title>B <italic>b</italic></title>"
        "<p>b1</p></sec><p>a2</p></sec><sec><title>Empty</title></sec><sec><p>untitled</p></sec>"
    ) == [
        *(("", "Before."), ("A", "a1"), ("A / B b", "b1"), ("A", "a2"), ("", "untitled")),
    ]


def test_title_abstracts_doi_and_journal():
    article = jats.article(
        parsed(
            f"""<article {XLINK} article-type="letter"><front>{META}<article-meta>
            <article-id pub-id-type="pmid">1</article-id>
            <article-id pub-id-type="doi">10.1/x</article-id>
            <title-group><article-title>On <italic>E.
              coli</italic></article-title></title-group>
            <pub-date><year>2009</year></pub-date>
            <permissions><license xlink:href="http://creativecommons.org/licenses/by/4.0/">
            <license-p>Free.</license-p></license></permissions>
            <abstract><sec><title>Aim</title><p>To see.</p></sec><sec><p>Seen.</p></sec></abstract>
            <abstract abstract-type="toc"><p>Short.</p></abstract>
            <abstract abstract-type="summary"><title>In Brief</title><p>Plain.</p></abstract>
            <abstract abstract-type="patient"><p>For you.</p></abstract>
            </article-meta></front><back><ref-list><ref><mixed-citation>Nobody 1999
            </mixed-citation></ref></ref-list><ack><p>Thanks.</p></ack></back></article>"""
        )
    )
    assert article == jats.Article(
        title="On E. coli",
        sections=(
            ("Abstract / Aim", "To see."),
            ("Abstract", "Seen."),
            ("In Brief", "Plain."),
            ("Abstract (patient)", "For you."),
        ),
        license="CC-BY-4.0",
        doi="10.1/x",
        journal="J",
        kind="letter",
        year="2009",
    )


@pytest.mark.parametrize("xml", ["<html/>", "<article/>", "<article><front/></article>"])
def test_anything_else_is_no_article(xml: str) -> None:
    with pytest.raises(ValueError, match="no JATS article"):
        jats.article(parsed(xml))


def cite(number: str, kind: str = "bibr") -> str:
    return f'<xref ref-type="{kind}" rid="r">{number}</xref>'


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (f"Known [{cite('12')}].", "Known."),
        (f"Known {cite('[12]')}.", "Known."),
        (f"Known [{cite('1')}], [{cite('2')}]\u2013[{cite('4')}], now.", "Known, now."),
        (f"Known [{cite('1')}\u2013{cite('4')}, {cite('9')}] now.", "Known now."),
        (f"Known<sup>{cite('1')},{cite('2')}</sup>.", "Known."),
        (f"Known ({cite('1')}; {cite('2')}).", "Known."),
        (f"Known (e.g., [{cite('1')}]).", "Known."),
        (f"Known (see Table 1, [{cite('1')}]).", "Known (see Table 1)."),
        (f"Known, [{cite('1')}].", "Known."),
        (f"As {cite('Smith et al. (2004)')} say.", "As Smith et al. (2004) say."),
        (f"Known (Council {cite('2003')}).", "Known (Council 2003)."),
        (f"See {cite('Figure 1', 'fig')}A.", "See Figure 1A."),
        ("An interval [0, 1] stays.", "An interval [0, 1] stays."),
    ],
)
def test_numbers_that_point_to_references_go(given: str, expected: str) -> None:
    assert text(given) == expected


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("a\n   b\t c", "a b c"),
        ("a\u00a0b\u2009c", "a b c"),
        ("co\u00adop\u200berate", "cooperate"),
        ("cafe\u0301", "café"),
        ("private \ue001\uf8ff use", "private use"),
        ("&lt;b&gt; &amp; &#945;", "<b> & \u03b1"),
        ("one<!-- comment --> two<?pi x?> three", "one two three"),
        ("a<break/>b", "a b"),
        ("H<sub>2</sub>O, m<sup>2</sup>, Ca<sup>2+</sup>", "H2O, m2, Ca2+"),
        ("6\u00b710<sup>5</sup> and 10<sup>\u22123</sup>", "6\u00b710^5 and 10^\u22123"),
        ("see <ext-link xlink:href='http://x'>the site</ext-link>", "see the site"),
        ("n<italic> = 3</italic> .", "n = 3."),
        ("a <inline-graphic xlink:href='x'/>b", "a b"),
        ("a<fn><p>a note</p></fn> b", "a b"),
    ],
)
def test_inline(given: str, expected: str) -> None:
    assert text(given) == expected


def test_blocks_inside_a_paragraph_break_it():
    assert (
        text(
            "Two:<list><list-item><p>one</p><p>more</p></list-item><list-item><label>b)</label>"
            "<p>two</p></list-item></list>done."
            "<disp-quote><p>quoted</p></disp-quote><disp-formula><label>(1)</label>"
            "<mml:math><mml:mi>x</mml:mi><mml:mo>=</mml:mo><mml:mn>1</mml:mn></mml:math>"
            "</disp-formula>end"
        )
        == "Two:\n\n- one\nmore\nb) two\n\ndone.\n\nquoted\n\nx = 1 (1)\n\nend"
    )


def test_captions_stay_and_cells_go():
    assert body(
        "<sec><title>S</title><fig><label>Figure 1</label><caption><title>Title</title>"
        "<p>Words.</p></caption><graphic xlink:href='x'/></fig><table-wrap><label>Table 1.</label>"
        "<caption><title>Doses</title></caption><table><tr><td>9</td></tr></table>"
        "<table-wrap-foot><fn><p>n</p></fn></table-wrap-foot></table-wrap>"
        "<fig><graphic xlink:href='y'/></fig>"
        "<supplementary-material><caption><p>Text S1</p></caption></supplementary-material></sec>"
    ) == [("S", "Figure 1. Title. Words.\n\nTable 1. Doses.")]


def test_a_box_with_sections_is_text():
    assert body(
        "<boxed-text><caption><title>Box 1</title></caption><sec><title>In</title><p>x</p></sec>"
        "</boxed-text>"
    ) == [("", "Box 1\n\nIn\n\nx")]


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("<inline-formula><inline-graphic xlink:href='x'/></inline-formula>", "[formula]"),
        (
            "<inline-formula><tex-math>\\documentclass{m}\\begin{document}$$x^2$$"
            "\\end{document}</tex-math></inline-formula>",
            "x^2",
        ),
        ("<inline-formula><italic>p</italic> &lt; 1</inline-formula>", "p < 1"),
        (
            "<inline-formula><alternatives><inline-graphic xlink:href='x'/><mml:math>"
            "<mml:mi>a</mml:mi></mml:math></alternatives></inline-formula>",
            "a",
        ),
    ],
)
def test_formulae(given: str, expected: str) -> None:
    assert text(f"Where {given} is.") == f"Where {expected} is."


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("<mml:msup><mml:mi>x</mml:mi><mml:mn>2</mml:mn></mml:msup>", "x^2"),
        (
            "<mml:msubsup><mml:mi>x</mml:mi><mml:mi>i</mml:mi><mml:mrow><mml:mi>n</mml:mi>"
            "<mml:mo>+</mml:mo><mml:mn>1</mml:mn></mml:mrow></mml:msubsup>",
            "x_i^(n + 1)",
        ),
        (
            "<mml:mfrac><mml:mrow><mml:mi>a</mml:mi><mml:mo>+</mml:mo><mml:mi>b</mml:mi>"
            "</mml:mrow><mml:mi>c</mml:mi></mml:mfrac>",
            "(a + b)/c",
        ),
        ("<mml:msqrt><mml:mi>x</mml:mi><mml:mi>y</mml:mi></mml:msqrt>", "sqrt(xy)"),
        ("<mml:mroot><mml:mi>x</mml:mi><mml:mn>3</mml:mn></mml:mroot>", "sqrt(x)"),
        ("<mml:mover><mml:mi>x</mml:mi><mml:mo>¯</mml:mo></mml:mover>", "bar(x)"),
        ("<mml:mfenced><mml:mi>a</mml:mi><mml:mi>b</mml:mi></mml:mfenced>", "(a, b)"),
        (
            "<mml:mfenced open='[' close=']' separators=''><mml:mi>a</mml:mi><mml:mi>b</mml:mi>"
            "</mml:mfenced>",
            "[ab]",
        ),
        (
            "<mml:mtable><mml:mtr><mml:mtd><mml:mn>1</mml:mn></mml:mtd><mml:mtd/></mml:mtr>"
            "<mml:mtr><mml:mtd><mml:mn>2</mml:mn></mml:mtd></mml:mtr></mml:mtable>",
            "1; 2",
        ),
        (
            "<mml:semantics><mml:mi>x</mml:mi><mml:annotation>TeX</mml:annotation></mml:semantics>",
            "x",
        ),
        ("<mml:mi>x</mml:mi><mml:mtext> if </mml:mtext><mml:mi>y</mml:mi>", "x if y"),
    ],
)
def test_mathml(given: str, expected: str) -> None:
    assert math(given) == expected


@pytest.fixture(scope="module")
def real(shared_data: Path) -> dict[str, tuple[etree._Element, jats.Article]]:
    files = [
        *sorted((shared_data / "plos_starter_corpus").glob("*.xml.gz")),
        *sorted((shared_data / "pmc_oa_jats").glob("*.nxml")),
    ]
    parser = etree.XMLParser(resolve_entities=False, remove_comments=True, remove_pis=True)
    found: dict[str, tuple[etree._Element, jats.Article]] = {}
    for file in files:
        data = file.read_bytes()
        root = etree.fromstring(gzip.decompress(data) if file.suffix == ".gz" else data, parser)
        found[file.name] = (root, jats.article(root))
    assert len(found) == 107
    return found


def test_real_articles_say_who_they_are(real):
    for name, (root, article) in real.items():
        assert article.doi.startswith("10."), name
        assert article.title, name
        assert article.journal, name
        assert article.sections, name
        assert article.license, name
        assert article.kind == root.get("article-type")


def test_real_licences(real):
    counts: dict[str | None, int] = {}
    for name, (_, article) in real.items():
        if name.endswith(".gz"):
            kind = "CC BY" if "CC-BY" in (article.license or "") else "free"
            counts[kind] = counts.get(kind, 0) + 1
    assert counts == {"CC BY": 96, "free": 5}


def test_every_paragraph_of_real_articles_is_there_in_order(real):
    """Letters only: each paragraph of plain text, found in the text after the one before."""
    checked = 0
    for name, (root, article) in real.items():
        whole = _letters(" ".join(text for _, text in article.sections))
        place = 0
        for paragraph in root.iterfind("body//sec/p"):
            if len(paragraph) or paragraph.getparent().getparent().tag == "boxed-text":
                continue
            wanted = _letters(paragraph.text or "")
            found = whole.find(wanted, place)
            assert found >= 0, f"{name}: {wanted[:80]}"
            place = found + len(wanted)
            checked += 1
    assert checked > 300


def test_every_heading_of_real_articles_is_there(real):
    for name, (root, article) in real.items():
        headings = {heading for heading, _ in article.sections}
        for section in root.iterfind("body/sec"):
            title = section.find("title")
            if title is None or not any(
                "".join(p.itertext()).strip() for p in section.iterfind("p")
            ):
                continue
            wanted = _letters("".join(title.itertext()))
            assert any(_letters(one) == wanted for one in headings), f"{name}: {wanted}"


def test_no_reference_list_gets_in(real):
    for name, (root, article) in real.items():
        whole = _letters(" ".join(text for _, text in article.sections))
        titles = [
            _letters("".join(t.itertext())) for t in root.iterfind("back//ref//article-title")
        ]
        long = [title for title in titles if len(title) > 60]
        hits = [title for title in long if title in whole]
        assert len(hits) <= 1, f"{name}: {hits[:2]}"  # a title may be quoted in the text


def test_real_text_is_tidy(real):
    for name, (_, article) in real.items():
        for heading, content in article.sections:
            assert heading == " ".join(heading.split()), name
            assert content == unicodedata.normalize("NFC", content), name
            assert not re.search("[\ue000-\uf8ff\u00ad\u200b\u00a0\t]|  |\n\n\n", content), name
            assert content == content.strip(), name
            assert not re.search(r"\[\s*\]|\(\s*\)", content), name


def _letters(text: str) -> str:
    return re.sub(r"[^a-z]", "", text.lower())
