"""`factory path | verify | versions | rollback` on a namespace with two versions."""

import dagster as dg

from factory.control.instance import ensure
from factory.namespace import Namespace, Version
from factory.settings import Settings
from tests.cli.conftest import KEY, Factory, publish


def test_path_prints_the_directory_alone(factory: Factory, newer: Version) -> None:
    found = factory("path", str(KEY))
    assert (found.code, found.out.strip()) == (0, str(newer.path))


def test_path_of_a_dataset_lists_its_steps(factory: Factory, newer: Version) -> None:
    found = factory("path", "public/text/notes", "--json")
    assert found.facts == {str(KEY): str(newer.path)}


def test_path_of_nothing_says_what_to_do(factory: Factory) -> None:
    found = factory("path", "public/text/nothing")
    assert found.code == 1
    assert "public/text/nothing" in found.err
    assert "No dataset public/text/nothing under definitions/datasets" in found.err


def test_a_key_that_is_none_is_a_usage_error(factory: Factory) -> None:
    for word in ("text/notes", "public/Text", "public/../private/x", "public/runs/x"):
        found = factory("path", word)
        assert found.code == 2, word
        assert word.split("/")[0] in found.err


def test_verify_finds_nothing_wrong(factory: Factory, newer: Version) -> None:
    found = factory("verify", str(KEY), "--json")
    assert (found.code, found.facts) == (0, {str(newer): []})


def test_verify_names_the_damaged_file(factory: Factory, newer: Version) -> None:
    file = newer.path / "rows.txt"
    file.chmod(0o644)
    file.write_text("SECOND")
    found = factory("verify", str(KEY))
    assert found.code == 1
    assert "rows.txt" in found.out
    assert "damaged" in found.out


def test_verify_of_one_version_by_its_first_digits(factory: Factory, older: Version) -> None:
    assert factory("verify", str(KEY), older.id[:8]).code == 0
    missing = factory("verify", str(KEY), "ffff")
    assert missing.code == 1
    assert older.id in missing.err


def test_versions_say_which_is_current(factory: Factory, older: Version, newer: Version) -> None:
    rows = factory("versions", str(KEY), "--json").facts
    assert {row["version"]: row["current"] for row in rows} == {newer.id: True, older.id: False}
    assert rows[0]["checks"] == "1/1 passed"
    assert [row["partial"] for row in rows] == [False, False]


def test_rollback_makes_it_current_and_tells_dagster(
    factory: Factory, older: Version, newer: Version, namespace: Namespace
) -> None:
    found = factory("rollback", str(KEY), older.id[:10], "--json")
    assert found.facts == {"key": str(KEY), "before": newer.id, "current": older.id}
    now = namespace.current(KEY)
    assert now is not None
    assert now.id == older.id
    with ensure(Settings.from_environment()) as instance:
        event = instance.get_latest_materialization_event(dg.AssetKey(list(KEY.parts)))
        assert event is not None
        materialization = event.asset_materialization
        assert materialization is not None
        assert materialization.tags is not None
        assert materialization.tags["dagster/data_version"] == older.id


def test_rollback_to_a_version_that_failed_changes_nothing(
    factory: Factory, older: Version, namespace: Namespace
) -> None:
    failed = publish(namespace, "failed", passed=False)
    found = factory("rollback", str(KEY), failed.id)
    assert found.code == 1
    assert "has_rows" in found.err
    now = namespace.current(KEY)
    assert now is not None
    assert now.id == older.id


def test_no_version_is_not_any_version(factory: Factory, older: Version) -> None:
    """Every id begins with nothing, also where there is only one."""
    found = factory("rollback", str(KEY), "")
    assert found.code == 1
    assert "'' is no version" in found.err
