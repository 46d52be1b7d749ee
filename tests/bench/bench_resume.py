"""Runs that are killed with `kill -9` at random moments and go on, beside the same run left alone.

Most of them through a fork server that imports once, ten through Ray as a launch starts them. A run
counts if the loss, gradient norm and tokens of every step are equal to the last digit, and the hash
chain of every rank is equal at every step, also of steps that were trained twice.
"""

import contextlib
import os
import random
import shutil
import signal
import sys
import tempfile
import time
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import psutil

from factory.namespace import Namespace, RunDirectory
from factory.settings import Settings
from factory.spec import Launch
from tests.training.conftest import Drive, Site, documents, publish, ray_cluster
from tests.training.conftest import start as start_drive
from tests.training.forks import Forks
from tests.training.kills import (
    LAYOUTS,
    POINTS,
    Kill,
    Layout,
    Point,
    Start,
    Trace,
    killed_and_finished,
    left_alone,
)

THROUGH_FORKS, THROUGH_RAY = 90, 10
SEED = 20260501


@dataclass
class Tally:
    """What came of the runs of one way of starting them."""

    name: str
    runs: int = 0
    equal: int = 0
    kills: list[Kill] = field(default_factory=list)
    seconds: float = 0.0


def run() -> str:
    """The section of the page."""
    with tempfile.TemporaryDirectory(prefix="resume-") as folder:
        site = _site(Path(folder))
        forks = Tally("fork server")
        server = Forks(site.settings)
        with contextlib.closing(server):
            _measure(forks, THROUGH_FORKS, site, server.start)
        through_ray = Tally("Ray")
        with ray_cluster() as address, _drives(site, address) as start:
            _measure(through_ray, THROUGH_RAY, site, start)
        return _section([forks, through_ray])


def _site(base: Path) -> Site:
    (base / "namespace").mkdir()
    settings = Settings.from_environment(
        {"FACTORY_ROOT": str(base / "namespace"), "FACTORY_STATE": str(base / "state")}
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return Site(settings, publish(Namespace(settings.root), documents(12)))


def _measure(tally: Tally, runs: int, site: Site, start: Start) -> None:
    """Layouts and kill points in turn, so that each has its share of the runs."""
    chance = random.Random(f"{SEED} {tally.name}")
    began = time.monotonic()
    alone: dict[Layout, Trace] = {}
    for number in range(runs):
        layout = LAYOUTS[number % len(LAYOUTS)]
        first = POINTS[number // len(LAYOUTS) % len(POINTS)]
        points: list[Point] = [first, *chance.choices(POINTS, k=number % 2)]
        slug = tally.name.replace(" ", "-").lower()
        if layout not in alone:
            name = f"{slug}-alone-{LAYOUTS.index(layout)}"
            alone[layout] = left_alone(start, site.launch(name, **layout.spec), layout)
        launch = site.launch(f"{slug}-{number}", **layout.spec)
        found = killed_and_finished(start, launch, layout, points, chance)
        tally.runs += 1
        tally.kills += found.kills
        tally.equal += found.trace == alone[layout]
        if found.trace == alone[layout]:
            shutil.rmtree(site.namespace.run(launch.run_id).path / "checkpoints")
        print(f"{tally.name} {tally.runs}: {tally.equal} equal", file=sys.stderr)
    tally.seconds = time.monotonic() - began


@dataclass
class _Driven:
    """A driver through Ray, as the kills know one."""

    drive: Drive

    @property
    def launch(self) -> Launch:
        return self.drive.launch

    @property
    def run(self) -> RunDirectory:
        return self.drive.run

    @property
    def output(self) -> str:
        return self.drive.output

    @property
    def driver(self) -> int:
        return self.drive.process.pid

    def ranks(self) -> list[int]:
        with contextlib.suppress(AssertionError):
            return [self.drive.pid(rank) for rank in range(self.launch.spec.ranks)]
        return []

    def until(self, condition: Callable[[], bool]) -> bool:
        deadline = time.monotonic() + 300
        while not condition():
            if self.drive.process.poll() is not None:
                return condition()
            assert time.monotonic() < deadline, self.output
            time.sleep(0.005)
        return True

    def wait(self) -> int:
        code = self.drive.process.wait(400)
        deadline = time.monotonic() + 30
        while any(psutil.pid_exists(pid) for pid in self.ranks()):  # Ray ends them
            assert time.monotonic() < deadline, f"ranks of {self.launch.run_id} live on"
            time.sleep(0.05)
        return code


@contextlib.contextmanager
def _drives(site: Site, address: str) -> Iterator[Start]:
    started: list[Drive] = []

    def begin(launch: Launch) -> _Driven:
        started.append(start_drive(site, launch, address))
        return _Driven(started[-1])

    try:
        yield begin
    finally:
        for drive in started:
            if drive.process.poll() is None:
                os.killpg(drive.process.pid, signal.SIGKILL)
                drive.process.wait()


def _section(tallies: list[Tally]) -> str:
    lines = [
        "## Killed and resumed",
        "",
        "Runs of 16 steps on the `cpu` profile with a checkpoint every 4, killed with `kill -9`",
        "once or twice at a random moment and resumed, beside the same run left alone. Equal:",
        "loss, gradient norm and tokens of every step to the last digit, and the hash chain of",
        "every rank at every step. `mid-save` is a moment from a checkpoint's first file on;",
        "`torn` counts kills that left a checkpoint incomplete, of which none was loaded.",
        "",
        "| started by | runs | equal | kills | seconds a run |",
        "|---|---|---|---|---|",
    ]
    lines += [
        f"| {one.name} | {one.runs} | {one.equal} | {len(one.kills)} "
        f"| {one.seconds / max(1, one.runs):.1f} |"
        for one in tallies
    ]
    lines += [
        "",
        "| layout | killed | kills | torn | steps trained again: median (most) |",
        "|---|---|---|---|---|",
    ]
    kills = [kill for one in tallies for kill in one.kills]
    lines += list(_points(kills))
    return "\n".join(lines)


def _points(kills: list[Kill]) -> Iterator[str]:
    counted = Counter((kill.layout, kill.point) for kill in kills)
    for layout in LAYOUTS:
        for point in POINTS:
            some = [kill for kill in kills if (kill.layout, kill.point) == (layout, point)]
            if not some:
                continue
            lost = sorted(kill.step - kill.complete for kill in some)
            yield (
                f"| {layout} | {point} | {counted[layout, point]} "
                f"| {sum(kill.torn for kill in some)} | {lost[len(lost) // 2]} ({lost[-1]}) |"
            )
