"""A copy of `definitions/` to change, loaded in a fresh process as Dagster would."""

import json
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import CHECKOUT

PROLOGUE = """
import json, sys, socket
def no_network(event, arguments):
    if event == "socket.connect" and arguments[1][0] not in ("127.0.0.1", "::1"):
        raise RuntimeError(f"loading opened a connection: {arguments[1]}")
sys.addaudithook(no_network)
from factory.control.code_location import defs
loaded = defs()
"""

KEYS = """
print(json.dumps(sorted(s.key.to_user_string() for s in loaded.resolve_all_asset_specs())))
"""


@dataclass(frozen=True)
class Copy:
    """A copy of the package `definitions`, which a child process imports instead of ours."""

    folder: Path

    def write(self, name: str, text: str) -> None:
        """Add or replace a file below `definitions/`."""
        file = self.folder / "definitions" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")

    def python(self, code: str, **environment: str) -> "subprocess.CompletedProcess[str]":
        """Run code after the code location has loaded."""
        return subprocess.run(
            [sys.executable, "-W", "error::UserWarning", "-c", PROLOGUE + code],
            env={**os.environ, "PYTHONPATH": str(self.folder), **environment},
            cwd=self.folder,
            capture_output=True,
            text=True,
            check=False,
        )

    def facts(self, code: str, **environment: str) -> Any:
        """What code prints as JSON in its last line."""
        done = self.python(code, **environment)
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout.splitlines()[-1])

    def error(self) -> str:
        """The message with which loading fails: what follows the class of the exception."""
        done = self.python("")
        assert done.returncode != 0, "the code location loaded"
        return done.stderr


@pytest.fixture
def definitions(tmp_path: Path) -> Copy:
    """A copy of the real `definitions/`."""
    shutil.copytree(
        CHECKOUT / "definitions",
        tmp_path / "definitions",
        ignore=shutil.ignore_patterns("__pycache__"),
    )
    return Copy(tmp_path)
