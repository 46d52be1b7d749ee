"""A launch under way, from before it begins to its end, wherever its pods run.

Its driver says numbered lines and messages, a few before it may go on and the rest at once. What it
said lies in the namespace, whatever anybody has read of it; `reckoning` counts what came of that.
"""

import subprocess
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Protocol

import dagster as dg

from factory.control.kube.chain import ADOPTS
from tests.cluster.api import Api, Object
from tests.cluster.launching import until

NUMBERS, BEFORE = 24, 8


class Launches(Protocol):
    """A client of clusters."""

    @property
    def instance(self) -> dg.DagsterInstance:
        """Dagster's."""
        ...

    def launch(self, tags: Mapping[str, str] | None = None) -> object:
        """Run to the end, with those tags."""
        ...

    def command(self) -> list[str]:
        """Does it in a process of its own."""
        ...


@dataclass(kw_only=True)
class UnderWay(ABC):
    """One launch, and the moments of it that can be waited for."""

    launcher: Launches
    admin: Api
    namespace: str
    """Of Kubernetes; nothing else is in it."""
    root: Path
    """Of the launch's own namespace."""
    random: Random
    moment_seconds: float = 90.0
    end_seconds: float = 120.0
    outcomes: list[object] = field(default_factory=list[object])
    _threads: list[threading.Thread] = field(default_factory=list[threading.Thread])
    _process: subprocess.Popen[bytes] | None = None
    _before: frozenset[str] = frozenset()

    def __post_init__(self) -> None:
        self._before = frozenset(run.run_id for run in self.instance.get_runs())

    @property
    def instance(self) -> dg.DagsterInstance:
        """Dagster's."""
        return self.launcher.instance

    def launch(self, *, adopts: str = "") -> None:
        """Begin, or take up what another process has left."""
        tags = {ADOPTS: adopts} if adopts else {}
        thread = threading.Thread(target=lambda: self.outcomes.append(self.launcher.launch(tags)))
        self._threads.append(thread)
        thread.start()

    def launch_elsewhere(self) -> subprocess.Popen[bytes]:
        """Begin in a process that can be killed."""
        log = (self.root / "elsewhere.log").open("wb")
        with log:
            self._process = subprocess.Popen(
                self.launcher.command(), stdout=log, stderr=subprocess.STDOUT
            )
        return self._process

    def runs(self) -> list[dg.DagsterRun]:
        """The Dagster runs of this launch, the newest first."""
        return [run for run in self.instance.get_runs() if run.run_id not in self._before]

    def end(self) -> None:
        """Wait until it has ended, or patience has."""
        for thread in self._threads:
            thread.join(self.end_seconds)

    def close(self) -> None:
        """Nothing of it goes on."""
        self.go()
        if self._process is not None:
            self._process.kill()
            self._process.wait()
        for run in self.runs():
            if not run.is_finished:
                self.instance.report_run_canceling(run)
        for thread in self._threads:
            thread.join(self.end_seconds)

    @property
    def where_told(self) -> Path:
        """Where the driver looks for the word to go on."""
        return self.root

    # Moments.

    def until(self, look: Callable[[], object], seconds: float | None = None) -> None:
        """Wait for a moment of the launch, which may be over before."""
        until(lambda: look() or self._is_over(), seconds or self.moment_seconds)

    def submitted(self) -> bool:
        """Its RayJob is there."""
        return bool(self.rayjobs())

    def has_pods(self) -> bool:
        """Its pods are there."""
        return len(self.pods()) == 2

    def speaks(self) -> bool:
        """Its driver has said all that it may say before it goes on."""
        return any(len(lines) > BEFORE for lines in self.said().values())

    @abstractmethod
    def has_ended(self) -> bool:
        """Its driver has ended."""

    def is_complete(self) -> bool:
        """KubeRay says so."""
        return any(
            job.get("status", {}).get("jobDeploymentStatus") == "Complete" for job in self.rayjobs()
        )

    def go(self) -> None:
        """Let the driver go on to its end."""
        (self.where_told / "go").touch()

    def pause(self, shortest: float, longest: float) -> None:
        """Some time."""
        time.sleep(self.random.uniform(shortest, longest))

    def _is_over(self) -> bool:
        threads = bool(self._threads) and not any(one.is_alive() for one in self._threads)
        return threads and (self._process is None or self._process.poll() is not None)

    # What is there.

    def pods(self) -> list[Object]:
        """The pods that are there."""
        return self.admin.items(f"/api/v1/namespaces/{self.namespace}/pods")

    def rayjobs(self) -> list[Object]:
        """The RayJobs that are there."""
        return self.admin.items(f"/apis/ray.io/v1/namespaces/{self.namespace}/rayjobs")

    def said(self) -> dict[str, list[str]]:
        """What each driver has printed, by its name."""
        return {
            path.name.removeprefix("said-"): path.read_text().splitlines()
            for path in self.root.rglob("said-*")
        }

    @abstractmethod
    def drivers(self) -> int:
        """How many were started."""

    @abstractmethod
    def died_with_their_heads(self) -> set[str]:
        """The names of those whose last lines nobody can ask for any more."""
