"""What differs between two versions, and why: every kind of difference, alone and together."""

import io
import json
import random
import tarfile
import tracemalloc

import pytest

from factory.data.differences import compare
from factory.data.differences.causes import ABSENT
from factory.data.differences.examples import Change, plain
from factory.errors import DamagedVersion, StepError
from factory.keys import public
from factory.namespace import Version
from tests.data.differences.conftest import sample

SPLIT = public("text/notes/split")
TRAIN = public("text/notes/energon/train")
RAW = public("text/notes/raw")
FIRST, SECOND = "shard-000000.tar", "shard-000001.tar"


def test_added_removed_and_changed(publish) -> None:
    before = publish([sample("same"), sample("gone"), sample("edited", "one two three")])
    after = publish([sample("new"), sample("edited", "one two four"), sample("same")])
    found = compare(before, after)
    counts = found.counts
    assert (counts.before, counts.after) == (3, 3)
    assert (counts.added, counts.removed, counts.changed, counts.moved) == (1, 1, 1, {})
    assert [row.id for row in found.examples.added] == ["new"]
    assert [row.id for row in found.examples.removed] == ["gone"]
    (edited,) = found.examples.changed
    assert edited.changes == [Change("document.sections[0].text", "one two three", "one two four")]
    assert found.verdict.endswith("rows: 1 added, 1 removed, 1 changed")


def test_code_changed_and_rows_are_equal(publish) -> None:
    rows = [sample("one"), sample("two")]
    before = publish(rows, content_id="rows", code="old")
    after = publish(rows, content_id="rows", code="new")
    found = compare(before, after)
    assert found.verdict == "clean code changed, rows equal"
    assert found.counts.equal
    assert [cause.name for cause in found.causes] == ["code"]


def test_equal_rows_are_not_read(publish) -> None:
    before = publish([sample("one")], content_id="rows", code="old")
    after = publish([sample("one")], content_id="rows", code="new")
    (after.path / "samples/00000.parquet").write_bytes(b"not read")
    assert compare(before, after).counts.equal


def test_why_comes_first(publish) -> None:
    raw = publish(files={"files/a": b"1"}, key=RAW)
    newer = publish(files={"files/a": b"2"}, key=RAW)
    first = {"max": {"a": 1, "b": 2}}
    before = publish([sample("one")], inputs=[raw], source=None, parameters=first)
    after = publish(
        [sample("one"), sample("two")],
        inputs=[newer],
        source=None,
        parameters={"max": {"a": 1, "b": 3}, "rows": "*"},
        licenses=["CC0-1.0"],
        code="new",
    )
    causes = compare(before, after).causes
    assert [(cause.name, cause.decides) for cause in causes] == [
        ("code", True),
        ("parameter max b", True),
        ("parameter rows", True),
        ("input public/text/notes/raw", True),
        ("licenses", False),
        ("rows", False),
    ]
    assert (causes[1].before, causes[1].after) == (2, 3)
    assert causes[2].before == ABSENT
    assert (causes[3].before, causes[3].after) == (raw.id, newer.id)


def test_the_same_input_and_other_rows(publish) -> None:
    """A step that is not deterministic: nothing that is stated says why."""
    before = publish([sample("one")], input_id="the same")
    after = publish([sample("two")], input_id="the same")
    assert compare(before, after).verdict == (
        "clean same code, parameters and inputs, rows: 1 added, 1 removed"
    )


def test_moved_between_splits(publish) -> None:
    before = publish({"train": [sample("a"), sample("b")], "test": [sample("c")]}, key=SPLIT)
    after = publish(
        {"train": [sample("a")], "test": [sample("b"), sample("c", "another text")]}, key=SPLIT
    )
    found = compare(before, after)
    assert found.counts.moved == {"train -> test": 1}
    assert (found.counts.changed, found.counts.added, found.counts.removed) == (1, 0, 0)
    assert found.examples.moved[0].changes == [Change("split", "train", "test")]
    assert found.verdict.endswith("rows: 1 changed, 1 moved")


def test_changed_and_moved_at_once_is_changed(publish) -> None:
    before = publish({"train": [sample("a", "one")], "test": [sample("b")]}, key=SPLIT)
    after = publish({"train": [sample("b")], "test": [sample("a", "two")]}, key=SPLIT)
    found = compare(before, after)
    assert (found.counts.changed, found.counts.moved) == (1, {"test -> train": 1})
    assert {change.field for change in found.examples.changed[0].changes} == {
        "split",
        "document.sections[0].text",
    }


def test_a_new_split(publish) -> None:
    before = publish({"train": [sample("a"), sample("b")]}, key=SPLIT)
    after = publish({"train": [sample("a")], "validation": [sample("b")]}, key=SPLIT)
    assert compare(before, after).counts.moved == {"train -> validation": 1}


def shard(samples) -> bytes:
    data = io.BytesIO()
    with tarfile.open(fileobj=data, mode="w") as tar:
        for one in samples:
            content = json.dumps(one.as_dict()).encode()
            entry = tarfile.TarInfo(f"{one.id}.json")
            entry.size = len(content)
            tar.addfile(entry, io.BytesIO(content))
            picture = tarfile.TarInfo(f"{one.id}.0123.png")
            picture.size = 3
            tar.addfile(picture, io.BytesIO(b"png"))
    return data.getvalue()


def test_entries_of_shards(publish) -> None:
    a, b, c = sample("a"), sample("b"), sample("c")
    before = publish(files={FIRST: shard([a]), SECOND: shard([b])}, key=TRAIN)
    after = publish(files={FIRST: shard([b, c])}, key=TRAIN)
    counts = compare(before, after).counts
    assert (counts.before, counts.after, counts.added, counts.removed) == (2, 2, 1, 1)


def test_the_same_entries_in_other_shards(publish) -> None:
    a, b = sample("a"), sample("b")
    before = publish(files={FIRST: shard([a, b])}, key=TRAIN)
    after = publish(files={FIRST: shard([b]), SECOND: shard([a])}, key=TRAIN)
    found = compare(before, after)
    assert found.counts.reordered
    assert found.verdict.endswith("rows equal, in another order")


def test_files_of_raw(publish) -> None:
    before = publish(files={"files/a": b"1", "files/b": b"2", "files/c": b"3"}, key=RAW)
    after = publish(files={"files/b": b"2", "files/c": b"33", "files/d": b"4"}, key=RAW)
    found = compare(before, after)
    counts = found.counts
    assert (counts.of, counts.added, counts.removed, counts.changed) == ("files", 1, 1, 1)
    assert [row.id for row in found.examples.added] == ["files/d"]
    assert found.examples.changed[0].changes[0] == Change("size", "1 B", "2 B")


def test_repeated_ids_are_matched_by_content_first(publish) -> None:
    before = publish([sample("x", "one"), sample("x", "two"), sample("x", "three")])
    after = publish([sample("x", text) for text in ("three", "four", "one", "five")])
    counts = compare(before, after).counts
    assert (counts.changed, counts.added, counts.removed) == (1, 1, 0)
    twice = publish([sample("y"), sample("y")])
    once = publish([sample("y")])
    assert compare(twice, once).counts.removed == 1
    assert compare(once, twice).counts.added == 1
    none = publish([sample("z")])
    assert compare(twice, none).counts.removed == 2


@pytest.mark.parametrize("seed", range(5))
def test_against_dictionaries(publish, seed) -> None:
    chance = random.Random(seed)

    def version() -> tuple[Version, dict[str, str]]:
        texts = {f"s{n}": f"text {chance.randrange(2)}" for n in chance.sample(range(60), 40)}
        return publish([sample(name, text) for name, text in texts.items()]), texts

    (before, old), (after, new) = version(), version()
    counts = compare(before, after).counts
    assert counts.added == len(new.keys() - old.keys())
    assert counts.removed == len(old.keys() - new.keys())
    assert counts.changed == sum(old[name] != new[name] for name in old.keys() & new.keys())


def test_empty_sides(publish) -> None:
    nothing, one = publish([]), publish([sample("a")])
    assert compare(nothing, one).counts.added == 1
    assert compare(one, nothing).counts.removed == 1
    assert compare(nothing, publish([])).counts.reordered, "content ids differ, and no row does"


def test_as_many_examples_as_asked_for_and_always_the_same(publish) -> None:
    before = publish([sample(f"s{n}", "one") for n in range(50)])
    after = publish([sample(f"s{n}", "two") for n in reversed(range(50))])
    found = compare(before, after, examples=2)
    assert [row.id for row in found.examples.changed] == ["s49", "s48"]
    assert compare(before, after, examples=0).examples.changed == []


def test_many_fields_are_cut(publish) -> None:
    before = publish([sample("a", meta={f"m{n}": "1" for n in range(9)})])
    after = publish([sample("a", meta={f"m{n}": "2" for n in range(9)})])
    (row,) = compare(before, after).examples.changed
    assert (len(row.changes), row.more) == (5, 4)


def test_excerpts_show_the_place_that_differs(publish) -> None:
    before = publish([sample("a", "x" * 5000 + "old" + "y" * 5000)])
    after = publish([sample("a", "x" * 5000 + "new" + "y" * 5000)])
    (change,) = compare(before, after).examples.changed[0].changes
    assert "old" in change.before
    assert "new" in change.after
    assert len(change.before) < 100
    assert change.before.startswith("...")


def test_text_of_rows_cannot_command_a_terminal(publish) -> None:
    before = publish([sample("a", "plain")])
    after = publish([sample("a", "\x1b[2J\x07\u202e plain\nnext")])
    (change,) = compare(before, after).examples.changed[0].changes
    assert change.after == r"\x1b[2J\x07\u202e plain\nnext"
    assert plain("Ünïcode 漢字 stays") == "Ünïcode 漢字 stays"


def test_a_damaged_table_is_named_without_a_word_of_it(publish) -> None:
    before = publish([sample("a", "secret")])
    after = publish([sample("b")])
    (after.path / "samples/00000.parquet").write_bytes(b"PAR1 secret")
    with pytest.raises(StepError, match=rf"{after} cannot be read .*factory verify") as refused:
        compare(before, after)
    assert "secret" not in str(refused.value)
    assert refused.value.__context__ is None or refused.value.__suppress_context__


def test_a_damaged_manifest(publish) -> None:
    before, after = publish([sample("a")]), publish([sample("b")])
    (before.path / "_manifest.json").write_text("{")
    with pytest.raises(DamagedVersion):
        compare(Version(before.key, before.id, before.path), after)


def test_memory_does_not_grow_with_the_text(publish) -> None:
    """200 samples of 100 kB on each side are 40 MB of text."""

    def big(word: str) -> list:
        return [sample(f"s{n}", f"{word} {n} " * 8_000) for n in range(200)]

    before, after = publish(big("one")), publish(big("two"))
    tracemalloc.start()
    counts = compare(before, after).counts
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert counts.changed == 200
    assert peak < 60_000_000
