"""XML beyond what `test_reader` has: encodings, entities of outside, pages, and memory."""

import gzip
import resource
from pathlib import Path
from typing import Any

import pytest

from factory.data.pattern import Pattern, Rows
from factory.data.reader import Notes, read
from factory.errors import BadFile


@pytest.mark.parametrize("name", ["utf-8", "utf-16", "iso-8859-1", "cp1252"])
def test_a_document_says_its_encoding(make_source: Any, name: str) -> None:
    text = f'<?xml version="1.0" encoding="{name}"?><r><q>größer</q></r>'
    source = make_source({"a.xml": text.encode(name)})
    assert [row.text("q") for row in source.stream("*.xml")] == ["größer"]
    assert [row.element.text for row in source.stream("*.xml//q")] == ["größer"]
    assert source.notes.facts()["encodings"] == {name: 2}


def test_bytes_that_do_not_fit_are_refused_with_their_place(make_source: Any) -> None:
    source = make_source({"a.xml": b"<r>\n<q>gr\xf6\xdfer</q></r>"})
    with pytest.raises(BadFile, match=r"a\.xml, line 2, column \d+: not XML"):
        source.rows("*.xml")
    (row,) = source.stream(Rows("*.xml", encoding="cp1252"))
    assert row.text("q") == "größer"


def test_a_nul_or_a_cut_document_ends_the_step(make_source: Any) -> None:
    for content in ("<r><q>a\0b</q></r>", "<r><q>a</q>", "<r/><r/>", "<r>&#0;</r>", "text"):
        source = make_source({"a.xml": content})
        for pattern in ("*.xml", "*.xml//q"):
            with pytest.raises(BadFile, match=r"a\.xml, line 1, column \d+: not XML"):
                source.rows(pattern)


def test_a_document_type_elsewhere_is_not_fetched(make_source: Any) -> None:
    text = '<!DOCTYPE r SYSTEM "http://127.0.0.1:9/r.dtd"><r><q>a&amp;b</q></r>'
    assert [row.text("q") for row in make_source({"a.xml": text}).stream("*.xml")] == ["a&b"]
    entity = '<!DOCTYPE r SYSTEM "http://127.0.0.1:9/r.dtd"><r><q>a&alpha;b</q></r>'
    with pytest.raises(BadFile, match="uses the entity &alpha;"):
        make_source({"a.xml": entity}).rows("*.xml//q")


@pytest.mark.parametrize(
    "declared",
    [
        '<!ENTITY % a SYSTEM "secret.txt">%a;',
        '<!ENTITY a SYSTEM "secret.txt">',
        '<!ENTITY a PUBLIC "x" "secret.txt">',
    ],
)
def test_outside_entities_in_any_form(make_source: Any, declared: str) -> None:
    text = f"<!DOCTYPE r [{declared}]><r><q>x &a; y</q></r>"
    source = make_source({"a.xml": text, "secret.txt": "SECRET"})
    for pattern in ("*.xml", "*.xml//q"):
        with pytest.raises(BadFile) as caught:
            source.rows(pattern)
        assert "SECRET" not in str(caught.value)


@pytest.mark.parametrize("pattern", ["*.xml", "*.xml//q"])
@pytest.mark.parametrize(
    "content",
    [
        "<!DOCTYPE r [<!ENTITY e 'x'>]>\n<r><q a='1 &e; 2'>b</q></r>",
        "<!DOCTYPE r [<!ENTITY e 'x'>]>\n<r a='&e;'><q>b</q></r>",
        "<!DOCTYPE r [<!ENTITY e 'x'>]>\n<r><q><i/><p>b</p><p a='&e;'/></q></r>",
        "<!DOCTYPE r SYSTEM 'r.dtd'>\n<r><q a='&e;'>b</q></r>",
        "<?x y?>\n<r><q a='&e;'>b</q></r>",
        "<?x y?>\n<r><q>b &e; c</q><q/></r>",
    ],
)
def test_entities_are_refused_in_attributes_too(
    make_source: Any, content: str, pattern: str
) -> None:
    source = make_source({"a.xml": content})
    with pytest.raises(BadFile, match=r"a\.xml, line 2.*(uses the entity &e;|Entity 'e' not)"):
        source.rows(pattern)


def test_entities_that_nobody_uses_are_well(make_source: Any) -> None:
    text = "<!DOCTYPE r [<!ENTITY e 'x'>]><r><q a='&amp;e; &#38;e;'>&amp;e;</q></r>"
    assert [row.text("q") for row in make_source({"a.xml": text}).stream("*.xml")] == ["&e;"]
    for row in make_source({"a.xml": text}).stream("*.xml//q"):
        assert row.element.get("a") == "&e; &e;"


@pytest.mark.parametrize("pattern", ["*.xml", "*.xml//q"])
def test_a_long_text_is_read_and_a_huge_one_refused(make_source: Any, pattern: str) -> None:
    text = "words " * 240_000
    assert len(text) > 1_400_000
    for row in make_source({"a.xml": f"<r><q>{text}</q></r>"}).stream(pattern):
        assert "".join(map(str, row.element.itertext())) == text
    source = make_source({"a.xml": f"<r>\n<q>{text * 8}</q></r>"})
    with pytest.raises(BadFile, match=r"a\.xml, line 2, .*: asks for more than is read"):
        source.rows(pattern)


def test_pages_are_refused_unless_they_are_declared_to_be_xml(make_source: Any) -> None:
    page = '<?xml version="1.0"?>\n<!DOCTYPE html><html><p>text</p></html>'
    source = make_source({"a.xml": page})
    with pytest.raises(BadFile, match="but an HTML page"):
        source.rows("*.xml")
    found = source.stream(Rows("*.xml//p", format="xml"))
    assert [row.element.text for row in found] == ["text"]


def test_memory_does_not_grow_with_the_file(tmp_path: Path) -> None:
    record = b"<q><t>" + b"some words " * 500 + b"</t></q>"
    with gzip.open(tmp_path / "a.xml.gz", "wb", 1) as file:
        file.write(b"<r>")
        for _ in range(20):
            file.write(record * 1_000)
        file.write(b"</r>")
    pattern = Pattern.parse(Rows("*.gz//q", max_ratio=1e4, format="xml"))
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    count = sum(1 for _ in read(tmp_path, ["a.xml.gz"], pattern, Notes()))
    grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
    assert count == 20_000
    assert grown < 40, f"{grown:.0f} MiB for 110 MiB of XML"


@pytest.mark.parametrize("encoding", ["utf_8", "U8", "latin1", "iso-8859-1", "cp1252"])
def test_a_declared_encoding_may_have_any_name_of_pythons(make_source: Any, encoding: str) -> None:
    source = make_source({"a.xml": "<r><q><t>é</t></q></r>".encode(encoding)})
    assert [row.text("t") for row in source.stream(Rows("*.xml//q", encoding=encoding))] == ["é"]
