import dataclasses

import pytest

from factory.errors import ClassificationError, NamespaceError
from factory.keys import private, public
from factory.namespace import Version


@pytest.fixture
def open_input(write) -> Version:
    return write(key=public("text/articles")).version


@pytest.fixture
def closed_input(write) -> Version:
    return write(key=private("text/discharge_letters"), source="private").version


def test_a_private_input_and_a_public_key(write, open_input, closed_input, root) -> None:
    before = sorted(root.rglob("*"))

    with pytest.raises(ClassificationError) as refusal:
        write(key=public("text/letters"), inputs=[open_input, closed_input])

    assert str(refusal.value) == (
        "public/text/letters reads private/text/discharge_letters, so it must be private.\n"
        'Write key=private("text/letters") and move the file to '
        "definitions/datasets/private/text/letters.py."
    )
    assert sorted(root.rglob("*")) == before, "refused before anything was made"


def test_a_private_source_and_a_public_key(write) -> None:
    with pytest.raises(ClassificationError, match="public/text/x reads a private source, so it"):
        write(key=public("text/x"), source="private")


def test_a_public_source_does_not_whiten_a_private_input(write, closed_input) -> None:
    with pytest.raises(ClassificationError, match="so it must be private"):
        write(key=public("text/x"), inputs=[closed_input], source="public")


def test_private_of_public_inputs_is_said_on_purpose(write, open_input) -> None:
    with pytest.raises(ClassificationError) as refusal:
        write(key=private("text/x"), inputs=[open_input])
    assert str(refusal.value) == (
        "private/text/x reads only public/text/articles, so it would be public.\n"
        'Write key=public("text/x"), or say that it is meant with private_on_purpose=True.'
    )
    with pytest.raises(ClassificationError, match="reads only a public source"):
        write(key=private("text/x"))

    version = write(key=private("text/x"), inputs=[open_input], private_on_purpose=True).version
    assert version.manifest.classification == "private"


def test_on_purpose_does_not_make_a_private_input_public(write, closed_input) -> None:
    with pytest.raises(ClassificationError, match="so it must be private"):
        write(key=public("text/x"), inputs=[closed_input], private_on_purpose=True)


def test_private_of_private(write, open_input, closed_input) -> None:
    for inputs in ([closed_input], [open_input, closed_input]):
        version = write(key=private(f"text/x{len(inputs)}"), inputs=inputs).version
        assert version.manifest.classification == "private"


def test_nothing_to_derive_from(write) -> None:
    with pytest.raises(ClassificationError, match="'text/x' has no inputs to derive"):
        write(key=public("text/x"), source=None)


def test_an_input_is_what_its_directory_holds_not_what_it_is_called(write, closed_input) -> None:
    renamed = dataclasses.replace(closed_input, key=public("text/discharge_letters"))
    with pytest.raises(NamespaceError, match="holds private/text/discharge_letters@"):
        write(key=public("text/x"), inputs=[renamed])


def test_one_version_of_a_key_is_an_input(write, open_input) -> None:
    other = write("two", key=public("text/articles")).version
    with pytest.raises(NamespaceError, match="One key is an input twice"):
        write(key=public("text/x"), inputs=[open_input, other])
