"""A template is trusted with loss only where a rendering of ours writes the same characters."""

import json
from pathlib import Path

import pytest

from factory.data.encoding import Encoder, load, qwen
from factory.data.encoding.probes import PROBES
from factory.data.encoding.runs import text_of
from factory.data.encoding.template import ChatTemplate, messages_of
from factory.data.loss import Loss
from factory.errors import SpecError
from tests.data.encoding import qwen_like

TEMPLATE = ChatTemplate(qwen_like.TEMPLATE, "here")

CHANGED = {
    "trims": ("+ seen(message) }}", "+ (seen(message) | trim) }}"),
    "ends turns otherwise": ("seen(messages[0]) + '<|im_end|>", "seen(messages[0]) + '<|eot|>"),
    "has a system turn of its own": ("{%- elif spoken %}", "{%- else %}{{ 'You are a model.' }}"),
    "writes calls otherwise": ('"arguments": \' }}', '"parameters": \' }}'),
    "refuses calls": ("{%- set spoken", "{{- raise_exception('no') if tools }}{%- set spoken"),
}


def test_qwens_rendering_is_what_the_template_writes():
    assert TEMPLATE.rendering() == ("qwen", qwen.conversation)


@pytest.mark.parametrize("name", PROBES)
def test_each_probe_is_written_alike(name: str):
    assert text_of(qwen.conversation(PROBES[name], Loss())) == TEMPLATE.render(PROBES[name])


@pytest.mark.parametrize("change", CHANGED)
def test_another_template_is_refused(change: str):
    before, after = CHANGED[change]
    assert before in qwen_like.TEMPLATE
    other = ChatTemplate(qwen_like.TEMPLATE.replace(before, after), "/models/other")
    with pytest.raises(SpecError, match=r"/models/other is none that loss can be placed in"):
        other.rendering()


def test_generation_marks_write_nothing():
    source = "{% generation %}{{ messages[0].content }}{% endgeneration %}."
    turn = {"role": "user", "parts": [{"text": "Hi", "image": None}], "tool_calls": []}
    turn |= {"tool_call_id": None, "name": None, "trained": None}
    assert ChatTemplate(source, "here").render({"tools": None, "messages": [turn]}) == "Hi."


def test_without_a_template_there_are_no_conversations(tmp_path: Path):
    encoder = Encoder(load(qwen_like.write(tmp_path, template=None)))
    sample = {"kind": "conversation", "source": "s", "conversation": PROBES["tool calls"]}
    with pytest.raises(SpecError, match=r"has no chat template.*chat='plain'"):
        encoder.encode(sample)
    document = {"title": "T", "sections": [{"heading": "", "text": "x"}]}
    assert encoder.encode({"kind": "document", "source": "s", "document": document})


@pytest.mark.slow
@pytest.mark.parametrize("name", PROBES)
def test_transformers_renders_the_template_as_we_do(name: str, folder: Path):
    from transformers.utils.chat_template_utils import render_jinja_template

    probe = PROBES[name]
    tools = json.loads(probe["tools"]) if probe["tools"] else None
    messages = messages_of(probe["messages"])
    (theirs,), _ = render_jinja_template([messages], tools=tools, chat_template=TEMPLATE.source)
    assert TEMPLATE.render(probe) == theirs
