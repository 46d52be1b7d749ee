"""Lines of a growing file come once, whole, and only new ones."""

from factory.training.follow import Tail


def test_whole_lines_once(tmp_path):
    path = tmp_path / "steps.jsonl"
    tail = Tail(path)
    assert list(tail.lines()) == []
    with path.open("a") as file:
        file.write("one\ntw")
        file.flush()
        assert list(tail.lines()) == ["one"]
        assert list(tail.lines()) == []
        file.write("o\nthree\n\n")
        file.flush()
        assert list(tail.lines()) == ["two", "three", ""]


def test_what_an_earlier_attempt_wrote_is_skipped(tmp_path):
    path = tmp_path / "steps.jsonl"
    path.write_text("old\n")
    tail = Tail(path)
    with path.open("a") as file:
        file.write("new\n")
    assert list(tail.lines()) == ["new"]
