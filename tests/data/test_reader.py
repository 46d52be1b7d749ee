"""Row patterns, and files that cannot be parsed: named, with their position."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from factory.data.pattern import Pattern
from factory.data.reader import Notes, read
from factory.data.row import Row
from factory.errors import BadFile


def rows(root: Path, pattern: str) -> list[Row]:
    parsed = Pattern.parse(pattern)
    names = [file.relative_to(root).as_posix() for file in root.rglob("*") if file.is_file()]
    return list(read(root, parsed.matching(names), parsed, Notes()))


def put(root: Path, name: str, content: str | bytes) -> None:
    path = root / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content.encode() if isinstance(content, str) else content)


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        ("*.xml", ["a.xml"]),
        ("**/*.xml", ["a.xml", "d/b.xml", "d/e/c.xml"]),
        ("d/*.xml", ["d/b.xml"]),
        ("d/**/*.xml", ["d/b.xml", "d/e/c.xml"]),
        ("**/?.xml", ["a.xml", "d/b.xml", "d/e/c.xml"]),
        ("**", ["a.xml", "d/b.xml", "d/e/c.xml", "x.txt"]),
        ("*.XML", []),
        ("[a].xml", []),
    ],
)
def test_patterns_name_files(pattern: str, expected: list[str]) -> None:
    names = ["d/e/c.xml", "a.xml", "x.txt", "d/b.xml"]
    assert Pattern.parse(pattern).matching(names) == expected


def test_a_row_is_a_whole_xml_file(tmp_path: Path) -> None:
    put(tmp_path, "d/a.xml", "<!-- c --><a><b>one<!-- two --> three</b><?pi x?></a>")
    (row,) = rows(tmp_path, "**/*.xml")
    assert row.id == "d/a.xml"
    assert row.element.tag == "a"
    assert row.text("b") == "one three"
    with pytest.raises(LookupError, match=r"^no element 'missing'; there are b$"):
        row.text("missing")
    with pytest.raises(TypeError, match="not JSON"):
        _ = row.record


def test_a_row_is_an_element(tmp_path: Path) -> None:
    put(tmp_path, "a.xml", "<r><h>head</h><q><t>1</t></q><q/><q><t>3<i>x</i></t></q></r>")
    parsed = Pattern.parse("*.xml//q")
    seen = [
        (row.id, row.text("t") if len(row.element) else None, row.element.getparent().findtext("h"))
        for row in read(tmp_path, ["a.xml"], parsed, Notes())
    ]
    assert seen == [("a.xml#1", "1", "head"), ("a.xml#2", None, None), ("a.xml#3", "3x", None)]


def test_nested_elements_are_rows_of_their_own(tmp_path: Path) -> None:
    put(tmp_path, "a.xml", "<r><q><t>outer</t><q><t>inner</t></q></q></r>")
    seen = {
        row.id: row.element.findtext("t")
        for row in read(tmp_path, ["a.xml"], Pattern.parse("*.xml//q"), Notes())
    }
    assert seen == {"a.xml#1": "outer", "a.xml#2": "inner"}


def test_namespaces_do_not_hide_elements(tmp_path: Path) -> None:
    put(tmp_path, "a.xml", '<r xmlns="urn:x"><q><t>text</t></q></r>')
    assert [
        row.text("t") for row in read(tmp_path, ["a.xml"], Pattern.parse("*.xml//q"), Notes())
    ] == ["text"]


def test_a_row_is_a_line(tmp_path: Path) -> None:
    put(tmp_path, "a.jsonl", b'\xef\xbb\xbf{"a": "x"}\r\n\n{"a": null}\n{"a": 3}')
    found = rows(tmp_path, "*.jsonl")
    assert [row.id for row in found] == ["a.jsonl#1", "a.jsonl#3", "a.jsonl#4"]
    assert [row.text("a") for row in found[:2]] == ["x", ""]
    with pytest.raises(TypeError, match="'a' is int, not text"):
        found[2].text("a")


def test_a_row_is_an_item_or_the_whole_object(tmp_path: Path) -> None:
    put(tmp_path, "list.json", '[{"a": "1"}, {"a": "2"}]')
    put(tmp_path, "one.json", '{"a": "3"}')
    assert [(row.id, row.text("a")) for row in rows(tmp_path, "*.json")] == [
        ("list.json#1", "1"),
        ("list.json#2", "2"),
        ("one.json", "3"),
    ]


def test_any_other_file_is_a_row_of_bytes(tmp_path: Path) -> None:
    put(tmp_path, "a.bin", b"\xff\x00")
    (row,) = rows(tmp_path, "*.bin")
    assert row.content == b"\xff\x00"


@pytest.mark.parametrize(
    ("name", "content", "pattern", "message"),
    [
        ("a.xml", "<a>\n<b></a>", "*.xml", r"a\.xml, line 2, column 8: not XML: Opening"),
        ("a.xml", "", "*.xml", r"a\.xml, line 1, column 1: not XML"),
        ("a.xml", "<r><q>1</q>\n<q>2", "*.xml//q", r"a\.xml, line 2, column \d+: not XML"),
        ("a.xml", "<r>&nbsp;</r>", "*.xml", r"a\.xml, line 1.*Entity 'nbsp' not defined"),
        ("a.jsonl", '{"a": 1}\n{"a": \n', "*.jsonl", r"a\.jsonl, line 2, column \d+: not JSON"),
        ("a.jsonl", '{"a": 1}\n[1]\n', "*.jsonl", r"a\.jsonl, row 2: not a JSON object but list"),
        ("a.jsonl", b'{"a": "\xff"}\n', "*.jsonl", r"a\.jsonl, byte 7: not UTF-8"),
        ("a.jsonl", '{"a": NaN}\n', "*.jsonl", r"a\.jsonl, line 1: not JSON: NaN is no JSON"),
        ("a.json", '[\n{"a": 1},\n{]', "*.json", r"a\.json, line 3, column 2: not JSON"),
        ("a.json", "[" * 100_000, "*.json", r"a\.json, line 1, column 2: not JSON: nested"),
        ("a.json", "[1]", "*.json", r"a\.json, row 1: not a JSON object but int"),
    ],
)
def test_a_bad_file_is_named_with_its_position(
    tmp_path: Path, name: str, content: str | bytes, pattern: str, message: str
) -> None:
    put(tmp_path, name, content)
    with pytest.raises(BadFile, match=message):
        rows(tmp_path, pattern)


BOMB = """<?xml version="1.0"?>
<!DOCTYPE r [<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;&a;&a;&a;&a;&a;">
<!ENTITY c "&b;&b;&b;&b;&b;&b;&b;&b;"><!ENTITY d "&c;&c;&c;&c;&c;&c;&c;&c;">
<!ENTITY e "&d;&d;&d;&d;&d;&d;&d;&d;"><!ENTITY f "&e;&e;&e;&e;&e;&e;&e;&e;">]>
<r><q>&f;</q></r>"""


@pytest.mark.parametrize("pattern", ["*.xml", "*.xml//q"])
def test_an_entity_bomb_is_refused(tmp_path: Path, pattern: str) -> None:
    put(tmp_path, "a.xml", BOMB)
    with pytest.raises(BadFile, match=r"line 5.*entities that grow far beyond the file"):
        rows(tmp_path, pattern)


@pytest.mark.parametrize("pattern", ["*.xml", "*.xml//q"])
def test_no_other_file_is_read_by_an_entity(tmp_path: Path, pattern: str) -> None:
    put(tmp_path, "secret.txt", "SECRET")
    address = (tmp_path / "secret.txt").as_uri()
    put(tmp_path, "a.xml", f'<!DOCTYPE r [<!ENTITY s SYSTEM "{address}">]><r><q>x &s; y</q></r>')
    with pytest.raises(BadFile, match="uses the entity &s;"):
        rows(tmp_path, pattern)


def test_character_references_are_fine(tmp_path: Path) -> None:
    put(tmp_path, "a.xml", "<r><q>a &#945; &lt; b &amp; c</q></r>")
    (row,) = rows(tmp_path, "*.xml")
    assert row.text("q") == "a \u03b1 < b & c"


@given(st.lists(st.text(alphabet="ab/*?.", min_size=1, max_size=6), max_size=6))
def test_a_pattern_without_stars_names_only_itself(names: list[str]) -> None:
    for name in names:
        if any(letter in name for letter in "*?") or "//" in name or name.startswith("/"):
            continue
        if ".." in name.split("/"):
            continue
        assert set(Pattern.parse(name).matching(names)) == {name}


@pytest.mark.parametrize(
    ("pattern", "full", "empty"),
    [
        ("*.xml//q", "<r><q/></r>", "<r><other/></r>"),
        ("*.jsonl", "{}\n", "\n"),
        ("*.json", "[{}]", "[]"),
        ("*.csv", "a,b\n1,2\n", "a,b\n"),
    ],
)
def test_files_that_give_no_row_are_counted(
    tmp_path: Path, pattern: str, full: str, empty: str
) -> None:
    suffix = Path(pattern.partition("//")[0]).suffix
    put(tmp_path, f"a{suffix}", full)
    put(tmp_path, f"b{suffix}", empty)
    parsed, notes = Pattern.parse(pattern), Notes()
    assert len(list(read(tmp_path, [f"a{suffix}", f"b{suffix}"], parsed, notes))) == 1
    other = Notes.from_facts(notes.facts())
    other.merge(notes)
    facts = other.facts()
    assert (facts["without_rows"], facts["files_without_rows"]) == (2, [f"b{suffix}"] * 2)
    whole = Notes()
    assert list(read(tmp_path, [f"a{suffix}"], parsed, whole))
    assert "without_rows" not in whole.facts()
