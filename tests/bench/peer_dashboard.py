"""What Ray's own client asks of a dashboard, beside a dashboard whose jobs are played.

Ray's log tail is a socket of its own kind: it reads the driver's log as Ray's agent does, with
Ray's own iterator over the file, and ends a moment after the job.
"""

import asyncio
import contextlib
import threading
from collections.abc import Generator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from factory.control.kube.submission import installed_ray
from tests.cluster.dashboard import Dashboard, Job

if TYPE_CHECKING:
    from aiohttp import web

PORT = 8266
SLEEP_SECONDS = 1.0
"""Of Ray's agent, at the end of a log."""
_ENDED = {"SUCCEEDED", "FAILED", "STOPPED"}


@contextlib.contextmanager
def rays_own(told: Dashboard) -> Generator[str]:
    """The address at which the jobs of that dashboard are told of, until the end of the block."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()
    runner = asyncio.run_coroutine_threadsafe(_serving(told), loop).result()
    try:
        yield f"http://{told.address}:{PORT}"
    finally:
        asyncio.run_coroutine_threadsafe(runner.cleanup(), loop).result()
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()


async def _serving(told: Dashboard) -> "web.AppRunner":
    from aiohttp import web

    async def tell_version(_: web.Request) -> web.StreamResponse:
        return web.json_response({"version": "4", "ray_version": installed_ray(), "ray_commit": ""})

    async def answer(request: web.Request) -> web.StreamResponse:
        status, said = told.answer(request.method, request.path, {})
        return web.json_response(said, status=status)

    async def tail(request: web.Request) -> web.StreamResponse:
        job = told.jobs.get(request.match_info["job"])
        if job is None:
            return web.Response(status=404, text="there is no such job")
        socket = web.WebSocketResponse()
        await socket.prepare(request)
        await _tail(job, socket)
        return socket

    app = web.Application()
    app.router.add_get("/api/version", tell_version)
    app.router.add_get("/api/jobs/{job}/logs/tail", tail)
    app.router.add_route("*", "/api/jobs/{job:.*}", answer)
    runner = web.AppRunner(app, shutdown_timeout=1.0)
    await runner.setup()
    await web.TCPSite(runner, told.address, PORT).start()
    return runner


async def _tail(job: Job, socket: "web.WebSocketResponse") -> None:
    from ray.dashboard.modules.job.utils import file_tail_iterator

    with TemporaryDirectory() as folder:
        file = Path(folder) / "driver.log"
        written = _append(file, job, 0)
        ended = False
        lines: Any
        async for lines in file_tail_iterator(str(file)):
            if job.log.ended:  # its head is gone
                return
            if lines is not None:
                await socket.send_str("".join(lines))
            elif ended:
                return
            else:
                ended = job.status in _ENDED
                await asyncio.sleep(SLEEP_SECONDS)
                written = _append(file, job, written)


def _append(file: Path, job: Job, written: int) -> int:
    data = job.log.data
    with file.open("ab") as log:
        log.write(data[written:])
    return len(data)
