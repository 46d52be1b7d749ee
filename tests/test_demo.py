"""The README's first command, as a person uses it: interrupted half-way, then called again."""

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil
import pytest

from factory.settings import CHECKOUT

pytestmark = pytest.mark.slow

LIMIT_SECONDS = 900


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    base = tmp_path_factory.mktemp("demo")
    (base / "root").mkdir()
    return {
        **os.environ,
        "FACTORY_ROOT": str(base / "root"),
        "FACTORY_STATE": str(base / "state"),
        "DAGSTER_HOME": str(base / "dagster"),
    }


@contextmanager
def demo(environment: dict[str, str]) -> Iterator["subprocess.Popen[str]"]:
    process = subprocess.Popen(
        [sys.executable, "-m", "factory", "demo"],
        env=environment,
        cwd=CHECKOUT,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    watchdog = threading.Timer(LIMIT_SECONDS, process.kill)
    watchdog.start()
    try:
        yield process
    finally:
        watchdog.cancel()
        process.kill()
        process.wait()


def of_this_site(environment: dict[str, str]) -> list[psutil.Process]:
    """Processes that were started for this site, whoever their parent is by now."""
    found: list[psutil.Process] = []
    for process in psutil.process_iter():
        try:
            if process.environ().get("FACTORY_ROOT") == environment["FACTORY_ROOT"]:
                found.append(process)
        except (psutil.NoSuchProcess, psutil.AccessDenied):
            continue
    return found


def test_interrupted_while_training_it_leaves_no_process(environment: dict[str, str]) -> None:
    with demo(environment) as process:
        assert process.stdout is not None
        said: list[str] = []
        for line in process.stdout:
            said.append(line)
            if "train: from step" in line:
                process.send_signal(signal.SIGINT)
        process.stdout.close()
        assert process.wait() == 130, "".join(said)
    assert any("call the command again" in line for line in said)
    assert of_this_site(environment) == []


def test_called_again_it_makes_nothing_twice_and_trains(environment: dict[str, str]) -> None:
    with demo(environment) as process:
        out, _ = process.communicate()
    assert process.returncode == 0, out
    assert "nothing to do" in out
    for expected in (
        "rows kept",
        "licence unclear",
        "tokens trained",
        "nats per token",
        "make dev",
    ):
        assert expected in out
    runs = list((Path(environment["FACTORY_ROOT"]) / "public" / "runs").glob("[!.]*"))
    complete = [run for run in runs if (run / "checkpoints/iter_0000080/complete.json").is_file()]
    assert len(runs) == 2
    assert len(complete) == 1
    assert of_this_site(environment) == []
