"""Transcripts with the speaker before each line, `Doctor: How are you?`.

A line without a speaker continues the one before it. Who counts as what says the declaration:
`{"Doctor": "assistant", "Patient": "user", "Guest": "user"}`. Several of one sort, `Guest_1` and
`Guest_2`, are one entry there; the name as written stays the name of the turn.
"""

import re
from collections.abc import Mapping

from factory.data.chat.turns import conversation
from factory.data.kinds import Message
from factory.errors import BadRow

_LINE = re.compile(r"\s*(?P<speaker>[^\W\d_]\w{0,30})\s*:(?!//)\s*(?P<text>.*)", re.DOTALL)
_BREAK = re.compile(r"\r\n|\r|\n")
_NUMBER = re.compile(r"_?\d+$")


def messages(text: str, roles: Mapping[str, str]) -> list[Message]:
    """The turns of a transcript, verified.

    Raises:
        BadRow: a speaker is not among the roles, or the text starts without one.
    """
    return conversation(
        [Message.of(roles[sort], said, name=name) for sort, name, said in _spoken(text, roles)]
    )


def _spoken(text: str, roles: Mapping[str, str]) -> list[tuple[str, str, str]]:
    """Sort of speaker, name as written, what was said."""
    found: list[tuple[str, str, list[str]]] = []
    for line in _BREAK.split(text):
        match = _LINE.fullmatch(line)
        if match is not None:
            name = match["speaker"]
            sort = _NUMBER.sub("", name)
            if sort not in roles:
                raise BadRow("unknown speaker")
            found.append((sort, name, [match["text"].strip()]))
        elif found:
            found[-1][2].append(line.strip())
        elif line.strip():
            raise BadRow("text before the first speaker")
    return [(sort, name, "\n".join(said).strip()) for sort, name, said in found]
