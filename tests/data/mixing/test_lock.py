"""The lock: what is part of its identity, what lies beside it, and files that are none."""

import json

import pytest
from pydantic import ValidationError

from factory.data.mixing import LockedPacking, LockedSource, LockedStage, MixLock
from factory.errors import SpecError


def source(key="public/text/a", **changes):
    fields = {
        "key": key,
        "version": "0123456789abcdef0123",
        "role": "domain_shift",
        "weight": 3.0,
        "max_epochs": None,
        "max_share": None,
        "overflow": "split",
        "samples": 100,
        "licenses": ("CC0-1.0",),
    }
    return LockedSource(**(fields | changes))


def locked(**changes):
    fields = {
        "name": "clinical",
        "basis": "token",
        "sources": (source(), source("public/text/b", role="retention", max_epochs=4)),
        "stages": (
            LockedStage(from_step=0, context=2048, weights=(3.0, 1.0)),
            LockedStage(from_step=100, context=4096, weights=(1.0, 1.0)),
        ),
        "tokenizer": "/models/qwen",
        "tokenizer_identity": "t",
        "chat": "template",
        "template_identity": "c",
        "packing": LockedPacking(regime="boundary_aware", buffer=1024, alignment=1, shuffle=100),
    }
    return MixLock(**(fields | changes))


def test_a_lock_comes_back_from_its_file_as_it_was():
    lock = locked()
    data = lock.to_json()
    assert MixLock.from_json(data) == lock
    assert json.loads(data)["hash"] == lock.hash
    assert MixLock.from_json(data).to_json() == data


def test_a_changed_copy_has_a_hash_of_its_own():
    lock = locked()
    assert lock.hash != lock.model_copy(update={"basis": "sample"}).hash
    assert lock.pins == lock


def test_where_a_step_and_a_source_are():
    lock = locked()
    assert [lock.stage(step) for step in (0, 99, 100, 10**6)] == [0, 0, 1, 1]
    assert lock.keys == ("public/text/a", "public/text/b")
    assert lock.sources[1].train == "public/text/b/energon/train"
    assert lock.context == 4096


@pytest.mark.parametrize(
    "changes",
    [
        {"basis": "sample"},
        {"sources": (source(version="f" * 20), source("public/text/b", max_epochs=4))},
        {"sources": (source(), source("public/text/b", max_epochs=5))},
        {"sources": (source(max_share=0.8), source("public/text/b", max_epochs=4))},
        {"sources": (source(overflow="drop"), source("public/text/b", max_epochs=4))},
        {"sources": (source("public/text/b", max_epochs=4), source())},
        {"stages": (LockedStage(from_step=0, context=2048, weights=(3.0, 1.0)),)},
        {"tokenizer_identity": "u"},
        {"chat": "plain"},
        {"template_identity": "d"},
        {"packing": LockedPacking(regime="naive", buffer=1024, alignment=1, shuffle=100)},
        {"packing": LockedPacking(regime="boundary_aware", buffer=1024, alignment=8, shuffle=100)},
        {"packing": LockedPacking(regime="boundary_aware", buffer=1024, alignment=1, shuffle=10)},
    ],
)
def test_what_decides_the_stream_is_part_of_the_identity(changes):
    assert locked(**changes).hash != locked().hash


@pytest.mark.parametrize(
    "changes",
    [
        {"name": "other"},
        {"tokenizer": "/elsewhere/qwen"},
        {
            "sources": (
                source(role="warmup", licenses=(), weight=7.0),
                source("public/text/b", max_epochs=4),
            )
        },
    ],
)
def test_what_decides_nothing_is_not(changes):
    assert locked(**changes).hash == locked().hash


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda data: data.replace(b'"token"', b'"sample"'), "was changed by hand"),
        (lambda data: data.replace(b'"form": 1', b'"form": 0'), "is a lock of form 0"),
        (lambda data: data.replace(b'"hash"', b'"hush"'), "is not JSON, or has no hash"),
        (lambda data: data[:-30], "is not JSON, or has no hash"),
        (lambda _: b"[]", "is not JSON, or has no hash"),
        (lambda data: data.replace(b'"split"', b'"cut"', 1), r"wrong: sources.0.overflow\)"),
        (lambda data: data.replace(b'"from_step": 100', b'"from_step": 0'), "no lock of a mix"),
    ],
)
def test_a_file_that_is_no_lock_says_why(change, message):
    with pytest.raises(SpecError, match=message):
        MixLock.from_json(change(locked().to_json()), "clinical.lock")


@pytest.mark.parametrize(
    "stages",
    [
        (LockedStage(from_step=1, context=8, weights=(1.0, 1.0)),),
        (LockedStage(from_step=0, context=8, weights=(1.0,)),),
        (
            LockedStage(from_step=0, context=8, weights=(1.0, 1.0)),
            LockedStage(from_step=5, context=4, weights=(1.0, 1.0)),
        ),
    ],
)
def test_stages_begin_at_the_start_and_contexts_only_grow(stages):
    with pytest.raises(ValidationError, match=r"Stages begin|for every source"):
        locked(stages=stages)
