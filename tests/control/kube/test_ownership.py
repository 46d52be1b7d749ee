"""A run's directory is handed over while something may be at work in it."""

import os
from pathlib import Path

import pytest

from factory.control.kube.ownership import hand_over
from factory.namespace import Namespace, RunDirectory
from tests.control.a_cluster import a_cluster
from tests.control.kube.submissions import RUN_ID

USER, GROUP = 4711, 4712


@pytest.fixture
def run(tmp_path: Path) -> RunDirectory:
    return Namespace(tmp_path).open_run("public", RUN_ID)


@pytest.fixture
def given(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What root has given away; the machine's own root would do it."""
    names: list[str] = []

    def chown(path: Path, user: int, group: int, *, follow_symlinks: bool) -> None:
        assert (user, group, follow_symlinks) == (USER, GROUP, False)
        path.lstat()
        names.append(path.name)

    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setattr(os, "chown", chown)
    return names


def handed_over(run: RunDirectory) -> None:
    hand_over(run, a_cluster(run_as={"user": USER, "group": GROUP}))


def test_root_gives_everything_to_the_pods_user(run: RunDirectory, given: list[str]) -> None:
    (run.directory("messages") / "000001.jsonl").write_text("x")
    (run.path / "link").symlink_to("/nowhere")
    handed_over(run)
    assert {RUN_ID, "messages", "000001.jsonl", "link"} <= set(given)


def test_a_file_that_goes_away_meanwhile_is_passed_over(
    run: RunDirectory, given: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A driver makes its chunks under another name first."""
    (run.directory("messages") / "000001.jsonl").write_text("x")
    seen = list(os.walk(run.path))

    def walk(_: Path) -> list[tuple[str, list[str], list[str]]]:
        return [(str(run.path), [], [".creating-1"]), *seen]

    monkeypatch.setattr(os, "walk", walk)
    handed_over(run)
    assert "000001.jsonl" in given
    assert ".creating-1" not in given
