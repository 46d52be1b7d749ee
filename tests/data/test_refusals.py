"""Every refusal has a test that breaks something, and the table of them is complete and true."""

import ast
import json
import subprocess
import sys
from collections import Counter
from functools import cache
from pathlib import Path

import pytest

from tests.conftest import CHECKOUT
from tests.data.mutations import page
from tests.data.mutations.refusal import Refusal
from tests.data.mutations.sites import modules, reasons, sites
from tests.data.mutations.table import REFUSALS

ONLY_REASONS = ("factory/data/formats/faults.py", "factory/data/images/reasons.py")
"""Modules that hold reasons which others give."""

PASSED_ON = (
    ("factory/data/fetch/file_mirror.py", "\n…"),
    ("factory/data/fetch/objects.py", "…/… …"),
    ("factory/data/fetch/objects.py", "… …."),
    ("factory/data/fetch/objects.py", "…/…, line …: …"),
    ("factory/discovery/files.py", "…: …"),
    ("factory/discovery/files.py", "… is not a Python file."),
)
"""Places that add a name to what another one says; and one that only a defect would reach."""

IN_ANOTHER_PROCESS = (
    "tests/namespace/test_retention.py::test_an_account_that_may_not_read_everything_is_refused",
)


def test_every_refusal_of_the_code_is_in_it() -> None:
    said = {module: [one.says for one in REFUSALS if one.module == module] for module in modules()}
    missing = [
        site.shown
        for module in modules()
        for site in sites(module)
        if not any(one in site.text for one in said[module])
        and (module, site.text) not in PASSED_ON
    ]
    assert not missing, "tests/data/mutations has the table:\n" + "\n".join(missing)


@pytest.mark.parametrize("module", ONLY_REASONS)
def test_every_reason_is_in_it(module: str) -> None:
    assert reasons(module) <= {one.says for one in REFUSALS}


def test_every_test_is_there() -> None:
    assert not [one.test for one in REFUSALS if not _exists(one.test)]


def test_rows_differ() -> None:
    (_, most), *_ = Counter((one.module, one.broken) for one in REFUSALS).most_common(1)
    assert most == 1


def test_the_page_is_renewed() -> None:
    written = page.PAGE.read_text(encoding="utf-8")
    assert written == page.text(), "python -m tests.data.mutations.page writes it"


@pytest.mark.slow
def test_every_test_reaches_what_it_is_named_for(tmp_path: Path, shared_data: Path) -> None:
    """Some of them read the real inputs."""
    found = tmp_path / "reached.json"
    tests = sorted({one.test for one in REFUSALS} - set(IN_ANOTHER_PROCESS))
    command = [sys.executable, "-m", "pytest", "-p", "tests.data.mutations.reached", "-q"]
    result = subprocess.run(
        [*command, "-m", "not gpu and not cluster", *tests],
        cwd=CHECKOUT,
        env={**_environment(), "FACTORY_REACHED": str(found)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == 0, result.stdout[-3_000:]
    reached = json.loads(found.read_bytes())
    missed = [one for one in REFUSALS if one.test in tests and not _is_reached(one, reached)]
    assert not missed, "\n".join(f"{one.test}: {one.module}: {one.says!r}" for one in missed)


def _is_reached(one: Refusal, reached: dict[str, dict[str, list[tuple[str, object]]]]) -> bool:
    lines = {site.first for site in sites(one.module) if one.says in site.text}
    for test, seen in reached.items():
        if test.partition("[")[0] != one.test:
            continue
        if any(module == one.module and line in lines for module, line in seen["lines"]):
            return True
        if any(one.says in str(said) for module, said in seen["said"]):
            return True
    return False


def _environment() -> dict[str, str]:
    import os

    return {name: value for name, value in os.environ.items() if not name.startswith("PYTEST")}


def _exists(test: str) -> bool:
    file, _, name = test.partition("::")
    return name in _functions(CHECKOUT / file)


@cache
def _functions(file: Path) -> frozenset[str]:
    if not file.is_file():
        return frozenset()
    tree = ast.parse(file.read_bytes())
    return frozenset(one.name for one in tree.body if isinstance(one, ast.FunctionDef))
