"""What of a sample is compared, and that a common frame makes no duplicates."""

import gzip
import json
from pathlib import Path

import pyarrow as pa

from factory.data import Dedup
from factory.data.chat import openai
from factory.data.compared import compared
from factory.data.dedup import local, reduce
from factory.data.kinds import Message
from factory.data.sample import Sample
from tests.data.kinds import call, image

PROMPT = " ".join(f"word{number}" for number in range(200))


def talk(name: str, *turns: Message, tools: str | None = None) -> Sample:
    return Sample.conversation(id=name, messages=turns, tools=tools)


def asked(name: str, question: str, answer: str, system: str = PROMPT) -> Sample:
    said = (("system", system), ("user", question), ("assistant", answer))
    return talk(name, *(Message.of(role, text) for role, text in said))


def shown(name: str, *parts: object) -> Sample:
    return Sample.image_text(id=name, parts=parts)  # type: ignore[arg-type]


def removed(*samples: Sample) -> dict[str, str]:
    texts, scopes = zip(*map(compared, samples), strict=True)
    batch = pa.RecordBatch.from_pydict(
        {
            "id": [one.id for one in samples],
            "text": texts,
            "scope": scopes,
            "priority": pa.array([0] * len(samples), pa.int64()),
            "tokens": pa.array([len(text.encode()) for text in texts], pa.int64()),
        }
    )
    found = reduce([pa.Table.from_batches([local(batch, Dedup())])], Dedup()).removed
    return {row["id"]: f"{row['kind']} {row['kept']}" for row in found.to_pylist()}


def test_conversations_that_say_the_same_to_the_same():
    first = asked("a", "How many?", "Seven patients.")
    assert removed(first, asked("b", "How  many", "seven patients")) == {"b": "exact a"}
    assert removed(first, asked("b", "How old?", "Seven patients.")) == {}
    assert removed(first, asked("b", "How many?", "Eight patients.")) == {}
    assert removed(first, asked("b", "How many?", "Seven patients.", "Be brief.")) == {}


def test_a_long_answer_that_differs_in_little():
    longer = asked("a", "Tell me.", f"{PROMPT} and more")
    assert removed(longer, asked("b", "Tell me.", PROMPT)) == {"b": "near a"}


def test_calls_and_tools_and_results_count():
    user = Message.of("user", "Find.")

    def calling(name: str, found: str, arguments: str, tools: str | None = None) -> Sample:
        called = Message.of("assistant", "", [call(arguments=arguments)])
        return talk(name, user, called, Message.of("tool", found, tool_call_id="c1"), tools=tools)

    first = calling("a", "Ada", '{"who": "Ada"}')
    assert removed(first, calling("b", "Ada", '{"who": "Ada"}')) == {"b": "exact a"}
    assert removed(first, calling("b", "Ada", '{"who": "Bob"}')) == {}
    assert removed(first, calling("b", "Bob", '{"who": "Ada"}')) == {}
    assert removed(first, calling("b", "Ada", '{"who": "Ada"}', '[{"name": "f"}]')) == {}


def test_the_same_words_about_another_image():
    answer = Message.of("assistant", "A cell.")
    talks = [talk(name, Message.of("user", image(name.encode())), answer) for name in "ab"]
    assert removed(*talks) == {}
    captions = [shown(name, image(name.encode()), "A cell.") for name in "ab"]
    assert removed(*captions) == {}
    assert removed(captions[0], shown("c", image(b"a"), "a cell")) == {"c": "exact a"}
    assert removed(captions[0], shown("c", image(b"a"), "A nucleus.")) == {}


def test_images_without_a_word():
    one, other = image(b"1"), image(b"2")
    assert removed(shown("a", one), shown("b", other)) == {}
    assert removed(shown("a", one), shown("b", one)) == {"b": "exact a"}
    assert removed(shown("a", one, other), shown("b", other, one)) == {}


def test_kinds_are_never_compared_with_each_other():
    document = Sample.document(id="a", title="", sections=[("", "Ada.")])
    question = Sample.question(id="b", question="Who?", answer="Ada.")
    assert (
        removed(document, question, asked("c", "Who?", "Ada."), shown("d", image(), "Ada.")) == {}
    )


def test_a_prompt_before_every_task_makes_no_copies(shared_data: Path):
    path = shared_data / "tool_use_medagentbench" / "expert_trajectories.jsonl.gz"
    found: list[Sample] = []
    for number, line in enumerate(gzip.decompress(path.read_bytes()).splitlines()):
        messages = openai.messages(json.loads(line), "turns", roles={"agent": "assistant"})
        found.append(Sample.conversation(id=f"{number:03}", messages=messages))
    assert len(removed(*found)) == 4  # 98 if their whole texts were compared
