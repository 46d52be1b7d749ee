"""`factory gc`: says what could go, and removes only when asked to."""

import json
import os
from pathlib import Path

import pytest

from factory.namespace import Namespace, Version
from tests.cli.conftest import KEY, Factory


@pytest.fixture
def old(older: Version, newer: Version) -> Version:
    """A version that is not current, untouched since 1970."""
    for version in (older, newer):
        os.utime(version.path, (1, 1))
    return older


def test_dry_run_by_default(factory: Factory, old: Version, newer: Version) -> None:
    found = factory("gc", "--keep", "0", "--json")
    assert found.code == 0, found.err
    assert [row["version"] for row in found.facts["going"]] == [old.id]
    assert found.facts["kept"] == {str(newer): "current"}
    assert found.facts["bytes"] > 0
    assert found.facts["removed"] is None
    assert old.path.is_dir()
    shown = factory("gc", "--keep", "0")
    assert old.id in shown.out
    assert "1 versions could go" in shown.out
    assert "--delete removes them" in shown.out


def test_delete(factory: Factory, old: Version, newer: Version, namespace: Namespace) -> None:
    found = factory("gc", "--keep", "0", "--delete", "--json")
    assert found.facts["removed"] == [str(old)]
    assert namespace.versions(KEY) == [newer]
    assert namespace.verify(newer) == []
    assert factory("gc", "--keep", "0", "--delete").out.endswith("0 versions removed.\n")


def test_it_is_careful_by_itself(factory: Factory, old: Version) -> None:
    """Two versions that a rollback could go back to: three are kept."""
    found = factory("gc", "--delete")
    assert found.code == 0
    assert "one of the newest 3" in found.out
    assert old.path.is_dir()


def test_only_below_a_key(factory: Factory, old: Version) -> None:
    assert factory("gc", "public/text/notes", "--keep", "0", "--json").facts["going"]
    nothing = factory("gc", "public/text/nothing", "--keep", "0")
    assert nothing.code == 1
    assert "No dataset public/text/nothing under definitions/datasets" in nothing.err


def test_a_lock_in_another_folder(factory: Factory, old: Version, tmp_path: Path) -> None:
    (tmp_path / "branch").mkdir()
    (tmp_path / "branch/mix.lock").write_text(json.dumps({str(KEY): old.id}))
    found = factory("gc", "--keep", "0", "--locks", str(tmp_path / "branch"), "--json")
    assert found.facts["going"] == []
    missing = factory("gc", "--keep", "0", "--locks", str(tmp_path / "nowhere"))
    assert missing.code == 1
    assert "is not a folder" in missing.err


def test_a_run_record_that_is_damaged_stops_it(
    factory: Factory, old: Version, namespace: Namespace
) -> None:
    namespace.open_run("public", "run-1").create("record.json", b"{")
    found = factory("gc", "--keep", "0", "--delete")
    assert found.code == 1
    assert "nothing is removed" in found.err
    assert old.path.is_dir()


def test_words_that_mean_nothing(factory: Factory, old: Version) -> None:
    assert factory("gc", "--lineage", "some").code == 2
    assert factory("gc", "--keep", "-1").code == 2
