"""Splits by hash: the same whatever the order, disjoint, whole, and none of them empty."""

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from factory.data.split import assign, position
from factory.errors import StepError

SHARES = {"train": 0.98, "validation": 0.01, "test": 0.01}


@given(
    st.lists(st.text(min_size=1), unique=True, min_size=1, max_size=60),
    st.lists(st.integers(1, 100), min_size=1, max_size=4),
    st.randoms(),
)
def test_every_group_has_one_split_and_no_split_is_empty(groups, weights, chance):
    assume(len(groups) >= len(weights))
    assume(all(group.encode(errors="replace").decode() == group for group in groups))
    shares = {f"split{n}": weight / sum(weights) for n, weight in enumerate(weights)}
    first = assign(groups, shares)
    shuffled = list(groups)
    chance.shuffle(shuffled)
    assert assign(shuffled, shares) == first
    assert set(first.split_of) == set(groups)
    counts = {name: list(first.split_of.values()).count(name) for name in shares}
    assert all(counts.values()), counts
    assert all(counts[name] == moved for name, moved in first.filled.items())


def test_a_small_set_gets_the_lowest_hashes_and_says_so():
    groups = [f"g{n}" for n in range(10)]
    made = assign(groups, SHARES)
    lowest = sorted(groups, key=position)
    assert made.filled == {"validation": 1, "test": 1}
    assert made.split_of[lowest[0]] == "validation"
    assert made.split_of[lowest[1]] == "test"
    assert all(made.split_of[group] == "train" for group in lowest[2:])


def test_a_large_set_is_left_as_the_hash_has_it():
    made = assign([f"g{n}" for n in range(20_000)], SHARES)
    counts = {name: list(made.split_of.values()).count(name) for name in SHARES}
    assert made.filled == {}
    assert abs(counts["validation"] / 20_000 - 0.01) < 0.0025


def test_a_group_keeps_its_split_when_others_come():
    few = assign([f"g{n}" for n in range(5_000)], SHARES)
    many = assign([f"g{n}" for n in range(9_000)], SHARES)
    assert not few.filled
    assert all(many.split_of[group] == name for group, name in few.split_of.items())


def test_too_few_groups_for_the_splits():
    with pytest.raises(StepError, match="2 groups cannot fill the 3 splits train, validation"):
        assign(["a", "b", "a"], SHARES)


def test_exactly_as_many_groups_as_splits():
    made = assign(["a", "b", "c"], SHARES)
    assert sorted(made.split_of.values()) == ["test", "train", "validation"]
