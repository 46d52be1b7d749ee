"""Deliveries in every format, to every end: afterwards no canary is outside of the private tree.

The ends: kept, rejected, raised on, taken out for an identifier; blocked, damaged, failed; killed
and gone on with, on both engines. Searched is every file but those of the drop zone and of the
private tree: Dagster's storage and logs, the public tree, this machine's state, temporary
directories, those of Ray, and what was printed. What the search finds is in `test_canaries.py`.
"""

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from factory.keys import private
from factory.namespace import Namespace
from factory.settings import CHECKOUT
from tests.deliveries import sign
from tests.leaks.canaries import WORD, holding, holds
from tests.leaks.partner import KILL, WAIT

pytestmark = pytest.mark.slow

RAY = Path("/tmp")  # noqa: S108  where the driver of Ray has its directories
RUN = "from tests.leaks.partner import main; main()"
REFUSED = ["blocked", "damaged", "refused_scans"]
WELL = ["talks", "tables", "packed", "columns", "texts", "patients", "photographs"]
WELL += ["scans", "allowed_scans"]
WELL_ON_RAY = ["talks_ray", "killed_ray", "allowed_scans_ray"]


@dataclass
class Site:
    """A site of its own, and what was seen while things ran on it."""

    base: Path
    done: set[str] = field(default_factory=set[str])
    codes: dict[str, int] = field(default_factory=dict[str, int])
    ray_holding: list[Path] = field(default_factory=list[Path])
    ray_directories: list[Path] = field(default_factory=list[Path])

    def partner(self, *arguments: str) -> "subprocess.Popen[bytes]":
        """Start a process of `partner`; what it prints is added to one file."""
        with (self.base / "printed.log").open("ab") as printed:
            return subprocess.Popen(
                [sys.executable, "-c", RUN, str(self.base), *arguments],
                env=self.environment,
                cwd=CHECKOUT,
                stdout=printed,
                stderr=printed,
                start_new_session=True,
            )

    def finished(self, *arguments: str) -> int:
        """Its return code when it has come to an end."""
        code = self.partner(*arguments).wait()
        lines = (self.base / "printed.log").read_text(errors="replace").splitlines()
        if lines and lines[-1].startswith("done"):
            self.done.update(lines[-1].split()[1:])
        return code

    def factory(self, *arguments: str) -> str:
        """What a command prints for whoever may read the tree."""
        done = subprocess.run(
            [sys.executable, "-m", "factory", *arguments],
            env=self.environment,
            cwd=CHECKOUT,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    @property
    def environment(self) -> dict[str, str]:
        return {
            **os.environ,
            "FACTORY_ROOT": str(self.base / "root"),
            "FACTORY_STATE": str(self.base / "state"),
            "DAGSTER_HOME": str(self.base / "dagster"),
            "FACTORY_DROPS": str(self.base / "drops"),
            "TMPDIR": str(self.base / "tmp"),
            KILL: str(self.base / "killed"),
            WAIT: str(self.base / "waiting"),
        }


def ray_directories() -> set[Path]:
    return set(RAY.glob("fy-data-*"))


def stop_in_the_middle(site: Site) -> None:
    """Kill a run and its Ray driver while a worker has a row in its hands; look what Ray has."""
    before = ray_directories()
    process = site.partner("run", "ray", "stopped_ray")
    deadline = time.monotonic() + 300
    while not (site.base / "waiting").exists():
        assert process.poll() is None, "it ended before it came to the row that waits"
        assert time.monotonic() < deadline
        time.sleep(0.2)
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    time.sleep(2)  # Ray's own processes end when their parent has
    site.ray_directories = sorted(ray_directories() - before)
    site.ray_holding = holding(*site.ray_directories)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    site = Site(tmp_path_factory.mktemp("partner"))
    (site.base / "tmp").mkdir()
    assert site.finished("deliver") == 0
    stop_in_the_middle(site)
    site.codes["local"] = site.finished("run", "local", "failing", *REFUSED, *WELL)
    site.codes["killed"] = site.finished("run", "local", "killed")
    site.codes["killed, again"] = site.finished("run", "local", "killed")
    (site.base / "killed").unlink()
    site.codes["ray"] = site.finished("run", "ray", "failing_ray", *WELL_ON_RAY)
    site.codes["tick"] = site.finished("tick")
    yield site
    for directory in ray_directories() & set(site.ray_directories):
        with contextlib.suppress(OSError):
            directory.rmdir()


def test_everything_came_to_its_end(site: Site) -> None:
    wanted = {"local": 0, "killed": -signal.SIGKILL, "killed, again": 0, "ray": 0, "tick": 0}
    assert site.codes == wanted
    assert site.done == {"killed", *WELL, *WELL_ON_RAY}
    assert (site.base / "killed").exists(), "a worker of Ray was killed too"


def test_the_canaries_are_where_they_may_be(site: Site) -> None:
    assert holding(site.base / "drops")
    steps = site.base / "root" / "private" / "runs"
    assert holding(steps), "what `clean` said is kept with the run"
    for name in ("talks", "talks_ray", "allowed_scans", "packed", "columns", "patients"):
        assert holding(site.base / "root" / "private" / "text" / name / "clean"), name


@pytest.mark.parametrize("place", ["root/public", "dagster", "state", "tmp"])
def test_no_canary_is_in(site: Site, place: str) -> None:
    assert holding(site.base / place) == []


def test_no_canary_was_printed(site: Site) -> None:
    printed = (site.base / "printed.log").read_bytes()
    assert b"RunRequest" in printed, "the sensor's answers are in it"
    assert not holds(printed)


def test_no_canary_is_in_what_ray_had_when_it_was_killed(site: Site) -> None:
    (directory,) = site.ray_directories
    assert site.ray_holding == []
    assert not directory.exists(), "the next one that starts a cluster removes it"


def test_nothing_of_a_blocked_or_damaged_delivery_is_published(site: Site) -> None:
    for name in REFUSED:
        folder = site.base / "root" / "private" / "text" / name
        assert not folder.exists() or [one for one in folder.rglob("*") if one.is_file()] == []
        assert holding(site.base / "drops" / name)


def test_what_the_statement_allows_reaches_the_samples(site: Site) -> None:
    namespace = Namespace(site.base / "root")
    for name, rows in (("allowed_scans", 6), ("allowed_scans_ray", 6), ("talks", 61)):
        version = namespace.current(private(f"text/{name}") / "clean")
        assert version is not None
        assert version.manifest.rows == rows, name


def test_a_file_with_a_private_element_stays_in_the_drop_zone(site: Site) -> None:
    files = site.base / "root" / "private" / "text" / "allowed_scans" / "raw"
    names = {path.name for path in files.rglob("*.dcm")}
    assert names == {f"us-{number}.dcm" for number in range(6)}


def test_differences_are_printed_and_written_nowhere(site: Site) -> None:
    (delivered,) = (site.base / "drops" / "talks").rglob("*.jsonl")
    rows = [json.loads(line) for line in delivered.read_text(encoding="utf-8").splitlines()]
    rows[3]["messages"][1]["content"] += f" {WORD}-changed"
    delivered.write_text("".join(f"{json.dumps(row, ensure_ascii=False)}\n" for row in rows[1:]))
    sign(site.base / "drops" / "talks")
    assert site.finished("run", "local", "talks") == 0
    printed = site.factory("diff", "private/text/talks/clean")
    assert "changed" in printed
    assert WORD in printed
    listed = [site.factory("gc", "--older-than", "0", "--keep", "1")]
    listed += [site.factory("versions", "private/text/talks/clean")]
    assert not any(holds(one.encode()) for one in listed)
    for place in ("root/public", "dagster", "state", "tmp"):
        if (site.base / place).exists():
            assert holding(site.base / place) == []
