"""Refusals while a run reads."""

from tests.data.mutations.refusal import of

DRAWING = of(
    "data/stream/drawing.py",
    "data/stream/test_refusals.py",
    (
        "an entry of a public dataset that is no sample",
        "cannot be encoded: ",
        "test_an_entry_that_is_no_sample_is_named_and_a_private_one_not_quoted",
    ),
    (
        "an entry of a private dataset that is no sample",
        "cannot be encoded (…).",
        "test_an_entry_that_is_no_sample_is_named_and_a_private_one_not_quoted",
    ),
)

REFUSALS = DRAWING
