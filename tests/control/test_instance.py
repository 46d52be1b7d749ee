"""Dagster's instance, opened by several at once."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.control.conftest import settings_in

OPEN = """
import sys
from pathlib import Path
from factory.control.instance import ensure
from tests.control.conftest import settings_in
folder = Path(sys.argv[1])
print("ready", flush=True)
sys.stdin.readline()
with ensure(settings_in(folder)) as instance:
    assert instance.get_runs() == []
"""


@pytest.mark.slow
def test_several_open_a_new_one_at_once(tmp_path: Path) -> None:
    settings_in(tmp_path)
    command = [sys.executable, "-c", OPEN, str(tmp_path)]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    several = [subprocess.Popen(command, text=True, **pipes) for _ in range(4)]
    for one in several:
        assert one.stdout is not None
        assert one.stdout.readline() == "ready\n"
    for one in several:
        assert one.stdin is not None
        one.stdin.write("\n")
        one.stdin.flush()
    for one in several:
        _, said = one.communicate(timeout=120)
        assert one.returncode == 0, said
