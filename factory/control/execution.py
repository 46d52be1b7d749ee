"""Execute one Dagster run in this process, recorded as one that the UI launched would be.

Dagster's public `execute_job` records no code location, so the UI could neither link the run to
its job nor run it again. The run is therefore created as Dagster's own launcher does it, which
takes names that Dagster does not export; they are all in this file.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import dagster as dg
from dagster._core.definitions.reconstruct import ReconstructableJob, ReconstructableRepository
from dagster._core.events import DagsterEvent
from dagster._core.execution.api import execute_run
from dagster._core.execution.run_cancellation_thread import start_run_cancellation_thread
from dagster._core.remote_origin import RemoteJobOrigin, RemoteRepositoryOrigin
from dagster._core.workspace.load_target import get_origins_from_toml
from dagster_shared.error import SerializableErrorInfo

from factory import errors
from factory.control.abandoned import owner_tags
from factory.control.launch import LaunchResult
from factory.errors import SpecError
from factory.settings import CHECKOUT

ASSET_JOB = "__ASSET_JOB"
"""Dagster's own job that holds every asset."""

MODULE = "factory.control.code_location"


class Location:
    """The code location, loaded in this process."""

    def __init__(self) -> None:
        self._repository = ReconstructableRepository.for_module(MODULE, "defs", str(CHECKOUT))
        self.definition = self._repository.get_definition()

    def job(self, name: str) -> ReconstructableJob:
        """A job by its name."""
        return self._repository.get_reconstructable_job(name)

    def origin(self, job: str) -> RemoteJobOrigin:
        """What the UI knows the job by: the location that `pyproject.toml` names."""
        location = get_origins_from_toml(str(CHECKOUT / "pyproject.toml"))[0]
        return RemoteRepositoryOrigin(location, self.definition.name).get_job_origin(job)


def execute(
    location: Location,
    job_name: str,
    instance: dg.DagsterInstance,
    *,
    run_config: Mapping[str, Any],
    assets: Sequence[dg.AssetKey] = (),
    tags: Mapping[str, str] | None = None,
) -> LaunchResult:
    """Run a job, or a selection of assets, to its end."""
    job = location.job(job_name)
    selected = job.get_subset(asset_selection=frozenset(assets)) if assets else job
    try:
        run = instance.create_run_for_job(
            job_def=selected.get_definition(),
            run_config=run_config,
            tags={**(tags or {}), **owner_tags()},
            asset_selection=frozenset(assets) or None,
            remote_job_origin=location.origin(job_name),
            job_code_origin=job.get_python_origin(),
        )
    except dg.DagsterInvalidConfigError as error:
        raise SpecError(f"{job_name}: {error}") from error
    _, stop = start_run_cancellation_thread(instance, run.run_id)
    try:
        result = execute_run(job, run, instance)
    finally:
        stop.set()
    failures = _failures(result.all_events)
    if not result.success and not failures:
        failures = [event.message or "" for event in result.all_events if event.is_failure]
    return LaunchResult(run_id=run.run_id, success=result.success, failures=failures)


def _failures(events: Sequence[DagsterEvent]) -> list[str]:
    """What failed and why: each check by what it saw, each step by its error."""
    checks = [
        event.asset_check_evaluation_data
        for event in events
        if event.event_type is dg.DagsterEventType.ASSET_CHECK_EVALUATION
    ]
    said = [
        f"{check.asset_key.to_user_string()}: check {check.check_name} failed: {check.description}"
        for check in checks
        if not check.passed
    ]
    steps = [event for event in events if event.is_step_failure]
    return said + [_failure(event) for event in steps if not (said and _is_failed_check(event))]


def _is_failed_check(event: DagsterEvent) -> bool:
    error = event.step_failure_data.error
    return error is not None and error.cls_name == "DagsterAssetCheckFailedError"


def _failure(event: DagsterEvent) -> str:
    error = event.step_failure_data.error
    where = (event.step_key or "").replace("__", "/")
    return f"{where}: {_innermost(error) if error else event.message}"


def _innermost(error: SerializableErrorInfo) -> str:
    """The error that was raised on purpose; else the one that everything began with."""
    while error.cause is not None and not _is_ours(error):
        error = error.cause
    _, _, message = error.message.strip().partition(": ")
    return message or error.message.strip()


def _is_ours(error: SerializableErrorInfo) -> bool:
    kind = getattr(errors, error.cls_name or "", None)
    return isinstance(kind, type) and issubclass(kind, errors.FactoryError)
