"""Transcripts: who said what."""

import pytest

from factory.data.chat import dialogue
from factory.data.kinds import Message
from factory.errors import BadRow

ROLES = {"Doctor": "assistant", "Patient": "user", "Guest_family": "user"}


def test_speakers_become_roles_and_stay_names():
    text = "Doctor: Hello. \r\n Patient:  Hi,\r\nit hurts.\nGuest_family_2: Yes: it does.\r"
    assert dialogue.messages(text, ROLES) == [
        Message.of("assistant", "Hello.", name="Doctor"),
        Message.of("user", "Hi,\nit hurts.", name="Patient"),
        Message.of("user", "Yes: it does.", name="Guest_family_2"),
    ]


def test_what_looks_like_a_speaker_and_is_none():
    text = "Doctor: See\nhttps://example.org/a\n10:30 is fine, and\nDr. X: agrees"
    assert dialogue.messages(text, ROLES)[0].text.count("\n") == 3


@pytest.mark.parametrize(
    ("reason", "text"),
    [
        ("unknown speaker", "Doctor: Hello.\nNurse: Hi."),
        ("unknown speaker", "Gest_family: Hi.\nDoctor: Hello."),
        ("text before the first speaker", "Hello.\nDoctor: Hi."),
        ("no messages", ""),
        ("no messages", "\n \n"),
        ("empty user turn", "Doctor: Hello.\nPatient:"),
        ("no assistant turn", "Patient: Hello?"),
    ],
)
def test_transcripts_that_are_none(reason: str, text: str):
    with pytest.raises(BadRow) as caught:
        dialogue.messages(text, ROLES)
    assert caught.value.reason == reason
