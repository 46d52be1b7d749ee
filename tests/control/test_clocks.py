"""Each clock ticks in its own phases only."""

from factory.control.clocks import Clocks

LIMITS = {"queue": 100.0, "start": 10.0, "run": 1000.0, "reach": 30.0}


def run(*phases: tuple[str, float], **spent: float) -> tuple[Clocks, frozenset[str]]:
    clocks = Clocks(LIMITS, dict(spent))
    expired: frozenset[str] = frozenset()
    for phase, now in phases:
        expired = clocks.tick(phase, now)
    return clocks, expired


def test_the_queue_takes_nothing_from_start_and_run() -> None:
    clocks, expired = run(
        ("queued", 0), ("queued", 90), ("starting", 95), ("running", 103), ("succeeded", 200)
    )
    assert clocks.spent == {"queue": 95, "start": 8, "run": 97, "reach": 0}
    assert not expired


def test_a_limit_may_be_reached_and_not_passed() -> None:
    assert run(("starting", 0), ("starting", 10))[1] == frozenset()
    assert run(("starting", 0), ("starting", 10.1))[1] == {"start"}


def test_an_evicted_attempt_that_waits_again_goes_on_with_each_clock() -> None:
    clocks, expired = run(("queued", 0), ("running", 60), ("queued", 100), ("queued", 141))
    assert clocks.spent["queue"] == 101
    assert clocks.spent["run"] == 40
    assert expired == {"queue"}


def test_nothing_ticks_once_it_is_being_stopped() -> None:
    clocks, _ = run(("running", 0), ("stopping", 5), ("stopping", 500), ("gone", 900))
    assert clocks.spent["run"] == 5


def test_out_of_reach_only_its_own_clock_ticks_and_from_nothing_each_time() -> None:
    clocks, expired = run(("running", 0), ("unreachable", 5), ("unreachable", 40))
    assert clocks.spent == {"run": 5, "reach": 35}
    assert expired == {"reach"}
    assert clocks.tick("running", 41) == frozenset()
    assert clocks.tick("running", 50) == frozenset()
    assert clocks.spent["run"] == 14


def test_a_phase_that_says_nothing_goes_on_with_the_clock_before() -> None:
    clocks, _ = run(("starting", 0), ("unknown", 4), ("unknown", 8), ("running", 9))
    assert clocks.spent["start"] == 9


def test_an_adopted_run_brings_its_time_along() -> None:
    assert run(("running", 0), ("running", 2), run=999.0)[1] == {"run"}


def test_a_clock_that_is_set_back_takes_nothing_away() -> None:
    assert run(("running", 50), ("running", 20))[0].spent["run"] == 0
