"""The file that a new dataset starts as: it loads, and says what is left to fill in."""

import re
from pathlib import Path

import pytest

from factory.data.steps import steps
from factory.data.template import declaration, holes
from factory.discovery import datasets
from factory.errors import DeclarationError, StepError
from factory.keys import parse


@pytest.mark.parametrize("path", ["public/text/new_one", "private/text/deep/er/letters2"])
def test_it_loads_and_names_its_holes_when_run(tmp_path: Path, runner, path: str) -> None:
    file = tmp_path / "definitions" / "datasets" / f"{path}.py"
    file.parent.mkdir(parents=True)
    file.write_text(declaration(parse(path)))
    (dataset,) = datasets(tmp_path / "definitions").values()
    assert dataset.key == parse(path)
    raw = steps(dataset)[0]
    with pytest.raises(StepError) as caught:
        runner.step(raw)
    message = str(caught.value)
    assert message.startswith(f"{path} is not filled in yet, in {file}:")
    assert re.search(r'line \d+: license="LicenseRef-FILL-IN",  # FILL IN: SPDX id', message)
    assert len(holes(file)) == message.count("line ")
    filled = file.read_text()
    for word in ("FILL IN", "FILL-IN"):
        filled = filled.replace(word, "done")
    file.write_text(filled)
    assert holes(file) == []


@pytest.mark.parametrize("path", ["public/text/2nd", "public/class/x", "public/text/_hidden"])
def test_a_key_that_no_module_can_have(path: str) -> None:
    with pytest.raises(DeclarationError, match="a Python module cannot be named"):
        declaration(parse(path))


def test_the_result_is_formatted_as_the_rest(tmp_path: Path) -> None:
    import subprocess
    import sys

    from factory.settings import CHECKOUT

    for path in ("public/text/a", "private/text/b"):
        text = declaration(parse(path))
        command = [sys.executable, "-m", "ruff", "format", "--diff", "-"]
        done = subprocess.run(
            command, input=text, capture_output=True, text=True, cwd=CHECKOUT, check=False
        )
        assert done.returncode == 0, done.stdout
