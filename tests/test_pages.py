"""The pages: links lead somewhere, every page is reachable, and commands that they name exist."""

import re
from pathlib import Path

import pytest
import typer.main

from factory.cli.app import app
from tests.conftest import CHECKOUT

DOCS = sorted((CHECKOUT / "docs").glob("*.md"))
PAGES = [CHECKOUT / "README.md", CHECKOUT / "CONTRIBUTING.md", *DOCS]

LINK = re.compile(r"\]\(([^)\s]+)\)")
NAMED = re.compile(r"`((?:docs/)?[a-z-]+\.md)`")
COMMAND = re.compile(r"^(?:\$ )?(?:\.venv/bin/)?factory ([a-z-]+)(?: ([a-z-]+)\b)?", re.MULTILINE)
WORDS = re.compile(r"^\| (.+?) \|", re.MULTILINE)


def slug(heading: str) -> str:
    """The anchor that a heading gets on GitHub."""
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


def anchors(page: Path) -> set[str]:
    headings = re.findall(r"^#+ (.+)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    return {slug(heading.strip()) for heading in headings}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_its_links_lead_somewhere(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    for link in LINK.findall(text):
        if link.startswith(("http://", "https://")):
            continue
        name, _, anchor = link.partition("#")
        target = (page.parent / name).resolve() if name else page
        assert target.exists(), link
        assert not anchor or anchor in anchors(target), link
    for named in NAMED.findall(text):
        places = (page.parent / named, CHECKOUT / named, CHECKOUT / "docs" / named)
        assert any(place.is_file() for place in places), named


def test_the_readme_leads_to_every_page() -> None:
    readme = (CHECKOUT / "README.md").read_text(encoding="utf-8")
    linked = {link.partition("#")[0] for link in LINK.findall(readme)}
    assert {f"docs/{page.name}" for page in DOCS} <= linked


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_its_commands_exist(page: Path) -> None:
    known = typer.main.get_command(app).commands  # type: ignore[attr-defined]
    for block in re.findall(
        r"```(?:sh|console)\n(.*?)```|`([^`\n]+)`", page.read_text(), re.DOTALL
    ):
        for command, word in COMMAND.findall("\n".join(block)):
            assert command in known, f"factory {command}"
            inner = getattr(known[command], "commands", None)
            assert inner is None or not word or word in inner, f"factory {command} {word}"


@pytest.mark.parametrize("page", ["README.md", "docs/add-a-dataset.md"])
def test_the_declaration_that_they_show_is_the_real_one(page: str) -> None:
    shown = re.findall(r"```python\n(.*?)```", (CHECKOUT / page).read_text(), re.DOTALL)
    file = CHECKOUT / "definitions" / "datasets" / "public" / "text" / "medquad.py"
    assert file.read_text() in shown


def test_the_glossary_has_each_word_once_and_in_order() -> None:
    found = WORDS.findall((CHECKOUT / "docs" / "glossary.md").read_text(encoding="utf-8"))[2:]
    assert found == sorted(set(found), key=str.lower)
