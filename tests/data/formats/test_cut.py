"""Elements cut out of the bytes are those that a parser of the whole document finds."""

import io
import string
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from lxml import etree

from factory.data.formats import cut
from factory.data.formats.fragment import Around
from factory.data.pattern import Pattern, Rows
from factory.data.reader import Notes, read
from factory.errors import BadFile

type Seen = tuple[list[tuple[str, Any]], str | None, dict[str, Any]]


def seen(folder: Path, rows: str | Rows, *, cutting: int) -> Seen:
    """Every row, its element as it stands in those around it, the error, and what was noted."""
    found: list[tuple[str, Any]] = []
    notes = Notes()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(cut, "SMALLEST", cutting)
        try:
            rows_read = read(folder, ["a.xml"], Pattern.parse(rows), notes)
            found.extend((row.id, described(row.element)) for row in rows_read)
        except BadFile as error:
            return found, str(error), {}
    return found, None, notes.facts()


def described(element: Any) -> tuple[str, Any, list[tuple[str, Any, Any]]]:
    around = [(one.tag, dict(one.attrib), one.nsmap) for one in element.iterancestors()]
    return etree.tostring(element, method="c14n", with_tail=False).decode(), element.nsmap, around


UNLIKE = "not XML: Invalid bytes in character encoding"
"""Told where the characters of a chunk are found out, which is ahead of where they are parsed."""

NEVER = 2**30
"""More bytes than any document here has: it is left to the parser."""


def same(folder: Path, document: bytes, rows: str | Rows = "*.xml//q") -> Seen:
    """What is seen of a document, however much is read at first."""
    (folder / "a.xml").write_bytes(document)
    whole = seen(folder, rows, cutting=NEVER)
    for smallest in (len(document) // 3 or 1, min(48, len(document)), len(document)):
        part = seen(folder, rows, cutting=smallest)
        if whole[1] is not None and UNLIKE in whole[1]:
            assert UNLIKE in (part[1] or "")
        else:
            assert part[1:] == whole[1:]
        if whole[1] is None:
            assert part[0] == whole[0]
        else:  # rows of the chunk that has the error are given or not
            assert part[0][: len(whole[0])] == whole[0]
    return whole


def cut_of(document: bytes, tag: str = "q") -> int:
    """How many elements are cut."""
    options = {"encoding": None, "resolve_entities": False, "remove_comments": True}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(cut, "SMALLEST", len(document) // 2)
        return sum(1 for _ in cut.Cutting(io.BufferedReader(io.BytesIO(document)), tag, options))  # type: ignore[arg-type]


TEXTS = st.text(string.ascii_letters + " \n\r\t:/'\"=üÃ¼É®中😀&;<>", max_size=12)
"""With letters whose bytes in one encoding are other letters in UTF-8."""

ENCODINGS = ["utf-8", "utf-8", "utf-16", "iso-8859-1", "windows-1252", "us-ascii", None]
NAMES = st.sampled_from(["q", "qq", "a", "q:q", "x:q", "x:a", "Q", "q.q"])
SPECIAL = st.sampled_from(
    [
        "<!-- <q> -->",
        "<!--</q>-->",
        "<![CDATA[<q></q>]]>",
        "<![CDATA[ </q> ]]>",
        "<?q </q> ?>",
        "&amp;",
        "&#65;",
        "&#x2028;",
        "&none;",
        "]]>",
        "</q>",
        "<q",
        "<q/>",
        "\x00",
        "\ufeff",
    ]
)


def escaped(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


@st.composite
def elements(draw: Any, depth: int = 2) -> str:
    name = draw(NAMES)
    attributes = ""
    if draw(st.booleans()):
        value = escaped(draw(TEXTS)).replace('"', "&quot;").replace("&gt;", ">")
        attributes = f' {draw(st.sampled_from(["a", "x:b", "xml:lang"]))} = "{value}"'
    if draw(st.integers(0, 5)) == 0:
        return f"<{name}{attributes}/>"
    below = [TEXTS_IN, elements(depth=depth - 1)] if depth else [TEXTS_IN]
    inner = escaped(draw(TEXTS)) + "".join(draw(st.lists(st.one_of(below), max_size=2)))
    space = draw(st.sampled_from(["", " ", "\n"]))
    return f"<{name}{attributes}>{inner}</{name}{space}>"


TEXTS_IN = st.one_of(TEXTS.map(escaped), SPECIAL)
RECORDS = st.builds(
    "<q{}>{}</q{}>".format,
    st.sampled_from(["", " a='>'", '\n b="/"', " x:c='1'"]),
    st.one_of(TEXTS.map(escaped), elements()),
    st.sampled_from(["", "", "", " "]),
)
BETWEEN = st.one_of(
    st.sampled_from(["", " ", "\n", "\r\n  ", "\r", "\n\n\t"]),
    st.sampled_from(["", " ", "\n", "\n  "]),
    SPECIAL,
    elements(),
)


ROOTS = (
    "<r xmlns:x='urn:u' xmlns:q='urn:v'>",
    "<r xmlns='urn:d' xmlns:x='urn:u' xmlns:q='urn:q' a='&lt;q'>",
)


@st.composite
def documents(draw: Any) -> bytes:
    """Documents of records; most are well-formed, some are damaged or cut."""
    encoding = draw(st.sampled_from(ENCODINGS))
    head = f'<?xml version="1.0" encoding="{encoding}"?>' if encoding else ""
    head += draw(st.sampled_from(["", "\n<!-- q -->", '<!DOCTYPE r SYSTEM "r.dtd">', "<!--<q>-->"]))
    root = draw(st.sampled_from(ROOTS))
    inner = draw(st.sampled_from(["", "\n<s b='ü | '>", "<title>t</title><s>"]))
    records = draw(st.lists(st.one_of(RECORDS, RECORDS, elements()), max_size=8))
    body = "".join(f"{one}{draw(BETWEEN)}" for one in records)
    text = f"{head}{root}{inner}\n{body}{'</s>' if inner else ''}</r>\n"
    written = draw(st.sampled_from([encoding, encoding, encoding, "utf-8"]))
    data = text.encode(written or "utf-8", errors="xmlcharrefreplace")
    end = draw(st.one_of(st.just(len(data)), st.integers(0, len(data))))
    return data[:end]


@given(documents())
def test_both_ways_are_the_same(tmp_path_factory: pytest.TempPathFactory, document: bytes) -> None:
    folder = tmp_path_factory.getbasetemp() / "cut"
    folder.mkdir(exist_ok=True)
    same(folder, document, Rows("*.xml//q", format="xml"))


RECORD = b"<q a='1'><t>some text</t></q>\n"


def document(records: bytes, before: bytes = b"<r>", after: bytes = b"</r>") -> bytes:
    return before + records + after


@pytest.mark.parametrize(
    ("content", "count"),
    [
        (document(RECORD * 9), 9),
        (
            document(
                RECORD * 9, b"<?xml version='1.0' encoding='iso-8859-1'?><r x:a='' xmlns:x='urn:u'>"
            ),
            9,
        ),
        (document(RECORD * 9, b"\xef\xbb\xbf<!DOCTYPE r SYSTEM 'r.dtd'><r><!-- some --><s/>"), 9),
        (document(b"<q/>" * 40 + b"<q a='>'/>" * 9), 49),
        (document(RECORD * 9 + b"<q/><!-- no --><q/>"), 10),
        (document(RECORD * 9 + b"<q><q/></q>" + RECORD), 9),
        (document(RECORD * 9 + b"<q><x:q xmlns:x='urn:u'/></q>" + RECORD), 9),
        (document(RECORD * 9 + b"<q><!--</q>--></q>" + RECORD), 9),
        (document(RECORD * 9 + b"<q><![CDATA[</q>]]></q>" + RECORD), 9),
        (document(RECORD * 9 + b"<q>q<p>&amp;&#65;</p> </q\n>" + RECORD), 11),
        (document(RECORD * 9 + b"<q xml:id='a'/>" + RECORD + b"<q xml:id='b'/>"), 9),
        (document(RECORD * 9, b"<!DOCTYPE r [<!ENTITY e 'x'>]><r>"), 0),
        (document(RECORD * 9, b"<!DOCTYPE r [<!ATTLIST q b CDATA 'x'>]><r>"), 0),
        (document(RECORD * 9, b"<?xml version='1.1'?><r>"), 0),
        (document(RECORD * 9, b"<r><!-- ", b" --><q/></r>"), 0),
        (document(RECORD * 9).decode().encode("utf-16"), 0),
    ],
)
def test_how_many_are_cut(tmp_path: Path, content: bytes, count: int) -> None:
    assert cut_of(content) == count
    found, error, _ = same(tmp_path, content)
    assert error is None
    assert len(found) >= count


@pytest.mark.parametrize("encoding", ["iso-8859-1", "windows-1252", "us-ascii", "utf-8"])
@pytest.mark.parametrize("root", ["r", "Ü"])
def test_the_encoding_is_the_one_that_the_document_says(
    tmp_path: Path, encoding: str, root: str
) -> None:
    """Also where the bytes are letters in UTF-8 as well."""
    head = f"<?xml version='1.0' encoding='{encoding}'?>\n<{root}>"
    text = "CAFÉ® Ã¼"
    body = f"<q><Ü/>{text}</q>\n"
    as_bytes = "utf-8" if encoding == "us-ascii" else encoding
    content = f"{head}{body * 20}</{root}>".encode(as_bytes)
    found, error, _ = same(tmp_path, content)
    if encoding == "us-ascii":
        assert UNLIKE in (error or "")
        return
    assert error is None
    assert {text in row[0] for _, row in found} == {True}
    assert cut_of(content) == (20 if root == "r" else 0)


@pytest.mark.parametrize(
    "damage",
    [
        b"",
        b"</r",
        b"</s>",
        b"</r>x",
        b"</r><r/>",
        b"<q>",
        b"<q a=1/></r>",
        b"<q>\xff</q></r>",
        b"<q b:a=''/></r>",
        b"<q xml:id='a'/><q xml:id='a'/></r>",
    ],
)
@pytest.mark.parametrize("between", [b"", b"\n", "\r\nü".encode()])
def test_errors_have_their_place(tmp_path: Path, damage: bytes, between: bytes) -> None:
    """Also when a hundred thousand lines were cut before."""
    record = RECORD.strip() + between
    _, error, _ = same(tmp_path, document(record * 20, after=damage))
    assert error is not None
    assert f"line {1 + 20 * between.count(10)}" in error
    if not between.startswith(b"\r"):
        lines = document((RECORD + b"\n" * 9_999) * 12, after=damage)
        _, error, _ = same(tmp_path, lines)
        assert "line 120001, column " in (error or "")


@pytest.mark.parametrize("depth", [253, 254, 255, 256])
def test_a_row_is_refused_without_a_tree_where_it_is_with_one(make_source: Any, depth: int) -> None:
    """The parser counts the document as a level only where it makes one."""
    rows = "<q><n>text</n></q>" * 9_000
    deep = f"<q>{'<d>' * depth}{'</d>' * depth}</q>"
    both: list[str] = []
    for before in ("", rows):
        source = make_source({"a.xml": f"<r>{before}{deep}</r>"})
        try:
            both.append(f"{[row.has('t') for row in source.stream('*.xml//q')][-1]}")
        except BadFile as error:
            both.append(str(error).partition(": ")[2])
    assert both[0] == both[1]


@pytest.mark.parametrize("name", ["Ü", "*", "n", "none"])
def test_what_a_row_has_is_the_same_in_a_large_document(make_source: Any, name: str) -> None:
    body = "<q><Ü>ü</Ü><n/></q>"
    head = "<?xml version='1.0' encoding='iso-8859-1'?><r>"
    both: list[list[bool]] = []
    for count in (9, 9_000):
        source = make_source({"a.xml": f"{head}{body * count}</r>".encode("iso-8859-1")})
        both.append([row.has(name) for row in source.stream("*.xml//q")][:9])
    assert both[0] == both[1] == [name != "none"] * 9


def test_a_row_that_lacks_something_is_verified_all_the_same(make_source: Any) -> None:
    rows = "".join(f"<q><n>{n}</n>{'<t>x</t>' * (n % 2)}</q>" for n in range(9_000))
    source = make_source({"a.xml": f"<r>{rows}</r>"})
    assert [row.has("t") for row in source.stream("*.xml//q")] == [False, True] * 4_500
    assert not any(row.has("q") or row.has("r") for row in source.stream("*.xml//q"))
    for wrong in ("<q><n></q>", "<q><x:n/></q>", "<q>&none;</q>"):
        source = make_source({"a.xml": f"<r>{rows}{wrong}{rows}</r>"})
        with pytest.raises(BadFile, match="line 1"):
            [row.has("t") for row in source.stream("*.xml//q")]


@pytest.mark.parametrize(
    "inner", ["words ", "<i>a</i> <b>b</b>", "a&#8211;b", "<i a='>'>x</i>", "ü\n"]
)
def test_the_beginning_is_the_same_without_a_tree(inner: str) -> None:
    around = Around([etree.fromstring("<r/>")], "utf-8", {})
    fragment = around.fragment(f"<q>{inner * 300}</q>".encode())
    assert fragment is not None
    text = " ".join("".join(str(one) for one in fragment.element.itertext()).split())
    found = fragment.beginning(200)
    assert found is None or found[:200] == text[:200]
    assert (found is None) == (inner in ("a&#8211;b", "<i a='>'>x</i>"))


def test_there_is_one_tree_at_a_time(make_source: Any) -> None:
    source = make_source({"a.xml": f"<r>{'<q><t>x</t></q>' * 9_000}</r>"})
    before = None
    for row in source.stream("*.xml//q"):
        assert row.has("t")
        assert before is None or before.fragment is None or before.fragment.tree is None
        before = row
    assert before is not None
    assert before.has("t")  # made again where one asks for it
