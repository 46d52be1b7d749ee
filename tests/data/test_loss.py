"""What carries loss: the policy, what `clean` fills in from it, and what lies beside the shards."""

import json
from itertools import product
from typing import Any

import pytest

from factory.data import Dataset, LocalFiles, Loss, Rejected, Row, Sample
from factory.data.kinds import Message
from factory.data.loss import PARTS, filled
from factory.data.steps import steps
from factory.errors import DeclarationError
from factory.keys import private
from tests.data import kinds

TURNS = [
    Message.of("system", "Help."),
    Message.of("user", "Who?"),
    Message.of("assistant", "", [kinds.call()]),
    Message.of("tool", "Ada", tool_call_id="c1"),
    Message.of("assistant", "Ada."),
    Message.of("assistant", "Or not.", trained=False),
    Message.of("user", "Hm.", trained=True),
]


def trained(policy: Loss) -> list[bool | None]:
    sample = filled(Sample.conversation(id="c", messages=TURNS), policy)
    return [one.trained for one in sample.content.messages]  # type: ignore[union-attr]


def test_turns_of_the_assistant_are_learned_unless_the_row_says_otherwise():
    assert trained(Loss()) == [False, False, True, False, True, False, True]
    assert trained(Loss(conversation=())) == [False] * 6 + [True]
    assert trained(Loss(conversation=("tool", "user"))) == [
        False,
        True,
        False,
        True,
        False,
        False,
        True,
    ]


@pytest.mark.parametrize("sample", kinds.samples(), ids=lambda one: one.kind)
def test_nothing_but_the_flag_of_turns_changes(sample: Sample):
    found = filled(sample, Loss())
    assert found.images == sample.images
    if sample.kind != "conversation":
        assert found is sample
        return
    messages = found.content.messages  # type: ignore[union-attr]
    assert None not in {one.trained for one in messages}
    before, after = sample.as_dict(), found.as_dict()
    for turn in before["conversation"]["messages"] + after["conversation"]["messages"]:
        del turn["trained"]
    assert after == before


@pytest.mark.parametrize(
    ("kind", "wrong"),
    [
        *product(PARTS, ["images", "label", ""]),
        ("conversation", "gpt"),
        ("document", "text"),
        ("image_text", "title"),
    ],
)
def test_a_part_that_is_none_is_an_error_of_the_declaration(kind: str, wrong: str):
    given: dict[str, Any] = {kind: (wrong,)}
    with pytest.raises(DeclarationError, match=f"{kind} has no '{wrong}'.*Write some of"):
        Loss(**given)


@pytest.mark.parametrize("wrong", ["assistant", None, 3])
def test_parts_are_a_list(wrong: Any):
    with pytest.raises(DeclarationError, match="write a list of system, user, assistant, tool"):
        Loss(conversation=wrong)


def test_tool_calls_are_in_or_out():
    with pytest.raises(DeclarationError, match="tool_calls is 'no'"):
        Loss(tool_calls="no")  # type: ignore[arg-type]


def test_the_policy_as_json_is_one_for_one_meaning():
    policy = Loss(question=["explanation", "answer"], conversation={"tool", "assistant"})
    assert policy.as_dict() == Loss(conversation=["assistant", "tool"]).as_dict()
    assert Loss.from_dict(json.loads(policy.to_json())).as_dict() == policy.as_dict()
    assert Loss().as_dict() == {
        "document": ["title", "sections"],
        "question": ["answer", "explanation"],
        "conversation": ["assistant"],
        "image_text": ["text"],
        "tool_calls": True,
    }


def clean(row: Row) -> Sample | Rejected:
    return Sample.conversation(id=row.text("id"), messages=TURNS)


def declared(**fields: Any) -> Dataset:
    return Dataset(
        key=private("text/letters"),
        license="LicenseRef-test",
        source=LocalFiles(folder="letters", rows="*.jsonl", classification="private"),
        clean=clean,
        **fields,
    )


def test_a_dataset_declares_a_policy_and_no_other_thing():
    with pytest.raises(DeclarationError, match="loss is 'assistant'"):
        declared(loss="assistant")


def test_another_policy_makes_the_steps_anew_that_it_decides():
    def parameters(policy: Loss) -> dict[str, Any]:
        return {step.name: step.parameters for step in steps(declared(loss=policy))}

    first = parameters(Loss())
    calls = parameters(Loss(tool_calls=False))
    roles = parameters(Loss(conversation=("assistant", "tool")))
    energon = {name for name in first if name.startswith("energon")}
    assert {name for name in first if first[name] != calls[name]} == energon
    assert {name for name in first if first[name] != roles[name]} == energon | {"clean"}


@pytest.mark.slow
def test_the_policy_lies_beside_the_shards(runner, deliver):
    deliver([{"id": f"c{number}"} for number in range(20)])
    dataset = declared(loss=Loss(tool_calls=False), deduplicate=None)
    version, _ = runner.until(dataset, "energon/train")
    found = json.loads((version.path / "loss.json").read_bytes())
    assert Loss.from_dict(found).as_dict() == dataset.loss.as_dict()
