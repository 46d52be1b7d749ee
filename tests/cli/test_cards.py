"""`factory card`: the same as on the page, for a dataset that is declared and made."""

import json

import pytest

from factory.data import Sample, table
from factory.data.statistics import Statistics
from factory.keys import public
from factory.namespace import Namespace
from tests.cli.conftest import PROVENANCE, Factory

DATASET = public("text/medquad")


@pytest.fixture
def made(namespace: Namespace) -> None:
    """A version of both steps that a card needs, of a dataset that is declared."""
    samples = [Sample.question(id=f"{n}", question="Why?", answer="word " * n) for n in (1, 9, 90)]
    counted = Statistics(3)
    for sample in samples:
        counted.add(sample)
    facts = {
        "clean": {"rows_read": 4, "rejected": {"no answer": 1}},
        "deduplicated": {"duplicates": {"exact": 0}, "statistics": counted.facts()},
    }
    read = []
    for step, seen in facts.items():
        with namespace.write(
            DATASET / step,
            inputs=read,
            input_id=step,
            provenance=PROVENANCE,
            source=None if read else "public",
            parameters={},
            code="c0de",
            checks=[],
            licenses=["CC-BY-4.0"],
        ) as staging:
            table.write_samples(staging.path / "samples", samples)
            staging.describe(content_id=step, rows=3, columns={}, facts=seen)
        namespace.promote(staging.version)
        read = [staging.version]


def test_card(factory: Factory, made: None) -> None:
    found = factory("card", "public/text/medquad")
    assert found.code == 0, found.err
    assert "3 of 4 rows read, all questions" in found.out
    assert "no answer" in found.out
    assert "64 │" in found.out
    assert "Why?" in found.out


def test_card_as_json(factory: Factory, made: None) -> None:
    facts = factory("card", "public/text/medquad", "--json").facts
    assert facts["rows"] == {"read": 4, "rejected": 1, "duplicates": 0, "kept": 3}
    assert Statistics.from_facts(facts["statistics"]).lengths.count == 3
    assert "Why?" not in json.dumps(facts)


def test_what_is_not_declared(factory: Factory) -> None:
    found = factory("card", "public/text/nothing")
    assert found.code == 2
    assert "No dataset public/text/nothing" in found.err


def test_what_is_not_made(factory: Factory) -> None:
    found = factory("card", "public/text/medquad")
    assert found.code == 1
    assert "has no current version" in found.err


def test_a_manifest_that_says_nothing_is_told(
    factory: Factory, namespace: Namespace, made: None
) -> None:
    clean = namespace.current(DATASET / "clean")
    assert clean is not None
    manifest = clean.path / "_manifest.json"
    manifest.write_text(json.dumps(json.loads(manifest.read_bytes()) | {"facts": {}}))
    found = factory("card", "public/text/medquad")
    assert found.code == 1
    assert "its manifest does not say what the step saw ('rows_read' is missing" in found.err
