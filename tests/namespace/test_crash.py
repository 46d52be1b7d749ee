"""`kill -9` of a writer: whatever the moment, no version is damaged and a sweep leaves nothing."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


def kill(root: Path, *arguments: str) -> dict:
    result = subprocess.run(
        [sys.executable, "-m", "tests.namespace.killing", str(root), *arguments],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == 0, result.stderr[-3000:]
    return json.loads(result.stdout)


@pytest.mark.parametrize("kills", [15, pytest.param(200, marks=pytest.mark.slow)])
def test_killed_at_a_random_moment(root, kills, capsys) -> None:
    report = kill(root, "random", str(kills), "20")

    with capsys.disabled():
        sys.stdout.write(f"\n{kills} kills, one cycle takes {report['cycle_seconds']:.3f} s\n")
        for name, count in report["outcomes"].items():
            sys.stdout.write(f"  {count:4d}  {name[2:]}\n")
    assert sum(report["outcomes"].values()) == kills
    assert report["damaged"] == []
    assert report["leftovers"] == []


@pytest.mark.slow
def test_a_collection_killed_before_every_single_file_operation(root) -> None:
    report = kill(root, "collect")

    assert report["points"] > 30, "the audit hook sees the file operations"
    assert report["damaged"] == [], "no version was ever seen with only some of its files"
    assert report["lost"] == [], "the current version stayed"
    assert report["exit"] == ["0"], "the last collection had to break the locks of dead ones"
    assert report["left"] == []
    assert report["leftovers"] == []


@pytest.mark.slow
@pytest.mark.parametrize("scenario", ["publish", "heal"])
def test_killed_before_every_single_file_operation(root, scenario) -> None:
    report = kill(root, "points", scenario)

    assert report["points"] > 60, "the audit hook sees the writer's file operations"
    assert report["damaged"] == []
    assert report["leftovers"] == []
    assert report["exit"] == ["0"], "the last writer was not killed and had to break old locks"
