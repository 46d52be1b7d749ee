"""One reader of a Ray job's log, in a process of its own: ours, or dagster-ray's.

What a reader shows goes to its stdout, which is a file here. Arguments: reader, port of the
dashboard, token, job, number of its lines, that file, and the file for the result.
"""

import contextlib
import json
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from tests.bench.measured import measured

PATIENCE_SECONDS = 200.0
POLL_SECONDS = 0.2


def main(reader: str, *arguments: str) -> None:
    """Read the log to its end and write what it took."""
    port, token, job, lines, shown, result = arguments
    prepare = {"ours": _ours, "peer": _peer}[reader]
    with tempfile.TemporaryDirectory(prefix="log-") as folder:
        read = prepare(int(port), token, (job, int(lines)), Path(folder))
        out = Path(shown).open("w", encoding="utf-8", newline="")  # noqa: SIM115  closed below
        with out, contextlib.redirect_stdout(out):
            complete, found = measured(read)
    Path(result).write_text(json.dumps(found | {"complete": complete}), encoding="utf-8")


def _ours(port: int, token: str, job: tuple[str, int], folder: Path) -> Callable[[], bool]:
    from factory.control.kube.api import connect
    from factory.control.kube.dashboard import Dashboard
    from factory.control.kube.driver_log import DriverLog
    from factory.control.logs import Line, LineReader
    from factory.namespace import Namespace
    from tests.control.a_cluster import a_cluster

    template = f"http://127.0.0.1:{port}/{{cluster}}"
    cluster = a_cluster(ca=None, dashboard={"route": "template", "template": template})
    run = Namespace(folder).open_run("public", "run-1")
    api = connect(cluster)

    def show(found: list[Line]) -> int:
        sys.stdout.write("".join(f"{one.text}\n" if one.ends else one.text for one in found))
        return sum(one.ends for one in found)

    def read() -> bool:
        """Follow it to the last line, then fetch what is missing and show the rest."""
        name, left = job
        log = DriverLog(run, lambda: Dashboard(api, cluster, "", token), lambda: name)
        lines = LineReader(log)
        log.start()
        begun = time.monotonic()
        while left > 0 and time.monotonic() - begun < PATIENCE_SECONDS:
            found = lines.read()
            left -= show(found)
            if not found:
                time.sleep(POLL_SECONDS)
        complete = log.finish(PATIENCE_SECONDS)
        for last in lines.finish():
            show(last)
        return complete

    return read


def _peer(port: int, token: str, job: tuple[str, int], _: Path) -> Callable[[], bool]:
    from dagster_ray.core.pipes import PipesRayJobMessageReader
    from ray.job_submission import JobSubmissionClient  # noqa: F401  not to be counted

    reader = PipesRayJobMessageReader({"headers": {"Authorization": f"Bearer {token}"}})
    nothing = SimpleNamespace(debug=lambda _: None, warning=lambda _: None)
    handler: Any = SimpleNamespace(_context=SimpleNamespace(log=nothing))

    def read() -> bool:
        """Its own thread's work, until it says that it has completed."""
        extras = {"ray_address": f"http://127.0.0.1:{port}", "ray_job_id": job[0]}
        launched: Any = {"extras": extras}
        reader.on_launched(launched)
        threading.Thread(target=reader.handle_job_logs, args=(handler,), daemon=True).start()
        return reader.completed.wait(PATIENCE_SECONDS)

    return read


if __name__ == "__main__":
    main(*sys.argv[1:])
