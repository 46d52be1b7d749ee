"""The process of a run that `launch` started: `python -m factory.control.launched`.

It reads one `Request` from standard input, and writes `Message` lines to what standard output was
when it began; whatever else is printed goes to standard error. When standard input closes, the one
who asked is gone: the run is interrupted, which tears down what it started.
"""

import contextlib
import logging
import os
import signal
import sys
import threading
from collections.abc import Callable, Generator
from typing import IO, Any

import dagster as dg

from factory.control.abandoned import STAGING_AGE, end_abandoned_runs
from factory.control.adoption import left_alone, whose_chain_has
from factory.control.clusters import Kubernetes, cluster
from factory.control.execution import ASSET_JOB, Location, execute
from factory.control.going_on import refuse_while_going_on
from factory.control.instance import ensure
from factory.control.kube.chain import ADOPTS
from factory.control.kube.refusals import image_refusal
from factory.control.launch import LaunchResult, Message, Request
from factory.control.lineage import asset_key
from factory.control.nearest import naming
from factory.control.resuming import tags_of
from factory.control.selection import select
from factory.control.specs import check, with_sets
from factory.control.training import SPEC_METADATA
from factory.data.steps import Step
from factory.discovery import datasets
from factory.errors import FactoryError, SpecError
from factory.namespace import Namespace
from factory.namespace.specs import last_spec
from factory.settings import Settings
from factory.spec import RunSpec

type Progress = Callable[[str], None]

DAGSTERS_OWN = ("[pipes]", "Dependencies for step ")
"""How messages begin that Dagster writes about itself, one for each step after a failed one."""


def main() -> int:
    """Answer one request."""
    out = os.fdopen(os.dup(1), "w", encoding="utf-8", buffering=1)
    os.dup2(2, 1)

    def send(message: Message) -> None:
        with contextlib.suppress(BrokenPipeError):
            out.write(message.model_dump_json(exclude_none=True) + "\n")

    request = Request.model_validate_json(sys.stdin.readline())
    threading.Thread(target=_interrupt_at_end, args=(sys.stdin,), daemon=True).start()
    try:
        with _progress_to(lambda text: send(Message(progress=text))):
            result = answer(request, Settings.from_environment())
    except FactoryError as error:
        send(Message(error=(type(error).__name__, str(error))))
        return 1
    send(Message(result=result))
    return 0


def answer(request: Request, settings: Settings) -> LaunchResult:
    """Check the request against what exists, then run it to its end."""
    chosen = select(request.keys, datasets().values()) if request.kind == "assets" else []
    location = Location()  # takes seconds: after the names
    with ensure(settings) as instance:
        end_abandoned_runs(instance)
        Namespace(settings.root).sweep(STAGING_AGE)
        if request.kind == "job":
            return _job(request, location, instance, settings)
        if request.kind == "resume":
            return _resume(request, location, instance, settings)
        if request.kind == "follow":
            return _follow(request, location, instance)
        return _assets(request, chosen, location, instance)


def _job(
    request: Request, location: Location, instance: dg.DagsterInstance, settings: Settings
) -> LaunchResult:
    jobs = location.definition.get_all_jobs()
    known = {job.name: job for job in jobs if SPEC_METADATA in job.metadata}
    if request.job not in known:
        raise SpecError(f"No job {request.job!r} in definitions/jobs. {naming(request.job, known)}")
    base = RunSpec.model_validate(known[request.job].metadata[SPEC_METADATA].value)
    spec = _checked(with_sets(base, request.sets), settings)
    return execute(location, request.job, instance, run_config=spec.model_dump())


def _checked(spec: RunSpec, settings: Settings) -> RunSpec:
    """What can be known before Dagster begins: names, numbers, and whether there is an image."""
    spec = check(spec)
    where = cluster(spec.cluster)
    if isinstance(where, Kubernetes) and (problem := image_refusal(settings.image, where)):
        raise SpecError(problem)
    return spec


def _resume(
    request: Request, location: Location, instance: dg.DagsterInstance, settings: Settings
) -> LaunchResult:
    """The job of the run once more, with the run's own spec, tagged with what it goes on with."""
    run_id = request.run_id
    before = instance.get_run_by_id(run_id)
    if before is None:
        raise SpecError(
            f"Dagster knows no run {run_id}. `factory runs list` shows those in the namespace; "
            "one is resumed on the instance that launched it."
        )
    refuse_while_going_on(instance, run_id)
    last = last_spec(Namespace(settings.root).run(run_id))
    spec = _checked(with_sets(last, request.sets), settings)
    tags = tags_of(run_id, fresh_data=request.fresh_data, redistribute=request.redistribute)
    return execute(location, before.job_name, instance, run_config=spec.model_dump(), tags=tags)


def _follow(request: Request, location: Location, instance: dg.DagsterInstance) -> LaunchResult:
    """The job of the run once more, which takes up what goes on instead of beginning."""
    alone = left_alone(instance)
    run = whose_chain_has(instance, alone, request.run_id)
    if run is None:
        known = instance.get_run_by_id(request.run_id)
        names = {one.run_id: one for one in alone}
        said = f"has status {known.status.value}" if known else "is not known to this Dagster"
        raise SpecError(
            f"Run {request.run_id} {said}, and nothing of it goes on without a process that "
            f"follows it. {naming(request.run_id, names) if names else 'Nor does any other run.'}"
        )
    tags = {ADOPTS: run.run_id}
    return execute(location, run.job_name, instance, run_config=run.run_config, tags=tags)


def _assets(
    request: Request, chosen: list[Step], location: Location, instance: dg.DagsterInstance
) -> LaunchResult:
    from factory.control.assets import CONFIG, op_name

    if request.limit is not None and all(step.kind != "clean" for step in chosen):
        raise SpecError("limit applies to `clean`, which is not among the assets named.")
    ops = {
        op_name(step): {"config": _config(request, step.kind)}
        for step in chosen
        if step.kind in CONFIG
    }
    assets = [asset_key(step.key) for step in chosen]
    return execute(location, ASSET_JOB, instance, run_config={"ops": ops}, assets=assets)


def _config(request: Request, kind: str) -> dict[str, Any]:
    """What was asked for, as the launchpad would have it."""
    config: dict[str, Any] = {"engine": request.engine}
    if kind == "clean" and request.limit is not None:
        config["limit"] = request.limit
    return config


class _Console(logging.Logger):
    """Stands in for the logger that Dagster makes for the console: messages become progress."""

    progress: Progress

    def handle(self, record: logging.LogRecord) -> None:
        if self.name != "dagster":
            super().handle(record)
            return
        about: dict[str, Any] = getattr(record, "dagster_meta", {})
        event = about.get("dagster_event")
        text = str(about.get("orig_message") or record.getMessage())
        if event is None and record.levelno >= logging.INFO and not text.startswith(DAGSTERS_OWN):
            self.progress(text)
        elif event is not None and event.is_step_failure:
            self.progress(f"{(event.step_key or '').replace('__', '/')} failed")


@contextlib.contextmanager
def _progress_to(progress: Progress) -> Generator[None]:
    """Dagster asks logging for the class of its console logger; colored debug lines end here."""
    before = logging.getLoggerClass()
    logging.setLoggerClass(type("_Console", (_Console,), {"progress": staticmethod(progress)}))
    try:
        yield
    finally:
        logging.setLoggerClass(before)


def _interrupt_at_end(stdin: IO[str]) -> None:
    stdin.read()
    os.kill(os.getpid(), signal.SIGINT)


if __name__ == "__main__":
    sys.exit(main())
