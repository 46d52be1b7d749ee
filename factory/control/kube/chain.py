"""Chains: the Dagster runs that have followed one another over the same attempts.

A run takes up another that its process has left alone, as the tag `ADOPTS` says, or executes it
again. Where any of them is named, all of them are meant.
"""

from collections.abc import Iterator

import dagster as dg

ADOPTS = "factory/adopts"
"""Tag of a Dagster run: the run, left alone by its process, that it takes up."""

PARENT_TAG = "dagster/parent_run_id"
ROOT_TAG = "dagster/root_run_id"


def adopts(run: dg.DagsterRun) -> str:
    """The run that it was made to take up; empty if none.

    What is executed again from the UI has the tags of the run before, and was not made for that.
    """
    return "" if run.parent_run_id else run.tags.get(ADOPTS, "")


def root_of(instance: dg.DagsterInstance, run: dg.DagsterRun) -> str:
    """The run in which everything began that this one goes on with."""
    seen = {run.run_id}
    while True:
        before = instance.get_run_by_id(adopts(run) or run.root_run_id or "")
        if before is None or before.run_id in seen:
            return run.root_run_id or run.run_id
        seen.add(before.run_id)
        run = before


def chain(instance: dg.DagsterInstance, run_id: str) -> list[dg.RunRecord]:
    """The run, those before it and those after it, in the order in which Dagster made them."""
    found: dict[str, dg.RunRecord] = {}
    asked: set[str] = set()
    waiting = {run_id}
    while waiting:
        one = waiting.pop()
        asked.add(one)
        for record in _beside(instance, one):
            found[record.dagster_run.run_id] = record
            waiting |= _links(record.dagster_run) - asked
    return sorted(found.values(), key=lambda record: record.storage_id)


def _beside(instance: dg.DagsterInstance, run_id: str) -> Iterator[dg.RunRecord]:
    yield from instance.get_run_records(dg.RunsFilter(run_ids=[run_id]))
    for tag in (ADOPTS, PARENT_TAG, ROOT_TAG):
        yield from instance.get_run_records(dg.RunsFilter(tags={tag: run_id}))


def _links(run: dg.DagsterRun) -> set[str]:
    before = (adopts(run), run.parent_run_id, run.root_run_id)
    return {run.run_id, *(one for one in before if one)}
