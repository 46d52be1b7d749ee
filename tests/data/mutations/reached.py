"""A plugin of pytest that records which refusals each test reaches.

For every test: the lines of refusals that ran, and the errors that went through a module of the
factory with what they said. `FACTORY_REACHED` names the file it writes, as JSON.
"""

import json
import os
import sys
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

_lines: dict[str, dict[int, int]] = {}
"""For each module, of the lines of its refusals, where the refusal begins."""

_reached: dict[str, dict[str, Any]] = {}
_now: list[str] = []


def pytest_configure() -> None:
    """Begin to watch."""
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
    """Note whose doing it is."""
    _now[:] = [item.nodeid]
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
    Path(os.environ["FACTORY_REACHED"]).write_text(json.dumps(seen))


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
