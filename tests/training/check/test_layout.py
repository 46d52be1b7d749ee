"""The rules of a layout, each broken alone and told in its own words."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from factory.training.check.layout import Layout, broken

VALID = Layout(
    gpus=16,
    tensor=2,
    pipeline=2,
    context=1,
    expert=4,
    expert_tensor=1,
    sequence_parallel=True,
    layers=48,
    heads=32,
    query_groups=4,
    experts=128,
    sequence=4096,
    micro_batch=1,
    global_batch=32,
    first_stage_layers=3,
)


def test_a_valid_layout_breaks_nothing_and_says_how_it_divides():
    assert broken(VALID) == []
    assert VALID.data == 4
    assert VALID.micro_batches == 8
    assert VALID.expert_data == 2
    assert VALID.tokens_per_step == 32 * 4096


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (
            {"gpus": 18, "experts": 0, "expert": 1},
            r"18 GPUs are no multiple of TP 2 x PP 2 x CP 1 = 4.*Use 16 or 20 GPUs",
        ),
        ({"gpus": 20, "global_batch": 40}, r"expert TP 1 x EP 4 x PP 2 = 8.*Use 16 or 24 GPUs"),
        ({"pipeline": 5, "gpus": 20}, r"48 layers do not divide by PP 5.*1, 2, 3, 4, 6, 8, 12"),
        ({"pipeline": 24, "gpus": 192}, r"stages has 2 layers, but images enter the first 3"),
        ({"heads": 34}, r"34 attention heads do not share 4 heads of keys.*of 1, 2, 17, 34\."),
        ({"heads": 31, "query_groups": 31}, r"31 attention heads do not divide by TP 2.*1, 31"),
        (
            {"tensor": 4, "heads": 36, "query_groups": 6, "gpus": 32},
            r"6 heads of keys and values and TP 4",
        ),
        ({"experts": 130}, r"130 experts do not divide by EP 4.*1, 2, 5, 10, 13"),
        ({"experts": 0}, r"EP 4 divides experts, and this model has none"),
        ({"tensor": 1}, r"sequence_parallel divides among tensor-parallel GPUs, and TP is 1"),
        ({"sequence_parallel": False}, r"Experts with TP 2 need model.sequence_parallel"),
        ({"sequence": 4095}, r"4095 does not divide by 2.*nearest below is 4094"),
        ({"context": 2, "sequence": 4100}, r"4100 does not divide by 8.*below is 4096"),
        ({"micro_batch": 2}, r"micro_batch_size is 2, and the stages of a pipeline.*Set it to 1"),
        ({"global_batch": 34}, r"34 is no multiple of micro batch 1 x DP 4 = 4.*to 32 or 36"),
        ({"global_batch": 3}, r"to 4\."),
    ],
)
def test_a_broken_rule_names_numbers_and_what_to_set(change, said):
    (rule,) = broken(replace(VALID, **change))
    import re

    assert re.search(said, rule), rule


def test_without_a_number_of_ranks_nothing_is_said_of_the_batch():
    (rule,) = broken(replace(VALID, gpus=3, experts=0, expert=1, global_batch=7))
    assert "Use 4 GPUs" in rule


@given(
    gpus=st.integers(1, 64),
    tensor=st.sampled_from([1, 2, 3, 4, 8]),
    pipeline=st.sampled_from([1, 2, 3, 5]),
    batch=st.integers(1, 64),
)
def test_the_batch_that_a_refusal_proposes_is_valid(gpus, tensor, pipeline, batch):
    found = replace(VALID, gpus=gpus, tensor=tensor, pipeline=pipeline, global_batch=batch)
    rules = [rule for rule in broken(found) if rule.startswith("train.global_batch_size")]
    if rules:
        proposed = rules[0].rpartition(" to ")[2].rstrip(".").split(" or ")
        for one in proposed:
            again = broken(replace(found, global_batch=int(one)))
            assert not [rule for rule in again if rule.startswith("train.global_batch_size")]
