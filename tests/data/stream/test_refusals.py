"""What a stream refuses before it reads, and what it says of an entry that is no sample."""

import json
from pathlib import Path

import pytest

from factory.data.encoding import Encoder, load
from factory.data.mixing import LockedPacking, LockedSource, LockedStage, MixLock
from factory.data.stream.build import drawing_of, encoder_of
from factory.data.stream.drawing import Drawing
from factory.data.stream.reader import Reader
from factory.errors import SpecError, StepError

PATIENT = "Mrs Ada Byron"


def lock(key: str, **changed) -> MixLock:
    encoder = Encoder(load("bytes"), chat="plain")
    source = LockedSource(
        key=key,
        version="v",
        role="domain_shift",
        weight=1,
        max_epochs=None,
        max_share=None,
        overflow="split",
        samples=3,
        licenses=(),
    )
    fields = {
        "name": "made",
        "basis": "sample",
        "sources": (source,),
        "stages": (LockedStage(from_step=0, context=64, weights=(1.0,)),),
        "tokenizer": "bytes",
        "tokenizer_identity": encoder.tokenizer.identity,
        "chat": "plain",
        "template_identity": encoder.identity,
        "packing": LockedPacking(regime="boundary_aware", buffer=4, alignment=1, shuffle=1),
        **changed,
    }
    return MixLock(**fields)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    from factory.data.energon import write_loss
    from factory.data.loss import Loss

    write_loss(tmp_path, Loss())
    return tmp_path


@pytest.mark.parametrize("key", ["public/text/notes", "private/text/notes"])
def test_an_entry_that_is_no_sample_is_named_and_a_private_one_not_quoted(key: str):
    made = Drawing(lock=lock(key), encoder=Encoder(load("bytes"), chat="plain"))
    entry = {"kind": PATIENT, "source": key, PATIENT: {}}
    raw = {"__key__": "a", "json": json.dumps(entry).encode()}
    with pytest.raises(StepError, match=f"Sample 7 of {key}/energon/train cannot be") as refused:
        made.draw(0, 7, 64, raw)
    assert (PATIENT in str(refused.value)) == key.startswith("public")
    assert (refused.value.__cause__ is None) == key.startswith("private")


def test_another_tokenizer_than_the_mix_was_locked_with(folder: Path):
    key = "public/text/notes"
    for field, what in (("tokenizer_identity", "tokenizer"), ("template_identity", "way of")):
        with pytest.raises(SpecError, match=f"The {what}.*but the mix was locked with {'0' * 64}"):
            encoder_of(lock(key, **{field: "0" * 64}), {key: folder})


def test_a_regime_that_would_cut_images(folder: Path):
    key = "public/text/notes"
    packing = LockedPacking(regime="naive", buffer=4, alignment=1, shuffle=1)
    with pytest.raises(SpecError, match="a model cannot read half of one"):
        drawing_of(lock(key, image_processor="p", packing=packing), {key: folder})


@pytest.mark.parametrize("given", [(6, 2, 2), (8, 0, 1), (0, 1, 1)])
def test_a_step_that_ranks_cannot_share(given):
    sequences, micro, ranks = given
    with pytest.raises(SpecError, match=f"A step of {sequences} sequences cannot be shared"):
        Reader(seed=1, global_batch_size=sequences, micro_batch_size=micro, ranks=ranks)


def test_which_step_a_batch_is_part_of():
    """Two ranks with three workers each, and steps of 8 sequences in batches of 2."""
    reader = Reader(seed=1, global_batch_size=8, micro_batch_size=2, ranks=2, workers=3)
    assert reader.readers == 6
    in_order = [(number % 3, number // 3) for number in range(8)]
    assert [reader.step(worker, batch) for worker, batch in in_order] == [0, 0, 1, 1, 2, 2, 3, 3]
