"""Every image that any kind of sample shows is looked for among those that are stored."""

from pathlib import Path

import pytest

from factory.data import Sample, shared_images, table
from factory.data.image_checks import images_stored
from factory.data.images import Image
from factory.data.kinds import Message
from tests.data.kinds import image

STORED, LOST = image(b"stored"), image(b"lost")


def version(folder: Path, samples: list[Sample], images: list[Image]) -> Path:
    table.write_samples(folder / "samples", samples)
    with shared_images.Writer(folder) as writer:
        writer.add(images)
    if images:
        (folder / "images").mkdir()
        (folder / shared_images.FILE).rename(table.file(folder / "images", 0))
    return folder


def sample(kind: str, name: str, shown: Image) -> Sample:
    if kind == "image_text":
        return Sample.image_text(id=name, parts=[shown, "A film."])
    turns = [Message.of("user", ["What is this?", shown]), Message.of("assistant", "A film.")]
    return Sample.conversation(id=name, messages=turns)


@pytest.mark.parametrize("shown", [[], [STORED], [STORED, LOST]])
@pytest.mark.parametrize("kind", ["conversation", "image_text"])
def test_in_turns_and_between_texts(tmp_path: Path, kind: str, shown: list[Image]) -> None:
    samples = [Sample.document(id="d", title="", sections=[("", "x")])]
    samples += [sample(kind, f"{n}", one) for n, one in enumerate(shown)]
    result = images_stored(version(tmp_path, samples, [STORED] if shown else []))
    assert result.passed is (LOST not in shown), result.summary
    assert result.facts["shown"] == len(shown)
