"""Handles: what a process writes into Dagster's event log so that another can take a run up.

An attempt is on record before its RayJob is created, and its end before the RayJob is deleted. So
whoever comes after a process that was killed knows which attempt to look for, and never begins one
while another may still go on. Records are found by the run's root, which a run that is executed
again keeps, or through the tag `ADOPTS`.
"""

from collections import Counter
from collections.abc import Iterator

import dagster as dg
from dagster._core.events import EngineEventData
from pydantic import BaseModel, ValidationError

from factory.control.answers import Ended, Verdict
from factory.spec import Launch

ADOPTS = "factory/adopts"
"""Tag of a Dagster run: the run, left alone by its process, that it takes up."""

GOES_ON = "factory/goes_on"
"""Tag of a Dagster run: `true` while an attempt that it has begun, or taken up, has not ended."""

METADATA = "ai-factory/attempt"
ROOT_TAG = "dagster/root_run_id"

_PAGE = 1000
"""Entries of an event log that are read at once."""


class Handle(BaseModel, frozen=True, extra="forbid"):
    """One attempt as it was last known."""

    run_id: str
    """The Dagster run whose process wrote it."""
    root_run_id: str
    step_key: str
    launch: Launch
    name: str
    """Of its RayJob."""
    made: bool = False
    """Whether the RayJob was there: its absence then means that it was deleted."""
    raycluster: str = ""
    driver_started: str = ""
    """When Ray started the driver, in its own words: another time is another start."""
    submitted_at: float = 0.0
    """Seconds since the epoch."""
    ended: Verdict | None = None
    reason: str = ""


class Journal:
    """The attempts of one step, in the event logs of the runs that have executed it."""

    def __init__(self, instance: dg.DagsterInstance, run: dg.DagsterRun, step_key: str) -> None:
        self._instance = instance
        self._run = run
        self.run_id = run.run_id
        self.step_key = step_key
        self.root_run_id = root_of(instance, run)

    def record(self, handle: Handle, message: str, **metadata: dg.MetadataValue) -> None:
        """Write down how an attempt is, with a line for the run's page."""
        kept = dg.MetadataValue.json(handle.model_dump(mode="json"))
        self._instance.report_engine_event(
            message,
            dagster_run=self._run,
            engine_event_data=EngineEventData(metadata={**metadata, METADATA: kept}),
            step_key=self.step_key,
        )
        if handle.ended is None:
            self._instance.add_run_tags(self.run_id, {GOES_ON: "true"})
            return
        for run_id in self._runs():
            self._instance.add_run_tags(run_id, {GOES_ON: "false"})

    def last(self) -> Handle | None:
        """The record that was written last, of the latest attempt."""
        attempts = self._attempts()
        return attempts[max(attempts)] if attempts else None

    def is_told(self, handle: Handle) -> bool:
        """Whether what came of the attempt is on record as that of its Dagster run."""
        run = self._instance.get_run_by_id(handle.run_id)
        return run is not None and run.status == dg.DagsterRunStatus.SUCCESS

    def history(self) -> list[Ended]:
        """The attempts that have ended."""
        return [
            Ended(number, handle.ended, handle.reason)
            for number, handle in sorted(self._attempts().items())
            if handle.ended is not None
        ]

    def shown(self, attempt: int) -> Counter[str]:
        """The step's lines on its runs' pages since the attempt is on record, each how often."""
        begun = min(
            (
                at
                for run_id in self._runs()
                for at, handle in handles(self._instance, run_id, self.step_key)
                if handle.launch.attempt == attempt
            ),
            default=None,
        )
        if begun is None:
            return Counter()
        return Counter(
            entry.user_message
            for run_id in self._runs()
            for entry in _entries(self._instance, run_id)
            if entry.step_key == self.step_key and not entry.is_dagster_event
            if entry.timestamp >= begun
        )

    def _attempts(self) -> dict[int, Handle]:
        found: list[tuple[float, Handle]] = []
        for run_id in self._runs():
            found += handles(self._instance, run_id, self.step_key)
        return {
            handle.launch.attempt: handle for _, handle in sorted(found, key=lambda one: one[0])
        }

    def _runs(self) -> list[str]:
        family = self._instance.get_runs(dg.RunsFilter(tags={ROOT_TAG: self.root_run_id}))
        adopting = self._instance.get_runs(dg.RunsFilter(tags={ADOPTS: self.root_run_id}))
        here = [self.root_run_id, self._run.run_id]
        return list(dict.fromkeys(here + [run.run_id for run in (*family, *adopting)]))


def handles(
    instance: dg.DagsterInstance, run_id: str, step_key: str | None = None
) -> Iterator[tuple[float, Handle]]:
    """The records in one run's event log, with their times: of one step, or of all."""
    for entry in _entries(instance, run_id, dg.DagsterEventType.ENGINE_EVENT):
        if step_key not in (None, entry.step_key) or entry.dagster_event is None:
            continue
        kept = entry.dagster_event.engine_event_data.metadata.get(METADATA)
        if not isinstance(kept, dg.JsonMetadataValue):
            continue
        try:
            handle = Handle.model_validate(kept.data)
        except ValidationError:
            continue  # of another version of the factory, which another process has to follow
        yield entry.timestamp, handle


def root_of(instance: dg.DagsterInstance, run: dg.DagsterRun) -> str:
    """The run in which everything began that this one goes on with."""
    adopted = instance.get_run_by_id(run.tags.get(ADOPTS, ""))
    if adopted is not None:
        return root_of(instance, adopted)
    return run.root_run_id or run.run_id


def _entries(
    instance: dg.DagsterInstance, run_id: str, of_type: dg.DagsterEventType | None = None
) -> Iterator[dg.EventLogEntry]:
    """A run's event log; that of a long run does not fit into memory at once."""
    cursor: str | None = None
    while True:
        page = instance.get_records_for_run(run_id, cursor, of_type, limit=_PAGE)
        for record in page.records:
            yield record.event_log_entry
        if not page.has_more:
            return
        cursor = page.cursor
