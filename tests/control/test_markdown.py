"""Markdown: what a row wrote is shown and never takes hold."""

import pytest

from factory.control import markdown


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("a | b", r"a \| b"),
        ("<script>", r"\<script\>"),
        ("![x](http://y)", r"\!\[x\](http://y)"),
        ("**bold** _it_ `code`", r"\*\*bold\*\* \_it\_ \`code\`"),
        ("# title", r"\# title"),
        ("- item", r"\- item"),
        ("1. item\n2) item", "1\\. item\n2\\) item"),
        ("1.5 mg -2", "1.5 mg -2"),
        ("&lt;", r"\&lt;"),
        ("\\", "\\\\"),
        ("", ""),
    ],
)
def test_marks_are_shown(text: str, shown: str) -> None:
    assert markdown.escaped(text) == shown


def test_a_cell_is_one_line() -> None:
    assert markdown.cell("a\n\n b\t|c", 100) == r"a b \|c"
    assert markdown.cell("abcdef", 3) == "abc…"


def test_a_quote_keeps_lines_and_is_no_code_block() -> None:
    assert markdown.quote("a\n\n    b\n", 100) == "> a  \n> b  "
    assert markdown.quote(" \n ", 100) == "> "


@pytest.mark.parametrize(
    ("text", "shown"),
    [("f(x)", "`f(x)`"), ("a`b", "`` a`b ``"), ("```", "```` ``` ````"), ("", "")],
)
def test_code_ends_where_it_should(text: str, shown: str) -> None:
    assert markdown.code(text, 100) == shown


def test_a_table_without_rows_has_a_head() -> None:
    assert markdown.table(("a", "b"), [], numbers=True) == "| a | b |\n| --- | ---: |"
