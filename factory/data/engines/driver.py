"""The process that uses Ray: `python -m factory.data.engines.driver`, started by `ray`.

It reads requests from standard input and writes a line for each shard to what standard output was
when it began; whatever else is printed goes to standard error. It ends when the input does, and
with it the cluster that it started.
"""

import contextlib
import os
import shutil
import sys
import tempfile
import warnings
from collections.abc import Callable, Generator
from pathlib import Path
from typing import Any

from factory.data.engines import Work
from factory.data.engines.ray import read_request, unpickled
from factory.data.engines.reports import Reports
from factory.namespace.owner import read_owner, this_process
from factory.settings import ray_cluster

TEMPORARY = Path("/tmp")  # noqa: S108  Ray puts sockets below it, whose paths may have 107 bytes
PREFIX = "fy-data-"
OWNER = "owner.json"

RETRIES = 3
"""How often a shard is begun again whose worker died. Ray Data would never stop."""

OBJECT_STORE_BYTES = 100 * 2**20
"""Numbers of shards are all that passes through it."""


def main() -> None:
    """Answer requests until there are no more."""
    cpus = int(sys.argv[1]) or None
    out = os.fdopen(os.dup(1), "w", encoding="ascii", buffering=1)
    os.dup2(2, 1)

    def say(line: str) -> None:
        out.write(f"{line}\n")

    # Ray 2.60 has no other way to say how often a task is begun again, and warns of this one.
    warnings.filterwarnings("ignore", message="`ray_remote_args_fn` is deprecated")
    with contextlib.suppress(BrokenPipeError, KeyboardInterrupt), _connected(cpus):
        while (request := read_request(sys.stdin.buffer)) is not None:
            try:
                _do(*unpickled(request), say)
            except BrokenPipeError:
                raise
            except Exception as error:  # the text may quote what a worker printed
                say(f"failed {type(error).__name__}")


def _do(work: Work, numbers: list[int], reports: Reports, say: Callable[[str], None]) -> None:
    import ray.data

    items = [{"number": number} for number in numbers]
    shards = ray.data.from_items(items, override_num_blocks=len(items))

    def one(row: dict[str, Any]) -> dict[str, Any]:
        do_shard(work, int(row["number"]), reports)
        return row

    done: Any = shards.map(one, num_cpus=1, ray_remote_args_fn=_retried)
    for batch in done.iter_batches(prefetch_batches=0, batch_size=1, batch_format="pyarrow"):
        for number in batch.column("number").to_pylist():
            say(f"done {number}")


def do_shard(work: Work, number: int, reports: Reports) -> None:
    """In a worker: the work of one shard; nothing that it prints or raises leaves here."""
    counter = reports.counter(number)
    with reports.output(number):
        try:
            work(reports.shard(number), counter)
        except Exception as error:
            reports.failed(number, error)
        counter.flush()


def _retried() -> dict[str, Any]:
    return {"max_retries": RETRIES}


@contextlib.contextmanager
def _connected(cpus: int | None) -> Generator[None]:
    import logging

    import ray
    import ray.data

    quiet: dict[str, Any] = {"log_to_driver": False, "logging_level": logging.ERROR}
    context = ray.data.DataContext.get_current()
    context.enable_progress_bars = False
    context.print_on_execution_start = False
    logging.getLogger("ray.data").setLevel(logging.ERROR)
    if ray_cluster() is not None:
        ray.init(address=ray_cluster(), **quiet)
        try:
            yield
        finally:
            ray.shutdown()
        return
    with _temporary() as directory:
        ray.init(
            address="local",
            num_cpus=cpus,
            include_dashboard=False,
            object_store_memory=OBJECT_STORE_BYTES,
            _temp_dir=str(directory),
            **quiet,
        )
        try:
            yield
        finally:
            ray.shutdown()


@contextlib.contextmanager
def _temporary() -> Generator[Path]:
    """A directory for Ray's sockets and logs; also removes those of processes that were killed."""
    for old in TEMPORARY.glob(f"{PREFIX}*"):
        owner = read_owner(old / OWNER)
        if owner is not None and owner.is_gone():
            shutil.rmtree(old, ignore_errors=True)
    directory = Path(tempfile.mkdtemp(prefix=PREFIX, dir=TEMPORARY))
    try:
        (directory / OWNER).write_text(this_process().model_dump_json(), encoding="utf-8")
        yield directory
    finally:
        shutil.rmtree(directory, ignore_errors=True)


if __name__ == "__main__":
    main()
