"""Samples through Parquet: every kind, any text, and a schema that stays as it is."""

from pathlib import Path

import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from factory.data import table
from factory.data.sample import Sample
from tests.data import kinds


def through(directory: Path, samples: list[Sample]) -> list[Sample]:
    table.write_samples(directory, samples)
    return list(table.samples(directory))


def test_every_kind_in_one_table(tmp_path: Path):
    samples = kinds.samples()
    assert through(tmp_path / "samples", samples) == samples
    assert table.rows(tmp_path / "samples") == len(samples)
    assert table.differences(tmp_path / "samples") == []


@settings(max_examples=50, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(samples=st.lists(kinds.SAMPLES, max_size=5))
def test_any_samples(tmp_path: Path, samples: list[Sample]):
    assert through(tmp_path / "samples", samples) == samples


def test_the_content_of_other_kinds_is_null(tmp_path: Path):
    through(tmp_path / "samples", kinds.samples())
    found = pq.read_table(table.files(tmp_path / "samples")[0])
    for kind in ("document", "question", "conversation", "image_text"):
        assert found[kind].null_count == found.num_rows - 1


@pytest.mark.parametrize(
    "text",
    [
        "x",
        "a" * 1_400_000,
        "漢字かな交じり文",
        "نص \u200fعربي",
        "e\u0301 and é",
        "\u200bzero\u200dwidth\ufeff",
        "NUL \x00 and \x1f",
        "👩🏽\u200d⚕️",
        "\U0010ffff",
        "line\r\nline\rline\u2028line",
    ],
    ids=lambda text: f"{text[:6]!r} {len(text)}",
)
def test_texts_stay_as_they_are(tmp_path: Path, text: str):
    sample = Sample.document(id="d", title=text[:10], sections=[(text[:10], text)])
    assert through(tmp_path / "samples", [sample]) == [sample]


def test_the_schema_is_written_down():
    """A change here is a change of every version: of what Parquet readers outside see, too."""
    part = "list<element: struct<text: string, image: string>>"
    call = "struct<id: string, name: string, arguments: string>"
    section = "struct<heading: string, text: string>"
    message = (
        f"struct<role: string, parts: {part}, tool_calls: list<element: {call}>, "
        "tool_call_id: string, name: string, trained: bool>"
    )
    assert {
        name: kind.replace("item: ", "element: ") for name, kind in table.columns().items()
    } == {
        "id": "string",
        "group": "string",
        "kind": "string",
        "source": "string",
        "license": "string",
        "meta": "map<string, string>",
        "document": f"struct<title: string, sections: list<element: {section}>>",
        "question": (
            "struct<question: string, options: list<element: string>, answer: string, "
            "explanation: string>"
        ),
        "conversation": f"struct<tools: string, messages: list<element: {message}>>",
        "image_text": f"struct<parts: {part}>",
    }
