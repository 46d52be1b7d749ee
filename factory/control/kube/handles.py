"""Handles: what a process writes into Dagster's event log so that another can take a run up.

An attempt is on record before its RayJob is created, and its end before the RayJob is deleted. So
whoever comes after a process that was killed knows which attempt to look for, and never begins one
while another may still go on. Which runs' records belong together is in `chain`.

Records have an order of their own, because clocks may be set back: that of the log within a run,
and that in which Dagster made the runs between them.
"""

from collections import Counter
from collections.abc import Iterator

import dagster as dg
from dagster._core.events import EngineEventData
from pydantic import BaseModel, ValidationError

from factory.control.abandoned import is_abandoned
from factory.control.answers import FROM_OUTSIDE, Ended, Verdict
from factory.control.kube.chain import chain, root_of
from factory.control.kube.fields import moment
from factory.spec import Launch

GOES_ON = "factory/goes_on"
"""Tag of a Dagster run: `true` while an attempt that it has begun, or taken up, goes on, or has an
end that nobody has acted on yet."""

METADATA = "ai-factory/attempt"

_NOTHING_FOLLOWS = frozenset[Verdict]({"failed", "cancelled"})
"""Ends that another process would only find again."""

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
        if handle.ended in _NOTHING_FOLLOWS:
            self.settle()
        else:
            self._instance.add_run_tags(self.run_id, {GOES_ON: "true"})

    def say(self, message: str) -> None:
        """Show a line on the run's page."""
        self._instance.report_engine_event(message, self._run, step_key=self.step_key)

    def take_up(self, handle: Handle) -> None:
        """Write down that this run follows that attempt from now on."""
        if handle.run_id != self.run_id:
            words = f"attempt {handle.launch.attempt} is taken up from run {handle.run_id}"
            self.record(handle.model_copy(update={"run_id": self.run_id}), words)

    def settle(self) -> None:
        """The last end is acted on: nothing of the chain goes on."""
        for run in self._runs():
            if run.tags.get(GOES_ON) == "true":
                self._instance.add_run_tags(run.run_id, {GOES_ON: "false"})

    def followed_by(self) -> str | None:
        """Another run of the chain that goes on, and follows it or was there to do so earlier."""
        earlier = True
        for run in self._runs():
            if run.run_id == self.run_id:
                earlier = False
            elif run.is_finished or is_abandoned(self._instance, run):
                continue
            elif earlier or has_followed(self._instance, run):
                return run.run_id
        return None

    def last(self) -> Handle | None:
        """The record that was written last, of the latest attempt."""
        attempts = self._attempts()
        return attempts[max(attempts)] if attempts else None

    def is_told(self, handle: Handle) -> bool:
        """Whether what came of the attempt is on record as that of its Dagster run."""
        run = self._instance.get_run_by_id(handle.run_id)
        if run is None:
            return False
        return run.status == dg.DagsterRunStatus.SUCCESS or run.tags.get(GOES_ON) == "false"

    def history(self) -> list[Ended]:
        """The attempts that have ended."""
        return [
            Ended(number, handle.ended, handle.reason)
            for number, handle in sorted(self._attempts().items())
            if handle.ended is not None
        ]

    def ran_seconds(self) -> float:
        """How long drivers have run in the attempts that lost their places, one after the other.

        Who executes a run again that has failed or was cancelled has the whole time anew.
        """
        ends: dict[int, tuple[Handle, float]] = {}
        for run in self._runs():
            for entry in _entries(self._instance, run.run_id, dg.DagsterEventType.ENGINE_EVENT):
                handle = _handle_in(entry) if entry.step_key == self.step_key else None
                if handle is not None and handle.ended is not None:
                    ends.setdefault(handle.launch.attempt, (handle, entry.timestamp))
        ran = 0.0
        for _, (handle, at) in sorted(ends.items()):
            started = moment({"at": handle.driver_started}, "at")
            if handle.ended not in FROM_OUTSIDE:
                ran = 0.0
            elif started is not None:
                ran += max(0.0, at - started.timestamp())
        return ran

    def shown(self, attempt: int) -> Counter[str]:
        """The step's lines on its runs' pages since the attempt is on record, each how often."""
        begun = False
        lines: Counter[str] = Counter()
        for run in self._runs():
            for entry in _entries(self._instance, run.run_id):
                if entry.step_key != self.step_key:
                    continue
                handle = _handle_in(entry)
                begun = begun or (handle is not None and handle.launch.attempt == attempt)
                if begun and not entry.is_dagster_event:
                    lines[entry.user_message] += 1
        return lines

    def _attempts(self) -> dict[int, Handle]:
        return {
            handle.launch.attempt: handle
            for run in self._runs()
            for handle in handles(self._instance, run.run_id, self.step_key)
        }

    def _runs(self) -> list[dg.DagsterRun]:
        return [record.dagster_run for record in chain(self._instance, self.run_id)]


def handles(
    instance: dg.DagsterInstance, run_id: str, step_key: str | None = None
) -> Iterator[Handle]:
    """The records in one run's event log, the oldest first: of one step, or of all."""
    for entry in _entries(instance, run_id, dg.DagsterEventType.ENGINE_EVENT):
        handle = _handle_in(entry) if step_key in (None, entry.step_key) else None
        if handle is not None:
            yield handle


def has_followed(instance: dg.DagsterInstance, run: dg.DagsterRun) -> bool:
    """Whether it has begun an attempt or taken one up; executed again, its tag may be a copy."""
    if GOES_ON not in run.tags:
        return False
    return not run.parent_run_id or next(handles(instance, run.run_id), None) is not None


def _handle_in(entry: dg.EventLogEntry) -> Handle | None:
    event = entry.dagster_event
    if event is None or event.event_type != dg.DagsterEventType.ENGINE_EVENT:
        return None
    kept = event.engine_event_data.metadata.get(METADATA)
    if not isinstance(kept, dg.JsonMetadataValue):
        return None
    try:
        return Handle.model_validate(kept.data)
    except ValidationError:
        return None  # of another version of the factory, which another process has to follow


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
