"""Samples of every kind, at random and chosen, for the tests of whatever carries samples."""

import json

from hypothesis import strategies as st

from factory.data.images import Image
from factory.data.images.image import content_hash
from factory.data.kinds import Message, Picture, ToolCall
from factory.data.sample import Sample

PIXELS = b"not decoded here"


def image(data: bytes = PIXELS) -> Image:
    return Image(content_hash(data), data, "png", 1, 1, "L")


def call(name: str = "find", arguments: str = '{"who": "Ada"}', call_id: str = "c1") -> ToolCall:
    return ToolCall(call_id, name, arguments)


def samples() -> list[Sample]:
    """One of each kind, with every field set."""
    return [
        Sample.document(id="d", title="Title", sections=[("", "One."), ("Two", "Zwei 漢 🩺")]),
        Sample.question(id="q", question="Why?", answer="B", options=["a", "b"], explanation="So."),
        Sample.conversation(
            id="c",
            group="patient",
            license="MIT",
            meta={"trial": "3"},
            tools='[{"name": "find"}]',
            messages=[
                Message.of("system", "Help."),
                Message.of("user", ["What is this?", image()]),
                Message.of("assistant", "", [call()]),
                Message.of("tool", "Nothing.", tool_call_id="c1", name="find"),
                Message.of("assistant", "Nothing.", trained=True),
                Message.of("user", "Thanks.", name="Ada", trained=False),
            ],
        ),
        Sample.image_text(id="i", parts=["Figure 1. ", image(), "A cell.", image(b"other")]),
    ]


TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
"""Any text that has a UTF-8 form: controls, marks and scripts of all kinds."""

FULL = TEXT.map(lambda text: f"{text}x")
PICTURE = st.builds(Picture, st.binary(max_size=3).map(content_hash))
PARTS = st.lists(st.one_of(FULL, PICTURE), min_size=1, max_size=3)
ARGUMENTS = st.dictionaries(TEXT, st.one_of(TEXT, st.integers(), st.none()), max_size=2).map(
    json.dumps
)
TRAINED = st.one_of(st.none(), st.booleans())
META = st.dictionaries(TEXT, TEXT, max_size=2)


@st.composite
def turns(draw: st.DrawFn) -> list[Message]:
    """A user's turn and an answer, by calling tools or without."""
    asked = Message.of("user", draw(PARTS), name=draw(st.one_of(st.none(), FULL)))
    answer = Message.of("assistant", draw(PARTS), trained=draw(TRAINED))
    count = draw(st.integers(0, 2))
    if not count:
        return [asked, answer]
    calls = [ToolCall(f"call-{number}", draw(FULL), draw(ARGUMENTS)) for number in range(count)]
    results = [Message.of("tool", draw(TEXT), tool_call_id=one.id) for one in calls]
    calling = Message.of("assistant", draw(TEXT), calls, trained=draw(TRAINED))
    return [asked, calling, *results, answer]


DOCUMENTS = st.builds(
    Sample.document,
    id=FULL,
    title=TEXT,
    sections=st.lists(st.tuples(TEXT, FULL), min_size=1, max_size=3),
    group=TEXT,
    license=st.sampled_from(["", "MIT", "CC-BY-4.0", "LicenseRef-own"]),
    meta=META,
)
QUESTIONS = st.builds(
    Sample.question,
    id=FULL,
    question=FULL,
    answer=FULL,
    options=st.lists(TEXT, max_size=3),
    explanation=st.one_of(st.none(), TEXT),
    meta=META,
)
CONVERSATIONS = st.builds(
    Sample.conversation,
    id=FULL,
    messages=st.lists(turns(), min_size=1, max_size=2).map(
        lambda found: [turn for group in found for turn in group]
    ),
    tools=st.one_of(st.none(), st.just("[]")),
    meta=META,
)
IMAGE_TEXTS = st.builds(
    Sample.image_text,
    id=FULL,
    parts=st.tuples(PARTS, PICTURE).map(lambda found: [*found[0], found[1]]),
    meta=META,
)
SAMPLES = st.one_of(DOCUMENTS, QUESTIONS, CONVERSATIONS, IMAGE_TEXTS)
