"""Shards follow from names and sizes alone: nothing is lost, nothing depends on the order given."""

import itertools

from hypothesis import given
from hypothesis import strategies as st

from factory.data import shards
from factory.data.shards import Shard, one_each, plan

FILES = st.dictionaries(
    st.text("abc/.", min_size=1, max_size=6),
    st.integers(0, 2 * shards.SHARD_BYTES),
    max_size=40,
)


@given(FILES, st.randoms())
def test_every_file_is_in_one_shard_in_the_order_of_names(files, chance):
    shuffled = list(files.items())
    chance.shuffle(shuffled)
    made = plan(shuffled)
    assert made == plan(files.items())
    assert [name for shard in made for name in shard.names] == sorted(files)
    assert [shard.number for shard in made] == list(range(len(made)))
    for shard in made:
        assert shard.size == sum(files[name] for name in shard.names)
        assert len(shard.names) == 1 or shard.size <= shards.SHARD_BYTES
    for one, other in itertools.pairwise(made):
        assert one.size + files[other.names[0]] > shards.SHARD_BYTES, "they would fit together"


def test_a_large_file_is_alone_and_small_ones_are_together(monkeypatch):
    monkeypatch.setattr(shards, "SHARD_BYTES", 100)
    made = plan({"a": 10, "b": 20, "c": 500, "d": 100, "e": 1, "f": 0}.items())
    assert [shard.names for shard in made] == [("a", "b"), ("c",), ("d",), ("e", "f")]
    monkeypatch.setattr(shards, "SHARD_FILES", 1)
    assert len(plan({"a": 1, "b": 1}.items())) == 2
    assert plan([]) == []


def test_the_files_of_a_table_are_shards():
    assert one_each([("b", 1), ("a", 2)]) == [Shard(0, ("b",), 1), Shard(1, ("a",), 2)]
