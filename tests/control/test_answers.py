"""What follows when a place or a head is lost, by what the run is for."""

import pytest

from factory.control.answers import Ended, answer

EVICTED = Ended(1, "evicted", "it was evicted in favour of big")
LOST = Ended(2, "lost", "its head was lost")


@pytest.mark.parametrize("last", [EVICTED, LOST])
@pytest.mark.parametrize(
    ("purpose", "action"), [("probe", "skip"), ("smoke", "retry"), ("training", "resume")]
)
def test_each_purpose_has_its_answer(purpose, action: str, last: Ended) -> None:
    given = answer(purpose, [last])
    assert given.action == action
    assert given.words.startswith(f"Attempt {last.attempt}: {last.reason}.")


def test_a_smoke_test_is_tried_twice_and_tells_both_reasons() -> None:
    given = answer("smoke", [EVICTED, LOST])
    assert given.action == "end"
    assert EVICTED.reason in given.words
    assert LOST.reason in given.words


def test_a_training_goes_back_as_often_as_it_takes() -> None:
    attempts = [Ended(number, "evicted", "again") for number in range(1, 9)]
    given = answer("training", attempts)
    assert (given.action, "Attempt 9 waits" in given.words) == ("resume", True)


@pytest.mark.parametrize("purpose", ["probe", "smoke", "training"])
@pytest.mark.parametrize("verdict", ["failed", "cancelled", "succeeded", "gone"])
def test_nothing_else_is_repeated(purpose, verdict) -> None:
    given = answer(purpose, [EVICTED, Ended(2, verdict, "so it was")])
    assert (given.action, given.words) == ("end", "Attempt 2: so it was.")


def test_no_attempt_needs_no_answer() -> None:
    assert answer("training", []).action == "end"
