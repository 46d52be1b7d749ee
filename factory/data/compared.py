"""What of a sample is compared with others, and with which: for `deduplicate`.

Compared is what a sample adds, within what it answers or shows. Samples whose frame is long and
common (one prompt of six kilobytes before every task, one caption under every image of a kind)
would otherwise pass for copies of each other.
"""

from collections.abc import Iterator

from factory.data.kinds import Conversation, Document, ImageText, Message, Question
from factory.data.sample import Sample

JOINT = "\n"


def compared(sample: Sample) -> tuple[str, str]:
    """The text that is compared, and the scope: samples of different scopes are never duplicates.

    | kind         | the text                              | the scope                           |
    |--------------|---------------------------------------|-------------------------------------|
    | document     | title, headings, sections             | documents                           |
    | question     | the answer                            | the question and its options        |
    | conversation | what the assistant says and calls     | everything else in it               |
    | image_text   | its texts                             | its images, in order                |
    """
    content = sample.content
    match content:
        case Document():
            return JOINT.join(content.texts), ""
        case Question():
            options = (f"option {number}: {text}" for number, text in enumerate(content.options, 1))
            return content.answer, JOINT.join(("question", content.question, *options))
        case Conversation():
            said = (text for one in content.messages if _learned(one) for text in _words(one))
            return JOINT.join(said), JOINT.join(_frame(content))
        case ImageText():
            images = (one.image for one in content.pictures)
            return JOINT.join(content.texts), JOINT.join(("image_text", *images))


def _learned(message: Message) -> bool:
    return message.role == "assistant"


def _words(message: Message) -> Iterator[str]:
    yield message.text
    for call in message.tool_calls:
        yield call.name
        yield call.arguments


def _frame(content: Conversation) -> Iterator[str]:
    yield "conversation"
    yield content.tools or ""
    for message in content.messages:
        yield message.role
        if not _learned(message):
            yield message.text
    for picture in content.pictures:
        yield picture.image
