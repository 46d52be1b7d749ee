"""A step that is killed goes on from its finished shards, and comes to the same version."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from factory.data.finished import MARKER
from factory.namespace.layout import WORK
from factory.settings import CHECKOUT
from tests.data import resuming

SCRIPT = Path(resuming.__file__)


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list]:
    made, _ = resuming.run(resuming.settings(tmp_path_factory.mktemp("undisturbed")))
    assert all(passed for *_, passed in made.values())
    return json.loads(json.dumps(made))


def environment() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(CHECKOUT)}


@pytest.mark.slow
@pytest.mark.parametrize(("first", "more"), [(60, 37), (200, 101)])
def test_killed_at_many_points(tmp_path, first, more):
    done = subprocess.run(
        [sys.executable, str(SCRIPT), str(tmp_path), str(first), str(more)],
        check=True,
        capture_output=True,
        env=environment(),
    )
    report = json.loads(done.stdout)
    assert report["exit"] == 0
    assert report["kills"] >= 3, report["kills"]
    assert report["made"] == report["undisturbed"]
    assert report["reused"] == 4
    assert report["work"] == []


def started(folder: Path, engine: str, **more: str) -> "subprocess.Popen[bytes]":
    """The steps in a process of their own."""
    code = (
        "from pathlib import Path; from tests.data import resuming; "
        f"resuming.run(resuming.settings(Path({str(folder)!r})), {engine!r})"
    )
    command = [sys.executable, "-c", code]
    return subprocess.Popen(command, env={**environment(), **more}, cwd=CHECKOUT)


def finished_shards(folder: Path) -> list[Path]:
    return list(folder.glob(f"root/**/.{WORK}-*/cleaned/0*/{MARKER}"))


def killed_after(process: "subprocess.Popen[bytes]", folder: Path, shards: int) -> None:
    """SIGKILL when so many shards are finished."""
    deadline = time.monotonic() + 120
    while len(finished_shards(folder)) < shards and process.poll() is None:
        assert time.monotonic() < deadline
        time.sleep(0.02)
    process.send_signal(signal.SIGKILL)
    assert process.wait() == -signal.SIGKILL


@pytest.mark.slow
@pytest.mark.parametrize("damaged", [False, True])
def test_killed_between_shards(tmp_path, undisturbed, damaged):
    killed_after(started(tmp_path, "local", **{resuming.SECONDS: "0.1"}), tmp_path, 3)
    finished = finished_shards(tmp_path)
    assert 3 <= len(finished) < 6
    if damaged:
        file = finished[0].with_name("samples.parquet")
        content = bytearray(file.read_bytes())
        content[len(content) // 2] ^= 1
        file.write_bytes(content)
    made, said = resuming.run(resuming.settings(tmp_path))
    kept = len(finished) - damaged
    assert f"{kept} of 6 shards are finished from before" in said
    assert json.loads(json.dumps(made)) == undisturbed
    assert list(tmp_path.glob("root/**/.work-*")) == []


@pytest.mark.slow
def test_ray_is_killed_and_this_process_goes_on(tmp_path, undisturbed):
    process = started(tmp_path, "ray", **{resuming.SECONDS: "0.2"})
    killed_after(process, tmp_path, 2)
    finished = len(finished_shards(tmp_path))
    made, said = resuming.run(resuming.settings(tmp_path))
    assert any("of 6 shards are finished from before" in line for line in said), finished
    assert json.loads(json.dumps(made)) == undisturbed


@pytest.mark.slow
def test_a_killed_worker_of_ray_is_replaced(tmp_path, undisturbed):
    flag = tmp_path / "killed"
    process = started(tmp_path, "ray", **{resuming.KILL: str(flag)})
    assert process.wait(timeout=300) == 0
    assert flag.exists()
    made, said = resuming.run(resuming.settings(tmp_path))
    assert sum("is there already" in line for line in said) == 4
    assert json.loads(json.dumps(made)) == undisturbed
