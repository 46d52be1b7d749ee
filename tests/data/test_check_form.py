"""The form of a check: it changes with what the check demands, and with nothing else."""

import functools
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from factory.data import Check, CheckResult, checks
from factory.data.check_form import form
from factory.data.dataset import Dataset
from factory.data.free_checks import run_checks
from factory.data.steps import Step, steps
from tests.data.conftest import Runner

SOURCE = """
import re
LOW = 1
PATTERN = re.compile("a+")
LIMITS = {"a": 1}
calls = 0

def helper(n):
    return n > LOW

def check(directory, at_least=2):
    "What it is."
    global calls
    calls += 1
    text = PATTERN.sub("", "aab") + str(LIMITS)
    return [helper(n) for n in (1, 2, 3)], text, at_least
"""


def loaded(source: str) -> Check:
    module: dict[str, object] = {"__name__": "declared.somewhere"}
    exec(source, module)  # noqa: S102
    return Check("check", module["check"])  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("LOW = 1", "LOW = 2"),
        ('"a+"', '"b+"'),
        ('"a": 1', '"a": 2'),
        ("n > LOW", "n >= LOW"),
        ("at_least=2", "at_least=3"),
        ("(1, 2, 3)", "(1, 2, 4)"),
        ("[helper(n)", "[not helper(n)"),
        ("at_least\n", "directory\n"),
    ],
)
def test_it_changes_with(old: str, new: str) -> None:
    assert SOURCE.count(old) == 1
    assert form(loaded(SOURCE)) != form(loaded(SOURCE.replace(old, new)))


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('"What it is."', '"Said in other words."'),
        ("import re\n", "import re\n\n\n# a comment\n"),
        ("calls = 0", "calls = 7"),
        ("def helper", "def other():\n    return 5\n\ndef helper"),
    ],
)
def test_it_does_not_change_with(old: str, new: str) -> None:
    assert form(loaded(SOURCE)) == form(loaded(SOURCE.replace(old, new)))


def test_bounds_name_and_blocking_count() -> None:
    assert form(checks.rows(1, 5)) == form(checks.rows(1, 5))
    several = [
        checks.rows(1, 5),
        checks.rows(1, 6),
        checks.rows(1, 5, blocking=False),
        checks.rejected("no text", at_most=0.5),
        checks.rejected("no text", at_most=0.6),
    ]
    assert len({form(one) for one in several}) == len(several)


@dataclass(frozen=True)
class Bounds:
    low: int

    def __call__(self, _: Path) -> CheckResult:
        return CheckResult(self.low > 0, "")


class Plain:
    def __init__(self, low: list[int]) -> None:
        self.low = low

    def __call__(self, _: Path) -> CheckResult:
        return CheckResult(bool(self.low), "")

    def other(self, _: Path) -> CheckResult:
        return CheckResult(not self.low, "")


def bounded(low: int, _: Path) -> CheckResult:
    return CheckResult(low > 0, "")


def closed(low: int):
    return lambda _: CheckResult(low > 0, "")


@pytest.mark.parametrize(
    "make",
    [
        Bounds,
        lambda low: Plain([low]),
        lambda low: Plain([low]).other,
        lambda low: functools.partial(bounded, low),
        closed,
    ],
    ids=["dataclass", "object", "method", "partial", "closure"],
)
def test_whatever_holds_the_bounds(make) -> None:
    assert form(Check("c", make(1))) == form(Check("c", make(1)))
    assert form(Check("c", make(1))) != form(Check("c", make(2)))


def test_values_of_sets_and_recursion() -> None:
    words = frozenset({f"w{n}" for n in range(50)})
    assert form(Check("c", functools.partial(bounded, words))) == form(  # type: ignore[arg-type]
        Check("c", functools.partial(bounded, frozenset(sorted(words, reverse=True))))  # type: ignore[arg-type]
    )

    def endless(directory: Path) -> CheckResult:
        return endless(directory)

    assert form(Check("c", endless)) == form(Check("c", endless))


def test_it_is_the_same_in_every_process() -> None:
    code = (
        "from factory.data.check_form import form\n"
        "from factory.data.steps import steps\n"
        "from factory.discovery import datasets\n"
        "print([form(c) for d in datasets().values() for s in steps(d) for c in s.checks])"
    )
    said = {
        subprocess.run(
            [sys.executable, "-c", code],
            env={"PYTHONHASHSEED": seed, "PATH": ""},
            check=True,
            capture_output=True,
        ).stdout
        for seed in ("1", "2")
    }
    assert len(said) == 1


def first(dataset: Dataset) -> Step:
    return steps(dataset)[0]


def test_results_are_kept_with_it(letters: Dataset, runner: Runner) -> None:
    step = first(letters)
    _, records = runner.checked(step)
    (check,) = step.checks
    assert records[check.name].form == form(check)
    version = runner.namespace.current(step.key)
    assert version is not None
    assert runner.namespace.checks(version)[check.name].form == form(check)
    assert run_checks(step, version, runner.namespace)[check.name].form == form(check)
