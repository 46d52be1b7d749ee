"""The record of one attempt: what another process would have to know, as soon as it is known."""

import time
from dataclasses import replace

import dagster as dg

from factory.control.answers import Verdict
from factory.control.kube.handles import Handle, Journal
from factory.control.kube.observed import Seen
from factory.control.kube.states import State
from factory.control.kube.submission import Submission


class Record:
    """One attempt in the event log. What is not new is not written again."""

    def __init__(self, journal: Journal, submission: Submission, before: Handle | None) -> None:
        """`before` is the last word of a process that began the same attempt."""
        self._journal = journal
        self._submission = submission
        self._last = before

    @property
    def seen(self) -> Seen:
        """What was on record before the first look."""
        kept = self._last
        if kept is None:
            return Seen()
        return Seen(
            existed=kept.made,
            cluster=kept.raycluster,
            driver_started=kept.driver_started,
            verdict=kept.ended,
            reason=kept.reason,
        )

    @property
    def begun(self) -> bool:
        """Whether the attempt is on record."""
        return self._last is not None

    @property
    def ended(self) -> bool:
        """Whether its end is."""
        return self._last is not None and self._last.ended is not None

    def begin(self) -> None:
        """It is about to be submitted."""
        attempt = self._submission.launch.attempt
        if not self.begun:
            self._write(Seen(), f"attempt {attempt} is submitted as {self._submission.name}")

    def made(self, seen: Seen) -> None:
        """Its RayJob is there."""
        cluster = self._submission.cluster.name
        self._write(seen, f"RayJob {self._submission.name} is on cluster {cluster}")

    def note(self, seen: Seen, found: State, nodes: list[str]) -> None:
        """What a look has shown."""
        kept = self._last
        if kept is None:
            return
        if seen.driver_started and not kept.driver_started:
            where = ", ".join(nodes)
            self._write(seen, f"its driver runs on {where}", nodes=where)
        elif seen.cluster and not kept.raycluster:
            self._write(seen, f"KubeRay has made its cluster {seen.cluster}")
        if found.verdict is not None and kept.ended is None:
            attempt = self._submission.launch.attempt
            words = f"attempt {attempt} has ended: {found.verdict}"
            self.end(seen, found.verdict, found.reason, words)

    def end(self, seen: Seen, verdict: Verdict, reason: str, words: str) -> None:
        """How it ended, before anything of it is removed."""
        self._write(replace(seen, verdict=verdict, reason=reason), words)

    def say(self, words: str) -> None:
        """Show a line on the run's page that says nothing of where the attempt is."""
        self._journal.say(words)

    def _write(self, seen: Seen, words: str, **facts: str) -> None:
        submission = self._submission
        self._last = Handle(
            run_id=self._journal.run_id,
            root_run_id=submission.root_run_id,
            step_key=submission.step_key,
            launch=submission.launch,
            name=submission.name,
            made=seen.existed,
            raycluster=seen.cluster,
            driver_started=seen.driver_started,
            submitted_at=self._last.submitted_at if self._last else time.time(),
            ended=seen.verdict,
            reason=seen.reason,
        )
        cluster = submission.cluster
        facts |= {
            "cluster": cluster.name,
            "attempt": str(submission.launch.attempt),
            "image": submission.launch.image or "",
        }
        shown: dict[str, dg.MetadataValue] = {
            name: dg.MetadataValue.text(text) for name, text in facts.items() if text
        }
        if seen.cluster:
            address = cluster.dashboard_address(seen.cluster)
            shown["Ray dashboard"] = dg.MetadataValue.url(address)
        self._journal.record(self._last, words, **shown)
