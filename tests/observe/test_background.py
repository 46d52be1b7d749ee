"""Things are done in order, a failure is told at the next chance, and nothing is done after it."""

import threading

import pytest

from factory.observe.background import Background


def test_everything_is_done_in_order_on_a_thread_of_its_own() -> None:
    done: list[object] = []
    background = Background[int](
        "test",
        lambda one: done.append((one, threading.current_thread().name)),
        first=lambda: done.append("first"),
    )
    for number in range(1_000):
        background.put(number)
    background.close()
    assert done == ["first", *((number, "test") for number in range(1_000))]


def test_nothing_waits_for_what_is_being_done() -> None:
    go = threading.Event()
    background = Background[int]("test", lambda _: _wait(go))
    background.put(1)
    background.put(2)
    go.set()
    background.close()


def test_a_failure_is_told_and_ends_it() -> None:
    done: list[int] = []

    def do(one: int) -> None:
        if one == 2:
            raise OSError("disk full")
        done.append(one)

    background = Background("test", do)
    background.put(1)
    background.put(2)
    background._thread.join()
    with pytest.raises(OSError, match="disk full"):
        background.put(3)
    with pytest.raises(OSError, match="disk full"):
        background.check()
    with pytest.raises(OSError, match="disk full"):
        background.close()
    assert done == [1]


def test_what_comes_first_may_fail_too() -> None:
    def first() -> None:
        raise OSError("no such directory")

    with pytest.raises(OSError, match="no such directory"):
        Background[int]("test", print, first=first).close()


def _wait(go: threading.Event) -> None:
    assert go.wait(10)
