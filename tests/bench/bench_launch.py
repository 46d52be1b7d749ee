"""Launch to first Pipes message: our local client beside dagster-ray's, both from nothing.

Each measurement is a process of its own. The clock starts when a Dagster op begins, with no Ray
anywhere, and stops when Dagster's Pipes handler has the first message of a driver that has
connected to its Ray cluster. The same driver runs on both sides; only the message writer differs.
"""

import contextlib
import json
import os
import shutil
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NoReturn

ROUNDS = 5
GOAL = 1.1

DRIVER = """
import os, sys
import ray
from dagster_pipes import PipesDefaultMessageWriter, open_dagster_pipes
ray.init(address=os.environ["RAY_ADDRESS"], log_to_driver=False)
if sys.argv[1] == "ours":
    from factory.training.messages import NamespaceMessageWriter
    writer = NamespaceMessageWriter()
else:
    writer = PipesDefaultMessageWriter()
with open_dagster_pipes(message_writer=writer) as pipes:
    pipes.report_custom_message("connected")
"""


class Clock:
    """Seconds from the start of the op to two moments."""

    def __init__(self) -> None:
        self.began = time.perf_counter()
        self.cluster: float | None = None
        self.message: float | None = None

    def cluster_is_up(self) -> None:
        self.cluster = time.perf_counter() - self.began

    def listen(self) -> None:
        """Note when Dagster's own handler, which both sides use, gets its first message."""
        from dagster import PipesMessageHandler

        handle = PipesMessageHandler.handle_message

        def noting(handler: PipesMessageHandler, message: Any) -> None:
            if self.message is None:
                self.message = time.perf_counter() - self.began
            handle(handler, message)

        PipesMessageHandler.handle_message = noting  # type: ignore[method-assign]


def run() -> str:
    """Alternate the two sides and put them into a table."""
    measured: dict[str, list[tuple[float, float]]] = {"ours": [], "peer": []}
    for number in range(ROUNDS):
        for side in ("ours", "peer") if number % 2 == 0 else ("peer", "ours"):
            out = subprocess.run(
                [sys.executable, "-m", "tests.bench.bench_launch", side],
                stdout=subprocess.PIPE,
                check=True,
                text=True,
                timeout=300,
            ).stdout
            measured[side].append(tuple(json.loads(out.splitlines()[-1])))
            print(f"{side}: {measured[side][-1]}", file=sys.stderr)
    return table(measured)


def table(measured: dict[str, list[tuple[float, float]]]) -> str:
    """The section of the page of benchmarks."""
    cluster, message = ({side: [m[i] for m in measured[side]] for side in measured} for i in (0, 1))
    ratio = statistics.median(message["ours"]) / statistics.median(message["peer"])
    rows = [
        ("until the cluster takes drivers", cluster),
        ("**until the first Pipes message**", message),
    ]
    lines = [
        "## Launch to first Pipes message",
        "",
        f"Median of {len(message['ours'])} rounds in turn (lowest to highest), in seconds. Ours is "
        "`FactoryPipesClient` on the local backend; the other side is a bare `ray start --head` "
        "with dashboard, then dagster-ray's `PipesRayJobClient`, which needs it to submit.",
        "",
        "| from the start of the op | ours | dagster-ray | ratio |",
        "|---|---|---|---|",
    ]
    for name, values in rows:
        ours, peer = values["ours"], values["peer"]
        share = statistics.median(ours) / statistics.median(peer)
        lines.append(f"| {name} | {_spread(ours)} | {_spread(peer)} | {share:.2f} |")
    verdict = "reached" if ratio <= GOAL else "**missed**"
    lines += ["", f"Goal: a ratio of at most {GOAL}; {verdict} with {ratio:.2f}."]
    return "\n".join(lines)


def _spread(values: list[float]) -> str:
    return f"{statistics.median(values):.1f} ({min(values):.1f} to {max(values):.1f})"


def measure(side: str) -> tuple[float, float]:
    """One launch, in this process."""
    import dagster as dg

    with tempfile.TemporaryDirectory(prefix="launch-") as folder, contextlib.ExitStack() as stack:
        driver = Path(folder) / "driver.py"
        driver.write_text(DRIVER)
        command = (sys.executable, str(driver), side)
        client = _ours if side == "ours" else _peer
        clocks: list[Clock] = []

        @dg.op
        def launch(context: dg.OpExecutionContext) -> None:
            clock = Clock()
            clock.listen()
            clocks.append(clock)
            client(context, command, Path(folder), clock, stack)

        @dg.job(executor_def=dg.in_process_executor)
        def job() -> None:
            launch()

        job.execute_in_process()
    [clock] = clocks
    assert clock.cluster is not None
    assert clock.message is not None
    return clock.cluster, clock.message


def _ours(
    context: Any, command: tuple[str, ...], folder: Path, clock: Clock, _: contextlib.ExitStack
) -> None:
    from factory.control.local import LocalBackend
    from factory.control.pipes import FactoryPipesClient
    from factory.namespace import Namespace
    from factory.settings import Settings
    from factory.spec import CodeIdentity, Launch, RunSpec

    (folder / "namespace").mkdir()
    names = {"FACTORY_ROOT": "namespace", "FACTORY_STATE": "state", "DAGSTER_HOME": "home"}
    settings = Settings.from_environment({k: str(folder / v) for k, v in names.items()})
    launch = Launch(
        run_id=context.run_id,
        attempt=1,
        classification="public",
        spec=RunSpec(recipe="none", mix="none"),
        profile="cpu",
        datasets={},
        image=None,
        code=CodeIdentity(commit=None, tree="", lock=""),
    )

    class Watched(LocalBackend):
        """Notes when the cluster is up."""

        def start(self, *arguments: Any) -> Any:
            cluster = super().start(*arguments)
            threading.Thread(target=self.watch, args=(cluster,), daemon=True).start()
            return cluster

        def watch(self, cluster: Any) -> None:
            while cluster.poll().waits:
                time.sleep(0.02)
            clock.cluster_is_up()

    run = Namespace(settings.root).open_run("public", context.run_id)
    FactoryPipesClient(settings, Watched(settings, driver=command)).run(
        context=context, launch=launch, run_directory=run
    )


def _peer(
    context: Any, command: tuple[str, ...], folder: Path, clock: Clock, stack: contextlib.ExitStack
) -> None:
    from dagster_ray.core.pipes import PipesRayJobClient

    address = stack.enter_context(_ray_start())
    clock.cluster_is_up()
    PipesRayJobClient(address=address).run(
        context=context, submit_job_params={"entrypoint": " ".join(command)}
    )


@contextlib.contextmanager
def _ray_start() -> Iterator[str]:
    """`ray start --head` as its users call it, on free ports so that it disturbs nobody."""
    folder = Path(tempfile.mkdtemp(prefix="peer-", dir="/tmp"))
    gcs, dashboard, client = _free_ports(3)
    arguments = {
        "port": gcs,
        "temp-dir": folder,
        "include-dashboard": "true",
        "dashboard-port": dashboard,
        "dashboard-agent-listen-port": 0,
        "ray-client-server-port": client,
        "min-worker-port": 0,
        "max-worker-port": 0,
    }
    started = subprocess.Popen(
        [
            Path(sys.executable).with_name("ray"),
            *("start", "--head", "--disable-usage-stats"),
            *(f"--{name}={value}" for name, value in arguments.items()),
        ],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        assert started.wait() == 0
        yield f"http://127.0.0.1:{dashboard}"
    finally:
        _end_session(started.pid)
        shutil.rmtree(folder, ignore_errors=True)


def _end_session(leader: int) -> None:
    """Kill every process of the Unix session that `ray start` led."""
    import psutil

    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error, ProcessLookupError):
            if os.getsid(process.pid) == leader:
                process.send_signal(signal.SIGKILL)


def _free_ports(count: int) -> list[int]:
    with contextlib.ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for each in sockets:
            each.bind(("127.0.0.1", 0))
        return [each.getsockname()[1] for each in sockets]


def main() -> NoReturn:
    """Measure one side and print it, or both in turn."""
    if len(sys.argv) > 1:
        print(json.dumps(measure(sys.argv[1])))
    else:
        print(run())
    sys.exit(0)


if __name__ == "__main__":
    main()
