"""Every conversation of the declared sets, against transformers and the template itself.

The text must be the template's, the tokens those that transformers makes of that text, and the
loss what follows from rendering the turns before: written without anything of the encoder.
"""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from factory.data import table
from factory.data.encoding import Encoded, Encoder, Tokenizer
from factory.data.encoding.runs import text_of
from factory.data.encoding.template import ChatTemplate, messages_of
from factory.discovery import datasets
from tests.data.encoding.qwen_like import SPECIAL

pytestmark = pytest.mark.slow

CONVERSATIONS = {
    "tools/glaive": 300,
    "tools/reasoning": 50,
    "tools/tau_bench_airline": 84,
    "tools/medagentbench": 75,
    "dialogue/mts_dialog": 1_201,
    "dialogue/identity": 500,
}
"""Samples after cleaning."""


@pytest.fixture(scope="module")
def transformer(folder: Path) -> Any:
    from transformers import PreTrainedTokenizerFast

    return PreTrainedTokenizerFast.from_pretrained(folder, local_files_only=True)


@pytest.mark.parametrize("name", CONVERSATIONS)
def test_agree_with_transformers(
    name: str, runner: Any, shared_mirrors: Path, qwen: Tokenizer, transformer: Any
):
    declared = datasets()[f"public/{name}"]
    runner.settings = runner.settings.model_copy(update={"mirrors": shared_mirrors})
    version, _ = runner.until(declared, "clean")
    samples = [one.as_dict() for one in table.samples(version.path / "samples")]
    assert len(samples) == CONVERSATIONS[name]
    encoder = Encoder(qwen, policies={f"public/{name}": declared.loss})
    made = encoder.encode_all((sample["id"], sample) for sample in samples)
    assert qwen.template is not None
    for sample, ours in zip(samples, made, strict=True):
        conversation = sample["conversation"]
        text = transformer.apply_chat_template(
            messages_of(conversation["messages"]),
            tools=_tools(conversation),
            tokenize=False,
        )
        assert text_of(encoder.runs(sample)) == text
        theirs = transformer(text, return_offsets_mapping=True)
        assert isinstance(ours, Encoded)
        assert not any(token in turn for turn in _said(conversation) for token in SPECIAL)
        assert ours.tokens.tolist() == theirs["input_ids"]
        expected = _loss(conversation, qwen.template, text, theirs["offset_mapping"])
        assert ours.loss_mask.tolist() == expected.tolist()
        assert expected.any()


def _tools(conversation: dict[str, Any]) -> Any:
    import json

    return json.loads(conversation["tools"]) if conversation["tools"] else None


def _said(conversation: dict[str, Any]) -> list[str]:
    return [part["text"] for turn in conversation["messages"] for part in turn["parts"]]


def _loss(
    conversation: dict[str, Any], template: ChatTemplate, text: str, offsets: list[tuple[int, int]]
) -> np.ndarray:
    """Tokens between what stands before an answer and the line end behind its end token."""
    messages = conversation["messages"]
    starts, stops = np.array(offsets).T
    mask = np.zeros(len(offsets), dtype=bool)
    for at, message in enumerate(messages):
        if not message["trained"]:
            continue
        assert message["role"] == "assistant"
        before = "<|im_start|>assistant\n"
        if at:
            before = template.render(conversation | {"messages": messages[:at]}, prompt=True)
        after = template.render(conversation | {"messages": messages[: at + 1]})
        assert text.startswith(after)
        assert after.startswith(before)
        mask |= (starts >= len(before)) & (stops <= len(after) - len("\n"))
    return mask
