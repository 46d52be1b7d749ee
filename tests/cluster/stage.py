"""Runs' clusters on a stage: pods are played, and each driver is a process that is real.

The dashboard has an address of its own and Ray's own port, which is what KubeRay's service leads
to. A driver gets what Pipes handed to the head's container or to its job, and writes into the
namespace.
"""

import atexit
import contextlib
import itertools
import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Generator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from dagster_pipes import decode_param, encode_param

from tests.cluster import nodes
from tests.cluster.api import Api, Object, Refused
from tests.cluster.dashboard import Dashboard, Job

PORT = 8265
_PASSING = (404, 409)
_ADDRESSES = itertools.count(os.getpid() % 2000 * 100)


@dataclass
class Stage:
    """What is played in one Kubernetes namespace; every head has the dashboard that is given."""

    admin: Api
    namespace: str
    code: str
    """Of the driver: Python."""
    told: Dashboard
    root: Path
    """The namespace, as driver and control plane see it."""
    play: Callable[["Stage", Object], bool] = field(default=lambda _stage, _pod: False)
    """For a pod that fares otherwise: true where it has played it."""
    drivers: dict[int, subprocess.Popen[bytes]] = field(
        default_factory=dict[int, subprocess.Popen[bytes]]
    )
    """By the number of their start."""
    heads: dict[str, Object] = field(default_factory=dict[str, Object])
    pouring: list[threading.Thread] = field(default_factory=list[threading.Thread])
    slow_deletion: bool = False
    """Pods that are told to end take their whole grace."""
    look_seconds: float = 0.1
    _started: dict[str, subprocess.Popen[bytes]] = field(
        default_factory=dict[str, subprocess.Popen[bytes]]
    )
    _errors: list[BaseException] = field(default_factory=list[BaseException])

    def pods(self) -> list[Object]:
        """The pods that are there."""
        return self.admin.items(f"/api/v1/namespaces/{self.namespace}/pods")

    def rayjobs(self) -> list[Object]:
        """The RayJobs that are there."""
        return self.admin.items(f"/apis/ray.io/v1/namespaces/{self.namespace}/rayjobs")

    def driver(self) -> subprocess.Popen[bytes]:
        """The driver that was started last."""
        return self.drivers[max(self.drivers)]

    def go(self, ended: threading.Event) -> None:
        """Play until the end."""
        while not ended.wait(self.look_seconds):
            try:
                self._once()
            except Refused as refused:
                if refused.answer.status not in _PASSING:
                    self._errors.append(refused)
            except OSError:  # the API server restarts
                continue

    def check(self) -> None:
        """Raise what went wrong on the stage itself."""
        if self._errors:
            raise self._errors[0]

    def _once(self) -> None:
        pods = self.pods()
        for pod in pods:
            self._play_pod(pod)
        there = {pod["metadata"]["uid"] for pod in pods}
        for uid in set(self.heads) - there:
            self._head_gone(uid)
        for job in list(self.told.jobs.values()):
            self._play_job(job)

    def _play_pod(self, pod: Object) -> None:
        ends = pod["metadata"].get("deletionTimestamp")
        if ends:
            if not self.slow_deletion or datetime.fromisoformat(ends) <= datetime.now(UTC):
                if pod["metadata"]["uid"] in self.heads:
                    self._head_gone(pod["metadata"]["uid"])
                nodes.finish_deletion(self.admin, pod)
            return
        if self.play(self, pod):
            return
        if pod["spec"].get("nodeName") and pod["status"]["phase"] == "Pending":
            head = pod["metadata"]["labels"].get("ray.io/node-type") == "head"
            if head:
                self.heads[pod["metadata"]["uid"]] = pod
            nodes.run(self.admin, pod, ip=self.told.address if head else "10.254.0.1")

    def _head_gone(self, uid: str) -> None:
        """What ran on it dies with it, and nobody knows of its jobs any more."""
        head = self.heads.pop(uid, None)
        if head is None:
            return
        for job_id in [one for one in self._started if _is_of(one, head)]:
            process = self._started.pop(job_id)
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        for job_id in [one for one in list(self.told.jobs) if _is_of(one, head)]:
            self.told.jobs.pop(job_id).log.ended = True

    def _play_job(self, job: Job) -> None:
        process = self._started.get(job.submission_id)
        if process is None:
            head = next(
                (one for one in list(self.heads.values()) if _is_of(job.submission_id, one)), None
            )
            if head is not None and job.status == "PENDING":
                self._started[job.submission_id] = self._start(job, head)
                job.status = "RUNNING"
            return
        stopping = self.told.stopping or set()
        if job.submission_id in stopping:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGTERM)
            stopping.discard(job.submission_id)
        code = process.poll()
        if code is not None and job.status == "RUNNING":
            job.exit_code = code
            stopped = job.submission_id in self.told.stopped
            job.status = "STOPPED" if stopped else "FAILED" if code else "SUCCEEDED"
            if job.status == "FAILED":
                shown = code if code > 0 else 128 - code
                job.message = f"Job entrypoint command failed with exit code {shown}, last logs"

    def _start(self, job: Job, head: Object) -> subprocess.Popen[bytes]:
        (container,) = (c for c in head["spec"]["containers"] if c["name"] == "ray-head")
        given = {one["name"]: one.get("value", "") for one in container["env"]} | job.environment
        handed = {
            name: self._mounted(text, given["FACTORY_ROOT"])
            for name, text in given.items()
            if name.startswith("DAGSTER_PIPES_")
        }
        process = subprocess.Popen(
            [sys.executable, "-c", self.code],
            env={**os.environ, **handed, "FACTORY_ROOT": str(self.root)},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        self.drivers[len(self.drivers) + 1] = process
        pouring = threading.Thread(target=_pour, args=(process, job), daemon=True)
        pouring.start()
        self.pouring.append(pouring)
        return process

    def _mounted(self, param: str, seen: str) -> str:
        """A parameter in which the paths of the pod lead to what is mounted there."""
        return encode_param(
            json.loads(json.dumps(decode_param(param)).replace(seen, str(self.root)))
        )


def _is_of(job_id: str, head: Object) -> bool:
    """KubeRay names job and cluster after the RayJob, each with an end of its own."""
    cluster: str = head["metadata"]["labels"]["ray.io/cluster"]
    return cluster.rpartition("-")[0] == job_id.rpartition("-")[0]


def _pour(process: subprocess.Popen[bytes], job: Job) -> None:
    """What the driver prints is in the log that the dashboard serves."""
    output = process.stdout
    while output is not None and (data := os.read(output.fileno(), 1 << 16)):
        job.log.data += data
    if output is not None:
        output.close()


@contextlib.contextmanager
def staged(stage: Stage) -> Generator[Stage]:
    """Play until the end of the block; no driver is left."""
    ended = threading.Event()
    thread = threading.Thread(target=stage.go, args=(ended,), daemon=True)
    thread.start()
    try:
        yield stage
    finally:
        ended.set()
        thread.join()
        for process in stage.drivers.values():
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        for pouring in stage.pouring:
            pouring.join()
    stage.check()


@contextlib.contextmanager
def an_address() -> Generator[str]:
    """An address of this machine's that is not its loopback's, and is given once; needs root.

    Whoever keeps a connection to the dashboard that had it before would go on asking that one. It
    stays until this process ends: what asks it later is refused at once, and does not wait.
    """
    number = next(_ADDRESSES)
    address = f"10.{number // 62500 % 4 + 250}.{number // 250 % 250 + 1}.{number % 250 + 1}"
    _ip("add", address)
    atexit.register(_ip, "del", address)
    yield address


def _ip(what: str, address: str) -> None:
    command = ["ip", "addr", what, f"{address}/32", "dev", "lo"]
    subprocess.run(command, check=False)
