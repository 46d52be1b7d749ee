"""Dagster's instance: its home directory with settings that suit a laptop, opened for use.

`make dev`, the command line and tests use the same. Where the home is says `factory.settings`.
"""

import fcntl
from pathlib import Path

import dagster as dg

from factory.errors import SettingsError
from factory.settings import Settings

CONFIGURATION = """\
# Written by factory.control.instance; changes made here are overwritten.
telemetry:
  enabled: false
nux:
  enabled: false
concurrency:
  runs:
    max_concurrent_runs: 4
run_retries:
  enabled: false
retention:
  schedule:
    purge_after_days: 30
  sensor:
    purge_after_days: 7
code_servers:
  local_startup_timeout: 180
"""


def ensure(settings: Settings) -> dg.DagsterInstance:
    """Open the instance of these settings, making its home on first use. A context manager.

    Raises:
        SettingsError: the home directory cannot be written.
    """
    home = settings.dagster_home
    try:
        home.mkdir(parents=True, exist_ok=True)
        with (home / "opening.lock").open("a") as alone:
            # Two that make the same databases at once are in each other's way.
            fcntl.flock(alone, fcntl.LOCK_EX)
            return _opened(home)
    except OSError as error:
        raise SettingsError(
            f"DAGSTER_HOME is {home}, which cannot be written ({error.strerror}). "
            "Set DAGSTER_HOME to a directory of yours."
        ) from error


def _opened(home: Path) -> dg.DagsterInstance:
    file = home / "dagster.yaml"
    if not file.is_file() or file.read_text(encoding="utf-8") != CONFIGURATION:
        file.write_text(CONFIGURATION, encoding="utf-8")
    return dg.DagsterInstance.from_config(str(home))
