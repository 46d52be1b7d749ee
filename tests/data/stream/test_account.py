"""An account that does not balance cannot be made; equal streams have equal chains."""

import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from factory.data.stream.account import FIELDS, BatchAccount, Chain, digest_of


def account(tokens=5, samples=1, **changed):
    counts = np.zeros((2, len(FIELDS)), dtype=np.int64)
    counts[0] = (samples, samples, tokens, 3, 0, 0)
    given_ = {
        "counts": counts,
        "slots": 8,
        "ending": 2,
        "aligning": 1,
        "drawn": np.array([[0, 7]]),
        "digest": bytes(32),
        **changed,
    }
    return BatchAccount(**given_)


def test_an_account_travels_between_processes():
    sent = account(dropped={(1, "no loss token"): (2, 30)})
    got = pickle.loads(pickle.dumps(sent))  # noqa: S301  our own
    assert np.array_equal(got.counts, sent.counts)
    assert np.array_equal(got.drawn, sent.drawn)
    assert got.dropped == sent.dropped
    assert (got.slots, got.ending, got.aligning, got.digest) == (8, 2, 1, bytes(32))


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"tokens": 4}, r"8 positions holds 4 tokens and 2 \+ 1 of padding"),
        ({"slots": 9}, "9 positions"),
        ({"samples": 2}, "counts 2 samples and names 1"),
    ],
)
def test_one_that_does_not_balance_cannot_be_made(changed, said):
    with pytest.raises(RuntimeError, match=said):
        account(**changed)


def test_a_digest_sees_values_types_shapes_and_which_arrays_there_are():
    tokens = np.arange(6, dtype=np.int64)
    arrays = {"tokens": tokens, "labels": tokens}
    every = [
        arrays,
        {"tokens": tokens},
        {"tokens": tokens, "loss_mask": tokens},
        {**arrays, "tokens": tokens.astype(np.int32)},
        {**arrays, "tokens": tokens.reshape(2, 3)},
        {**arrays, "tokens": tokens + 1},
        {**arrays, "pixel_values": tokens},
    ]
    assert len({digest_of(one) for one in every}) == len(every)
    assert digest_of({**arrays, "account": tokens}) == digest_of(arrays)


@given(st.lists(st.binary(min_size=32, max_size=32), min_size=1, max_size=8), st.integers(0, 8))
def test_a_chain_that_was_saved_goes_on_as_the_one_that_was_not(digests, at):
    whole, part = Chain(), Chain()
    for digest in digests:
        whole.add(digest)
    for digest in digests[:at]:
        part.add(digest)
    part = Chain.restored(part.state())
    for digest in digests[at:]:
        part.add(digest)
    assert part == whole
    assert whole.batches == len(digests)


def test_a_chain_depends_on_the_order():
    one, other = Chain(), Chain()
    one.add(bytes(32))
    one.add(bytes([1] * 32))
    other.add(bytes([1] * 32))
    other.add(bytes(32))
    assert one.value != other.value
