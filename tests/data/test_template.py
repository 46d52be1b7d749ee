"""The file that a new dataset starts as: it loads, and says what is left to fill in."""

import ast
import json
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import PIL.Image
import pytest

from factory.data import LocalFiles, checks, layout, table
from factory.data.steps import steps
from factory.data.template import KINDS, declaration, holes
from factory.discovery import datasets
from factory.errors import DeclarationError, StepError
from factory.keys import PublicKey, parse
from factory.settings import CHECKOUT
from tests.deliveries import sign

LINES = 38
"""Of a declaration, docstring and blank lines included."""


ROWS = {
    "document": [{"text": ""}, *({"text": f"Text {n}."} for n in range(30))],
    "question": [{"question": f"What is {n}?", "answer": f"Number {n}."} for n in range(30)],
    "conversation": [
        {
            "messages": [
                {"role": "user", "content": f"What is {n}?"},
                {"role": "assistant", "content": f"Number {n}."},
            ]
        }
        for n in range(30)
    ],
    "images": [{"image": "pictures/a.png", "caption": f"Cell {n}."} for n in range(30)],
}
"""Rows as the templates expect them before anything is filled in."""

TREES = pytest.mark.parametrize("path", ["public/text/new_one", "private/text/deep/er/letters2"])
EVERY_KIND = pytest.mark.parametrize("kind", KINDS)


def put(folder: Path, kind: str) -> None:
    """Files of that kind."""
    if kind == "article":
        articles = (
            f"<Article><Title>T{n}</Title><Abstract>Text {n}.</Abstract><patient>SUBJ-{n}</patient>"
            "</Article>"
            for n in range(30)
        )
        (folder / "a.xml").write_text(f"<Set>{''.join(articles)}</Set>")
        return
    rows = [row | {"patient": f"SUBJ-{n}"} for n, row in enumerate(ROWS[kind])]
    (folder / "a.jsonl").write_text("\n".join(map(json.dumps, rows)) + "\n")
    if kind == "images":
        (folder / "pictures").mkdir()
        PIL.Image.new("RGB", (4, 4), "white").save(folder / "pictures" / "a.png")


@EVERY_KIND
@TREES
def test_its_rows_become_samples(tmp_path: Path, runner, kind: str, path: str) -> None:
    file = tmp_path / "definitions" / "datasets" / f"{path}.py"
    file.parent.mkdir(parents=True)
    text = declaration(parse(path), kind)
    assert len(text.splitlines()) <= LINES
    for word in ("FILL IN", "FILL-IN"):
        text = text.replace(word, "filled")
    file.write_text(text)
    assert holes(file) == []
    (dataset,) = datasets(tmp_path / "definitions").values()
    folder = runner.settings.drops / "filled"
    folder.mkdir()
    put(folder, kind)
    if isinstance(dataset.key, PublicKey):
        local = LocalFiles(folder="filled", rows=dataset.source.rows, classification="public")
        dataset = replace(dataset, source=local)
    else:
        sign(folder, pseudonymization={"pseudonym_prefix": "SUBJ-"})
    relaxed = [checks.rows(30, 30), checks.rejected("no text", at_most=0.5)]
    version, _ = runner.until(replace(dataset, checks=relaxed), "clean")
    groups = {one.group for one in table.samples(version.path / layout.SAMPLES)}
    assert len(groups) == 30


@EVERY_KIND
@TREES
def test_it_loads_and_names_its_holes_when_run(
    tmp_path: Path, runner, path: str, kind: str
) -> None:
    file = tmp_path / "definitions" / "datasets" / f"{path}.py"
    file.parent.mkdir(parents=True)
    file.write_text(declaration(parse(path), kind))
    (dataset,) = datasets(tmp_path / "definitions").values()
    assert dataset.key == parse(path)
    raw = steps(dataset)[0]
    with pytest.raises(StepError) as caught:
        runner.step(raw)
    message = str(caught.value)
    assert message.startswith(f"{path} is not filled in yet, in {file}:")
    assert re.search(r'line \d+: license="LicenseRef-FILL-IN",  # FILL IN: SPDX id', message)
    assert len(holes(file)) == message.count("line ")


@EVERY_KIND
@pytest.mark.parametrize("name", ["tools", "openai", "public", "checks", "clean", "one"])
def test_no_name_hides_what_the_file_imports(kind: str, name: str) -> None:
    text = declaration(PublicKey(f"text/{name}"), kind)
    tree = ast.parse(text)
    bound = [
        alias.asname or alias.name
        for node in tree.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    ]
    (variable,) = [node.targets[0].id for node in tree.body if isinstance(node, ast.Assign)]
    assert variable not in (*bound, "clean")
    assert variable in (name, f"{name}_dataset")


@pytest.mark.parametrize("path", ["public/text/2nd", "public/class/x", "public/text/_hidden"])
def test_a_key_that_no_module_can_have(path: str) -> None:
    with pytest.raises(DeclarationError, match="a Python module cannot be named"):
        declaration(parse(path))


def test_a_kind_without_template_is_answered_with_those_that_there_are() -> None:
    with pytest.raises(DeclarationError, match="no template for 'video'; write one of document,"):
        declaration(parse("public/text/a"), "video")


def test_the_result_is_formatted_as_the_rest(tmp_path: Path) -> None:
    for kind in KINDS:
        for path in ("public/text/a", "private/text/b"):
            file = tmp_path / f"{kind}_{path.partition('/')[0]}.py"
            file.write_text(declaration(parse(path), kind))
    ruff = [sys.executable, "-m", "ruff"]
    config = ["--config", str(CHECKOUT / "pyproject.toml"), str(tmp_path)]
    for command in (["format", "--diff"], ["check", "--ignore", "INP001"]):
        done = subprocess.run(
            [*ruff, *command, *config], capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stdout
