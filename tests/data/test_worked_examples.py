"""The worked examples of the pages, run as they stand there."""

import os
import re
import subprocess
from pathlib import Path

import pytest

from factory.data.dataset import Dataset
from factory.data.steps import steps
from factory.discovery import datasets
from factory.errors import FactoryError
from tests.conftest import CHECKOUT


def page(name: str) -> str:
    return (CHECKOUT / "docs" / name).read_text(encoding="utf-8")


def blocks(name: str, section: str, language: str) -> list[str]:
    """The blocks of code in a section of a page."""
    _, found = re.split(rf"^#+ {section}\n", page(name), flags=re.MULTILINE)
    (inside, *_) = re.split(r"^## ", found, maxsplit=1, flags=re.MULTILINE)
    return re.findall(rf"```{language}\n(.*?)```", inside, re.DOTALL)


def shell(script: str, drops: Path) -> None:
    environment = os.environ | {"FACTORY_DROPS": str(drops)}
    subprocess.run(["/bin/bash", "-euc", script], env=environment, check=True)


def declared(text: str, path: str, folder: Path) -> Dataset:
    file = folder / "definitions" / "datasets" / f"{path}.py"
    file.parent.mkdir(parents=True)
    file.write_text(text, encoding="utf-8")
    return datasets(folder / "definitions")[path]


def test_files_of_your_own(runner, tmp_path):
    (delivered,) = blocks("add-a-dataset.md", "Files of your own", "sh")
    (text,) = blocks("add-a-dataset.md", "Files of your own", "python")
    shell(delivered, runner.settings.drops)
    dataset = declared(text, "public/text/glossary", tmp_path)
    version, records = runner.until(dataset, "split")
    assert all(record.passed for record in records.values())
    assert sum(version.manifest.facts["rows"].values()) == 40


def test_a_delivery_from_end_to_end(runner, tmp_path):
    delivered, commands, again = blocks("private-data.md", "A delivery, from end to end", "sh")
    (text,) = blocks("private-data.md", "A delivery, from end to end", "python")
    shell(delivered, runner.settings.drops)
    dataset = declared(text, "private/text/visits", tmp_path)
    version, records = runner.until(dataset, "split")
    assert all(record.passed for record in records.values())
    assert sum(version.manifest.facts["groups"].values()) == 40
    assert commands.count(dataset.key.path) == 2

    raw = runner.namespace.current(dataset.key / "raw")
    shell(again, runner.settings.drops)
    with pytest.raises(FactoryError) as refused:
        runner.checked(steps(dataset)[0])
    (quoted,) = re.findall(r"^> (.+)$", page("private-data.md"), re.MULTILINE)
    assert quoted in str(refused.value)
    assert "555-0132" not in str(refused.value)
    assert runner.namespace.current(dataset.key / "raw") == raw
