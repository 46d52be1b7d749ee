"""A plugin of pytest that records which refusals each test reaches: `make test` runs with it.

For every test: the lines of refusals that ran, and the errors that went through a module of the
factory with what they said. `REFUSALS_REACHED` names the folder to which each process of pytest
writes a file, as JSON; `unreached` reads them. An event is cheap: Python reports a line that is
none of these once and then no more.
"""

import json
import os
import sys
import uuid
from collections.abc import Generator
from pathlib import Path
from types import CodeType
from typing import Any

import pytest

from tests.conftest import CHECKOUT
from tests.data.mutations.sites import modules, sites

WATCH = sys.monitoring
TOOL = 4
FACTORY = f"{CHECKOUT}/"
FOLDER = "REFUSALS_REACHED"

_lines: dict[str, dict[int, int]] = {}
"""For each module, of the lines of its refusals, where the refusal begins."""

_reached: dict[str, dict[str, Any]] = {}
_now: list[str] = []
_folders: list[Path] = []


def pytest_configure() -> None:
    """Begin to watch."""
    _folders.append(Path(os.environ[FOLDER]).absolute())
    for module in modules():
        spans = [(one.first, one.last) for one in sites(module)]
        _lines[FACTORY + module] = {
            line: first for first, last in spans for line in range(first, last + 1)
        }
    WATCH.use_tool_id(TOOL, "refusals")
    WATCH.register_callback(TOOL, WATCH.events.LINE, _line)
    WATCH.register_callback(TOOL, WATCH.events.RAISE, _raised)
    WATCH.set_events(TOOL, WATCH.events.LINE | WATCH.events.RAISE)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    """Note whose doing it is; xdist may have added a group to the name."""
    _now[:] = [item.nodeid.partition("[")[0].partition("@")[0]]
    done = yield
    _now.clear()
    return done


def pytest_unconfigure() -> None:
    """Stop, and say what was seen."""
    WATCH.set_events(TOOL, 0)
    WATCH.free_tool_id(TOOL)
    seen = {
        test: {"lines": sorted(one["lines"]), "said": sorted(one["said"])}
        for test, one in _reached.items()
    }
    for folder in _folders:
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"{uuid.uuid4().hex}.json").write_text(json.dumps(seen))


def _line(code: CodeType, line: int) -> object:
    first = _lines.get(code.co_filename, {}).get(line)
    if first is None:
        return WATCH.DISABLE
    for test in _now:
        _of(test)["lines"].add((code.co_filename.removeprefix(FACTORY), first))
    return None


def _raised(code: CodeType, _: int, error: BaseException) -> None:
    if code.co_filename not in _lines:
        return
    for test in _now:
        _of(test)["said"].add((code.co_filename.removeprefix(FACTORY), str(error)))


def _of(test: str) -> dict[str, Any]:
    return _reached.setdefault(test, {"lines": set(), "said": set()})
