"""Teardown that an interrupt cannot cut short. What is torn down is a `backend.RunCluster`."""

import threading
import time

from dagster import DagsterExecutionInterruptedError

from factory.control.backend import RunCluster

_INTERRUPTS = (KeyboardInterrupt, DagsterExecutionInterruptedError)


def stop(cluster: RunCluster, grace_seconds: float) -> None:
    """Stop a cluster and come back when nothing of it is left, whatever signals come meanwhile.

    The work is done in a thread, because signals are raised in the main one. An interrupt ends the
    grace, and is raised again at the end.

    Raises:
        RunFailed: something is left; of an interrupt it is the cause.
    """
    stopping = _Stopping(cluster)
    stopping.begin(grace_seconds)
    interrupt: BaseException | None = None
    while True:
        try:
            if not stopping.goes_on():
                break
            time.sleep(0.05)
        except _INTERRUPTS as error:
            interrupt = error
            stopping.begin(0.0)
    if interrupt is not None:
        raise interrupt from stopping.failure
    if stopping.failure is not None:
        raise stopping.failure


class _Stopping:
    def __init__(self, cluster: RunCluster) -> None:
        self._cluster = cluster
        self._threads: list[threading.Thread] = []
        self.failure: Exception | None = None

    def begin(self, grace_seconds: float) -> None:
        thread = threading.Thread(target=self._stop, args=(grace_seconds,))
        self._threads.append(thread)
        thread.start()

    def goes_on(self) -> bool:
        return any(thread.is_alive() for thread in self._threads)

    def _stop(self, grace_seconds: float) -> None:
        try:
            self._cluster.stop(grace_seconds)
        except Exception as error:
            self.failure = error
