"""One refusal: what is broken, what is said of it, and the test that breaks it."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Refusal:
    """A row of the table of refusals."""

    module: str
    """The module that refuses."""

    broken: str
    """In plain words: what is wrong with the input."""

    says: str
    """A part of what is said, without anything of the input."""

    test: str
    """The test that breaks it: file and function."""


def of(module: str, tests: str, *rows: tuple[str, str, str]) -> tuple[Refusal, ...]:
    """The refusals of a module.

    Args:
        module: its path below `factory`.
        tests: the file that has the tests, below `tests`.
        rows: what is broken, what is said, and the test; a test of another file names the file.
    """
    return tuple(
        Refusal(
            f"factory/{module}",
            broken,
            says,
            f"tests/{test}" if "::" in test else f"tests/{tests}::{test}",
        )
        for broken, says, test in rows
    )
