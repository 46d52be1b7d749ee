"""Runs on this machine: each gets a Ray cluster of its own, which is in `local_cluster`."""

import os
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path

from factory.control.answers import Ended
from factory.control.clocks import Clock
from factory.control.local_cluster import LocalCluster
from factory.control.sessions import SOCKET_ROOT, Sessions
from factory.errors import RunFailed
from factory.namespace import RunDirectory
from factory.settings import Settings
from factory.spec import Launch, RunSpec

DRIVER = (sys.executable, "-m", "factory.training")
LEAST_FREE_BYTES = 2**30


class LocalBackend:
    """Makes Ray clusters on this machine."""

    def __init__(
        self,
        settings: Settings,
        *,
        num_cpus: int | None = None,
        driver: Sequence[str] = DRIVER,
        socket_root: Path = SOCKET_ROOT,
    ) -> None:
        self._settings = settings
        self._num_cpus = num_cpus
        self._driver = tuple(driver)
        self._socket_root = socket_root
        self._sessions = Sessions(settings.state, socket_root=socket_root)

    @property
    def root(self) -> None:
        """The driver sees the namespace as it is seen here."""
        return None

    def adopted(self, spec: RunSpec) -> None:
        """Nothing: a cluster on this machine ends with the process that made it."""
        return

    def next_attempt(self) -> int:
        """The first, as far as is known here."""
        return 1

    def spent(self) -> dict[Clock, float]:
        """Nothing: no other process has begun the attempt."""
        return {}

    def history(self) -> list[Ended]:
        """Nothing."""
        return []

    def shown(self, attempt: int) -> dict[str, int]:
        """Nothing."""
        return {}

    def start(self, launch: Launch, run_directory: RunDirectory) -> LocalCluster:
        """Begin a cluster for that run, after a sweep of those whose owner is gone.

        Raises:
            RunFailed: this machine has no room, or its directories cannot be written.
        """
        if not run_directory.exists():
            raise RunFailed(f"{run_directory.path} is not there: open the run first.")
        self._sessions.sweep()
        free = shutil.disk_usage(self._socket_root).free
        if free < LEAST_FREE_BYTES:
            raise RunFailed(
                f"{self._socket_root} has {free / 2**30:.1f} GiB free; Ray needs "
                f"{LEAST_FREE_BYTES / 2**30:.0f} GiB there to start. Make room."
            )
        cluster = self._cluster(launch, run_directory)
        try:
            cluster.begin(
                num_cpus=max(self._num_cpus or os.cpu_count() or 1, launch.spec.workers),
                num_gpus=launch.spec.workers * launch.spec.gpus_per_worker,
            )
        except BaseException:
            cluster.stop(0.0)
            raise
        return cluster

    def _cluster(self, launch: Launch, run_directory: RunDirectory) -> LocalCluster:
        session = self._sessions.open(launch.run_id)
        try:
            return LocalCluster(
                settings=self._settings,
                sessions=self._sessions,
                session=session,
                run_directory=run_directory,
                driver=self._driver,
            )
        except BaseException:
            self._sessions.close(session)
            raise
