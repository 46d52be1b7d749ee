"""Loss falls on what the policy says, token by token, whatever the texts hold."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from factory.data.encoding import Encoded, Encoder, Refused, Tokenizer, load
from factory.data.encoding.byte_level import BEGIN, END
from factory.data.encoding.runs import text_of
from factory.data.kinds import Message, ToolCall
from factory.data.loss import Loss
from factory.data.packing.overflow import NO_LOSS
from factory.data.sample import Sample
from tests.data.encoding.qwen_like import SPECIAL
from tests.data.kinds import SAMPLES, image, samples

SNIPPETS = st.sampled_from(
    [*SPECIAL, "<think>", "</tool_call>", "\n", "\n\n", " ", "assistant", "user", "cell", ".", "é"]
)
TEXT = st.lists(SNIPPETS, max_size=6).map("".join)
SAID = TEXT.map(lambda text: f"{text}x")


def encoded(encoder: Encoder, sample: Sample, policy: Loss | None = None) -> Encoded:
    made = replace(encoder, policies={"s": policy or Loss()}).encode(entry(sample), "key")
    assert isinstance(made, Encoded), made
    return made


def entry(sample: Sample) -> dict[str, Any]:
    return replace(sample, source="s").as_dict()


def learned(encoder: Encoder, sample: Sample, policy: Loss | None = None) -> list[str]:
    """What the model learns to write, run by run."""
    made = encoded(encoder, sample, policy)
    edges = np.flatnonzero(np.diff(made.loss_mask, prepend=False, append=False))
    runs = [made.tokens[start:stop].tolist() for start, stop in edges.reshape(-1, 2)]
    return [encoder.tokenizer.decode(run) for run in runs]


def talk(*messages: Message, tools: str | None = None) -> Sample:
    return Sample.conversation(id="c", messages=messages, tools=tools)


def calling(asked: str, said: str, result: str, answer: str) -> list[Message]:
    call = ToolCall("1", "find", '{"a": 1}')
    return [
        Message.of("system", f"{asked}s"),
        Message.of("user", asked),
        Message.of("assistant", said, [call]),
        Message.of("tool", result, tool_call_id="1"),
        Message.of("assistant", answer),
    ]


CALLED = '<tool_call>\n{"name": "find", "arguments": {"a": 1}}\n</tool_call><|im_end|>'


class TestConversations:
    def test_turns_of_the_assistant_with_their_ends(self, encoder):
        sample = talk(*calling("Why?", "Look:", "none", "Because."))
        assert learned(encoder, sample) == [f"Look:\n{CALLED}", "Because.<|im_end|>"]

    def test_a_turn_that_only_calls(self, encoder):
        sample = talk(*calling("Why?", "", "none", "Because."))
        assert learned(encoder, sample)[0] == CALLED

    def test_without_calls_their_turn_has_no_end_to_learn(self, encoder):
        sample = talk(*calling("Why?", "Look:", "none", "Because."))
        found = learned(encoder, sample, Loss(tool_calls=False))
        assert found == ["Look:", "Because.<|im_end|>"]

    def test_a_turn_may_say_it_itself(self, encoder):
        sample = talk(
            Message.of("user", "Why?", trained=True),
            Message.of("assistant", "No.", trained=False),
            Message.of("user", "Oh?"),
            Message.of("assistant", "Yes."),
        )
        assert learned(encoder, sample) == ["Why?<|im_end|>", "Yes.<|im_end|>"]

    def test_results_only_where_the_policy_says(self, encoder):
        sample = talk(*calling("Why?", "Look:", "none", "Because."))
        assert learned(encoder, sample, Loss(conversation=("tool",))) == ["none"]

    def test_declared_functions_are_never_learned(self, encoder):
        tools = '[{"type": "function", "function": {"name": "find"}}]'
        messages = calling("Why?", "Look:", "none", "Because.")
        found = learned(encoder, talk(*messages, tools=tools), Loss(conversation=("system",)))
        assert found == ["Why?s"]

    def test_a_token_that_is_half_the_templates_is_not_learned(self, encoder):
        """Two line ends are one token: the template's, and the first one of the answer."""
        sample = talk(Message.of("user", "Q"), Message.of("assistant", "\n\nIt is."))
        assert learned(encoder, sample) == ["\nIt is.<|im_end|>"]

    def test_images_are_never_learned(self, encoder):
        sample = talk(Message.of("user", ["a", image(), "b"]), Message.of("assistant", "A."))
        found = learned(encoder, sample, Loss(conversation=("user",)))
        assert found == ["a", "b<|im_end|>"]
        (place,) = encoded(encoder, sample).images
        assert place.image == image().sha256
        shown = encoded(encoder, sample).tokens[place.span.start : place.span.stop]
        assert tuple(shown) == encoder.tokenizer.image.ids

    @given(first=st.tuples(SAID, SAID), second=st.tuples(SAID, SAID), said=TEXT, answer=SAID)
    def test_does_not_depend_on_what_others_say(self, encoder, first, second, said, answer):
        one = talk(*calling(first[0], said, first[1], answer))
        other = talk(*calling(second[0], said, second[1], answer))
        assert learned(encoder, one) == learned(encoder, other)

    @given(texts=st.tuples(SAID, TEXT, TEXT, SAID))
    def test_no_text_opens_or_ends_a_turn(self, encoder, texts):
        special = set(encoder.tokenizer.special.values())

        def structure(*texts: str) -> list[int]:
            tokens = encoded(encoder, talk(*calling(*texts))).tokens.tolist()
            return [token for token in tokens if token in special]

        assert structure(*texts) == structure("a", "b", "c", "d")

    def test_what_the_template_would_leave_out_is_refused(self, encoder):
        late = [Message.of("user", "a"), Message.of("system", "b"), Message.of("assistant", "c")]
        shown = [Message.of("user", "a"), Message.of("assistant", image())]
        for messages, reason in (
            (late, "system turn later than first, which the chat template leaves out"),
            (shown, "image in a turn of the assistant, which the chat template leaves out"),
        ):
            refused = encoder.encode(entry(talk(*messages)), "key")
            assert refused == Refused("key", "s", reason, 0)


class TestOtherKinds:
    @pytest.fixture
    def bytewise(self) -> Encoder:
        return Encoder(load("bytes"), chat="plain")

    def test_a_document_is_learned_with_its_end(self, encoder):
        sample = Sample.document(id="d", title="Cells", sections=[("A", "One."), ("", "Two.")])
        assert learned(encoder, sample) == ["ells\n\nA\n\nOne.\n\nTwo.<|endoftext|>"]

    def test_or_its_title_alone(self, bytewise):
        sample = Sample.document(id="d", title="Cells", sections=[("A", "One.")])
        assert learned(bytewise, sample, Loss(document=("title",))) == ["Cells"]
        assert learned(bytewise, sample, Loss(document=("sections",))) == ["\n\nA\n\nOne."]

    def test_of_a_question_the_answer_and_why(self, encoder):
        sample = Sample.question(
            id="q", question="Which?", options=["a", "b"], answer="B", explanation="So."
        )
        assert learned(encoder, sample) == [" B\n", " So.<|endoftext|>"]
        found = learned(encoder, sample, Loss(question=("question", "options")))
        assert found == [" Which?\n", " a\n", " b\n"]

    def test_more_options_than_letters(self, bytewise):
        options = [str(number) for number in range(29)]
        sample = Sample.question(id="q", question="?x", options=options, answer="28")
        text = bytewise.tokenizer.decode(encoded(bytewise, sample).tokens.tolist())
        assert "\nZ. 25\nAA. 26\nAB. 27\nAC. 28\nAnswer: 28" in text

    def test_of_captions_the_text(self, encoder):
        sample = Sample.image_text(id="i", parts=["Figure. ", image(), "A cell."])
        assert learned(encoder, sample) == ["igure. ", "A cell.<|endoftext|>"]

    def test_of_plain_conversations_what_the_assistant_says(self, bytewise):
        sample = talk(*calling("Why?", "Look:", "none", "Because."))
        assert learned(bytewise, sample) == [" Look:\n", ' find({"a": 1})\n', " Because."]

    def test_texts_only_tokenizers_refuse_images(self, encoder, qwen):
        blind = replace(encoder, tokenizer=replace(qwen, image=None))
        sample = Sample.image_text(id="i", parts=["Figure. ", image()])
        refused = blind.encode(entry(sample), "key")
        assert refused == Refused(
            "key", "s", "image, but the tokenizer has no tokens for images", 0
        )

    @pytest.mark.parametrize("sample", samples(), ids=lambda sample: sample.kind)
    def test_bytes_are_those_of_the_rendered_text_between_two_tokens(self, bytewise, sample):
        made = encoded(bytewise, sample)
        text = text_of(bytewise.runs(entry(sample)))
        assert made.tokens.tolist() == [BEGIN, *text.encode(), END]

    def test_unknown_kinds_are_named(self, encoder):
        with pytest.raises(ValueError, match="kind 'poem'; known are document"):
            encoder.encode({"kind": "poem", "source": "s"})


class TestNothingToLearn:
    def test_is_a_reason(self, encoder):
        sample = talk(Message.of("user", "a"), Message.of("assistant", "b", trained=False))
        refused = encoder.encode(entry(sample), "key")
        assert isinstance(refused, Refused)
        assert (refused.reason, refused.tokens > 0) == (NO_LOSS, True)

    def test_the_first_token_has_nothing_that_predicts_it(self, qwen):
        encoder = Encoder(qwen, policies={"s": Loss(document=("title",))})
        sample = Sample.document(id="d", title="C", sections=[("", "x")])
        refused = encoder.encode(entry(sample))
        assert isinstance(refused, Refused)
        assert refused.reason == NO_LOSS


@pytest.fixture(scope="module", params=["qwen", "bytes"])
def each(request: pytest.FixtureRequest, qwen: Tokenizer) -> Encoder:
    return Encoder(qwen) if request.param == "qwen" else Encoder(load("bytes"), chat="plain")


@given(found=st.lists(SAMPLES, max_size=3))
def test_together_as_alone_and_one_mask_value_a_token(each, found):
    named = [(f"{at}", entry(sample)) for at, sample in enumerate(found)]
    together = each.encode_all(named)
    assert len(together) == len(found)
    for (key, sample), made in zip(named, together, strict=True):
        alone = each.encode(sample, key)
        assert type(alone) is type(made)
        if isinstance(made, Encoded) and isinstance(alone, Encoded):
            assert made.tokens.tolist() == alone.tokens.tolist()
            assert made.loss_mask.tolist() == alone.loss_mask.tolist()
            assert made.tokens.shape == made.loss_mask.shape
            assert not any(made.loss_mask[slice(*place.span)].any() for place in made.images)
            assert made.tokens.max() < each.tokenizer.size


def test_identity_is_that_of_tokenizer_and_rendering(encoder, qwen, folder):
    assert encoder.identity == Encoder(load(folder)).identity
    assert encoder.identity != Encoder(qwen, chat="plain").identity
