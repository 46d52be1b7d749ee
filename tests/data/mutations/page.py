"""The page on checks and refusals, made of the tables of mutations.

`python -m tests.data.mutations.page` writes it again.
"""

from collections.abc import Iterable, Iterator

from factory.data.steps import steps
from tests.conftest import CHECKOUT
from tests.data.mutations.healthy import DECLARED
from tests.data.mutations.of_checks import MUTATIONS
from tests.data.mutations.refusal import Refusal
from tests.data.mutations.sites import sites
from tests.data.mutations.table import BY_CHAPTER, REFUSALS

PAGE = CHECKOUT / "docs" / "checks.md"

BEGINNING = f"""# What is checked and what is refused

Made of the tables in `tests/data/mutations`; `python -m tests.data.mutations.page` renews it.

Every check and every refusal has a *mutation*: one thing broken on purpose, which it has to catch.
There are {len(MUTATIONS)} for checks and {len(REFUSALS)} for refusals. A check or refusal without
one fails the tests.

## Checks

A version that fails one of these never becomes current. Each mutation damages a copy of a version
that passes; then the check must fail and say so (`tests/data/test_mutations.py`). `rows` and
`rejected_no_text` stand for the checks that a declaration adds.

"""

REFUSED = """
## Refusals

A *rejected* row is counted by its reason and kept beside the data. Everything else ends the step,
the load or the launch, and nothing is published. Tests are below `tests`.
"""

OUTCOMES = {
    "BadRow": "row rejected",
    "BadFile": "file refused",
    "SourceError": "source refused",
    "DeliveryRefused": "delivery refused",
    "ScanFailed": "delivery refused",
    "SettingsError": "settings refused",
    "DeclarationError": "not loaded",
    "ClassificationError": "not loaded",
    "KeyFormatError": "not loaded",
    "NamespaceError": "not written",
    "DamagedVersion": "damaged",
    "ChecksNotPassed": "not current",
    "StepError": "step fails",
    "StepInterrupted": "step goes on later",
    "RunFailed": "run ended",
    "Superseded": "run ended",
}
"""What an error means for its reader."""


def text() -> str:
    """The page."""
    parts = [BEGINNING, *_checks(), REFUSED]
    for title, refusals in BY_CHAPTER.items():
        parts += [f"\n### {title}\n\n", *_refusals(refusals)]
    return "".join(parts)


def _checks() -> Iterator[str]:
    described = {
        (step.kind, one.name): one.description for step in steps(DECLARED) for one in step.checks
    }
    yield _row("step", "check", "demands", "mutation", "it says")
    yield _row(*["---"] * 5)
    for one in MUTATIONS:
        demands = described[one.step, one.check].rstrip(".")
        yield _row(one.step, f"`{one.check}`", demands, one.broken, f"`{one.says}`")


def _refusals(refusals: Iterable[Refusal]) -> Iterator[str]:
    yield _row("mutation", "outcome", "it says", "test")
    yield _row(*["---"] * 4)
    for one in refusals:
        test = one.test.removeprefix("tests/")
        yield _row(one.broken, _outcome(one), f"`{_said(one)}`", f"`{test}`")


def _outcome(one: Refusal) -> str:
    if one.module == "factory/control/gates.py":
        return "not launched"
    if one.module == "factory/data/row.py" and one.says.startswith(("not ", "so ")):
        return "row rejected"
    found = [site.error for site in sites(one.module) if one.says in site.text]
    errors = [error for error in found if error] or _usual(one.module)
    return OUTCOMES[errors[0]]


def _usual(module: str) -> list[str]:
    """What a module raises where a function of it makes the error."""
    made = [site.error for site in sites(module) if site.error]
    return made or ["BadRow"]


def _said(one: Refusal) -> str:
    return " ".join(one.says.split()).strip(" .:,;")


def _row(*cells: str) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |\n"


if __name__ == "__main__":
    PAGE.write_text(text(), encoding="utf-8")
