"""What the end of a driver means, by how its place ended and what it said."""

from pathlib import Path

import pytest
from dagster_pipes import PipesException

from factory.control.backend import Phase, State
from factory.control.verdict import judge
from factory.errors import RunFailed

RAISED: PipesException = {
    "message": "ValueError: no",
    "stack": [],
    "name": "ValueError",
    "cause": None,
    "context": None,
}
GONE = State(
    phase="gone",
    reason="its RayJob is gone",
    advice="`factory resume` goes on",
    evidence=("no RayJob run-1",),
)


def judged(state: State, *, closed: bool, exception: PipesException | None = None) -> None:
    judge(
        state,
        closed=closed,
        exception=exception,
        tail=["last words"],
        log=Path("driver.log"),
        classification="public",
    )


@pytest.mark.parametrize("phase", ["succeeded", "gone"])
def test_a_driver_that_closed_well_has_done_its_work(phase: Phase) -> None:
    judged(State(phase=phase), closed=True)


@pytest.mark.parametrize("phase", ["succeeded", "gone"])
def test_one_that_never_closed_or_closed_with_an_error_has_not(phase: Phase) -> None:
    for closed, exception in ((False, None), (True, RAISED)):
        with pytest.raises(RunFailed):
            judged(State(phase=phase), closed=closed, exception=exception)


def test_a_driver_that_failed_after_closing_has_not() -> None:
    with pytest.raises(RunFailed, match="although it had closed"):
        judged(State(phase="failed", exit_code=7), closed=True)


def test_what_is_known_of_an_end_is_told_in_its_order() -> None:
    with pytest.raises(RunFailed) as failed:
        judged(GONE, closed=False)
    assert str(failed.value).splitlines() == [
        "its RayJob is gone before it closed its messages.",
        "`factory resume` goes on.",
        "no RayJob run-1",
        "The last lines of driver.log:",
        "  last words",
    ]
