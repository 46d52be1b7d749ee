"""What the bytes of a record tell of its elements is what a parser finds."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from lxml import etree

from factory.data.formats import cut, tags
from factory.data.pattern import Pattern, Rows
from factory.data.pubmed import NOT_READ, citation
from factory.data.reader import Notes, read
from factory.errors import BadFile
from tests.data.formats.conftest import MakeSource
from tests.data.formats.test_cut import NAMES, NEVER, documents, elements

ASKED = st.lists(st.sampled_from(["a", "q", "qq", "Q", "q.q", "x", "Ü"]), min_size=1, unique=True)


def canonical(element: Any) -> str:
    return etree.tostring(element, method="c14n", exclusive=True, with_tail=False).decode()


def parsed_without(record: bytes, names: list[str]) -> str:
    element = etree.fromstring(record)
    etree.strip_elements(element, *(f"{{*}}{name}" for name in names), with_tail=False)
    return canonical(element)


@given(elements(), NAMES, ASKED)
def test_bytes_tell_what_a_parser_does(inner: str, own: str, names: list[str]) -> None:
    record = f"<{own} xmlns:x='urn:u' xmlns:q='urn:v'>{inner}</{own}>".encode()
    known = tags.named(*names)
    try:
        element = etree.fromstring(record)
    except etree.XMLSyntaxError:
        return
    if known is None or not tags.only(record):
        return
    for name in names:
        found = next(element.iterdescendants(f"{{*}}{name}"), None) is not None
        assert tags.has(record, name.encode()) in (found, None)
    left = tags.without(record, known)
    if left is not None:
        try:
            assert canonical(etree.fromstring(left)) == parsed_without(record, names)
        except etree.XMLSyntaxError:
            inside = [f"{name}" for name in names if record.count(f"<{name}".encode()) > 1]
            assert inside  # one in another of its name, or of one that begins with it


@pytest.mark.parametrize(
    ("inner", "names", "left"),
    [
        ("<a>1</a>2<b/>3<a x='/>'>4</a >5<ab/>", "a", "23<ab/>5"),
        ("<a/>1<a b='>'/>2<c>a</c>", "a", "12<c>a</c>"),
        ("<c b='a'>a &lt;a></c><a\n>1</a\t>", "a", "<c b='a'>a &lt;a></c>"),
        ("<a><b>1</b></a><b>2</b><c/>", "ab", "<c/>"),
        ("<x:a xmlns:x='urn:u'/><a/>", "a", None),
        ("<c>no name</c>", "b", "<c>no name</c>"),
    ],
)
def test_what_is_left(inner: str, names: str, left: str | None) -> None:
    found = tags.without(f"<q>{inner}</q>".encode(), [name.encode() for name in names])
    if left is None:
        assert found is None
    else:
        assert found is not None
        assert canonical(etree.fromstring(found)) == parsed_without(
            f"<q>{inner}</q>".encode(), list(names)
        )
        assert len(found) <= len(f"<q>{inner}</q>")


@pytest.mark.parametrize("more", ["<!--<a>-->", "<![CDATA[<a>]]>", "<?a <a> ?>"])
def test_where_more_than_tags_begins_so(more: str) -> None:
    assert not tags.only(f"<q>{more}</q>".encode())
    assert tags.only(b"<q>What? Yes! &lt;!</q>")


@given(documents(), ASKED)
def test_a_large_document_gives_the_same_rows(
    tmp_path_factory: pytest.TempPathFactory, document: bytes, names: list[str]
) -> None:
    folder = tmp_path_factory.getbasetemp() / "tags"
    folder.mkdir(exist_ok=True)
    (folder / "a.xml").write_bytes(document)

    def seen(smallest: int, together: int) -> tuple[list[Any], str | None]:
        found: list[Any] = []
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(cut, "SMALLEST", smallest)
            patch.setattr(cut, "TOGETHER", together)
            pattern = Pattern.parse(Rows("*.xml//q", format="xml"))
            try:
                for row in read(folder, ["a.xml"], pattern, Notes()):
                    left = canonical(row.without(*names))
                    found.append(([row.has(name) for name in names], left, canonical(row.element)))
            except BadFile as error:
                return found, str(error)
        return found, None

    whole, error = seen(NEVER, 1)
    for together in (1, 2, 256):
        part, other = seen(len(document) // 3 or 1, together)
        assert part[: len(whole)] == whole
        assert (other is None) == (error is None)
        if error is not None and other is not None and "Invalid bytes" not in error:
            assert other == error
        if error is None:
            assert part == whole


DEEP = 256


@pytest.mark.parametrize(
    "damage",
    [
        "<q><n></q>",
        "<q><x:n/></q>",
        "<q><n>&none;</n></q>",
        "<q><n a=''a=''/></q>",
        "<q><n>]]></n></q>",
        f"<q><n>{'<d>' * DEEP}{'</d>' * DEEP}</n></q>",
        "<q><n><!--</q>--></n></q><q></n>",
        "<q><![CDATA[</q><q>]]></n></q>",
    ],
)
def test_what_is_left_out_is_verified(make_source: MakeSource, damage: str) -> None:
    """The rows before are given, and the error has its place."""
    good = "<q><t>x</t><n>y</n></q>\n"
    source = make_source({"a.xml": f"<r>\n{good * 9_000}{damage}{good * 9_000}</r>"})
    left: list[str] = []
    with pytest.raises(BadFile, match="line 9002"):
        left.extend(canonical(row.without("n")) for row in source.stream("*.xml//q"))
    assert left[:9_000] == ["<q><t>x</t></q>"] * 9_000


@pytest.mark.parametrize("count", [1, 9_000])
def test_a_row_stays_whole(make_source: MakeSource, count: int) -> None:
    body = "<q><t>x</t><n>y</n>z<q2 xmlns='urn:o'><n/></q2></q>"
    source = make_source({"a.xml": f"<r>{body * count}</r>"})
    for row in source.stream("*.xml//q"):
        assert canonical(row.without("n")) == '<q><t>x</t>z<q2 xmlns="urn:o"></q2></q>'
        assert row.has("n")
        assert row.text("n") == "y"
        assert row.element.getparent() is not None
        assert canonical(row.without("t", "n", "q2", "q")) == "<q>z</q>"


def test_a_row_that_is_no_xml_is_told(make_source: MakeSource) -> None:
    source = make_source({"a.jsonl": '{"a": 1}\n'})
    (row,) = source.stream("*.jsonl")
    with pytest.raises(TypeError, match="no element"):
        row.without("a")


def test_what_is_not_read_of_pubmed_changes_no_citation(shared_data: Any) -> None:
    folder = shared_data / "pubmed_baseline"
    pattern = Pattern.parse("*.xml.gz//PubmedArticle")
    names = [path.name for path in folder.glob("*.xml.gz")]
    for number, row in enumerate(read(folder, names, pattern, Notes())):
        assert citation(row.without(*NOT_READ)) == citation(row.element)
        if number > 2_000:
            break
