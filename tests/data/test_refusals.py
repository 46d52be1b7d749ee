"""Every refusal has a test that breaks something, and the table of them is complete and true."""

import ast
import json
from collections import Counter
from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest

from tests.conftest import CHECKOUT
from tests.data.mutations import page
from tests.data.mutations.sites import modules, reasons, sites
from tests.data.mutations.table import REFUSALS
from tests.data.mutations.unreached import unreached

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


def test_a_test_that_does_not_get_there_is_told(tmp_path: Path) -> None:
    one, other = REFUSALS[0], REFUSALS[1]
    line = next(site.first for site in sites(one.module) if one.says in site.text)
    seen = {one.test: {"lines": [(one.module, line)], "said": []}}
    (tmp_path / "of-one-process.json").write_text(json.dumps(seen))
    told = f"{other.test}: {other.module}: {other.says!r}"
    assert unreached(tmp_path, [one, replace(other, test="elsewhere")]) == [
        told.replace(other.test, "elsewhere")
    ]


def _exists(test: str) -> bool:
    file, _, name = test.partition("::")
    return name in _functions(CHECKOUT / file)


@cache
def _functions(file: Path) -> frozenset[str]:
    if not file.is_file():
        return frozenset()
    tree = ast.parse(file.read_bytes())
    return frozenset(one.name for one in tree.body if isinstance(one, ast.FunctionDef))
