"""`factory rejected` on a version whose table of rejected rows is known."""

from factory.data import layout
from factory.data.schema import REJECTED
from factory.data.table import Writer
from factory.keys import public
from factory.namespace import Namespace, Version
from tests.cli.conftest import PROVENANCE, Factory

KEY = public("text/faq")


def made(namespace: Namespace, *reasons: str) -> Version:
    """A version of `clean` that nobody has checked, so it is not current."""
    inputs = "_".join(reasons)
    with namespace.write(
        KEY / "clean",
        inputs=[],
        input_id=inputs,
        provenance=PROVENANCE,
        source="public",
        parameters={},
        code="0" * 64,
        checks=["rows"],
        licenses=["MIT"],
    ) as staging:
        folder = staging.path / layout.REJECTED
        folder.mkdir()
        with Writer(folder / "00000.parquet", REJECTED) as writer:
            for number, reason in enumerate(reasons, 1):
                row = {"file": "a.csv", "id": f"a.csv#{number}", "reason": reason}
                writer.add(row | {"excerpt": f"row {number}"})
        staging.describe(content_id=inputs, rows=0)
    return staging.version


def test_rows_and_reasons_of_the_newest_version_though_it_is_not_current(
    factory: Factory, namespace: Namespace
) -> None:
    made(namespace, "old")
    version = made(namespace, "no answer", "too short", "no answer")
    found = factory("rejected", "public/text/faq", "--json").facts
    assert found["version"] == str(version)
    assert found["reasons"] == {"no answer": 2, "too short": 1}
    assert [row["id"] for row in found["rows"]] == ["a.csv#1", "a.csv#2", "a.csv#3"]
    assert "row 3" in factory("rejected", "public/text/faq/clean").out


def test_one_reason_and_a_few_rows(factory: Factory, namespace: Namespace) -> None:
    made(namespace, "no answer", "too short", "no answer")
    asked = ("rejected", "public/text/faq", "--reason", "no answer", "--count", "1", "--json")
    assert [row["id"] for row in factory(*asked).facts["rows"]] == ["a.csv#1"]


def test_a_reason_or_a_dataset_that_is_none_is_named(
    factory: Factory, namespace: Namespace
) -> None:
    made(namespace, "no answer")
    refused = factory("rejected", "public/text/faq", "--reason", "typo")
    assert (refused.code, "'no answer'" in refused.err) == (1, True)
    nothing = factory("rejected", "public/text/none")
    assert (nothing.code, "No dataset public/text/none" in nothing.err) == (1, True)
    declared = factory("rejected", "public/text/plos")
    assert "Nothing is current under public/text/plos/clean" in declared.err
