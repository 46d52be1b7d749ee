"""What follows when a run loses its place or its head: a small function of what the run is for.

A probe measures idle nodes and is simply left out; a smoke test is tried once more; a training goes
back into its queue and resumes from its last checkpoint. Nothing else is repeated: a driver that
fails would fail again.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from factory.spec import Purpose

type Verdict = Literal["succeeded", "failed", "evicted", "lost", "cancelled", "gone"]
"""What an attempt came to. `gone` is the absence of one: only the run's messages can tell."""

type Action = Literal["skip", "retry", "resume", "end"]

SMOKE_RETRIES = 1

FROM_OUTSIDE = frozenset[Verdict]({"evicted", "lost"})
"""Ends that are no fault of the run: its place was taken, or a node lost."""


@dataclass(frozen=True)
class Ended:
    """One attempt that is over."""

    attempt: int
    verdict: Verdict
    reason: str


@dataclass(frozen=True)
class Answer:
    """What to do now."""

    action: Action
    words: str
    """For the run's page."""


def answer(purpose: Purpose, attempts: Sequence[Ended]) -> Answer:
    """What follows from the attempts of a run so far, the last of which has just ended."""
    if not attempts:
        return Answer("end", "There was no attempt.")
    last = attempts[-1]
    what = f"Attempt {last.attempt}: {last.reason}."
    if last.verdict not in FROM_OUTSIDE:
        return Answer("end", what)
    if purpose == "probe":
        return Answer("skip", f"{what} A probe is skipped; the next one is on its schedule.")
    if purpose == "training":
        return Answer(
            "resume",
            f"{what} Attempt {last.attempt + 1} waits in the queue and goes on from the last "
            "checkpoint.",
        )
    taken = sum(one.verdict in FROM_OUTSIDE for one in attempts)
    if taken <= SMOKE_RETRIES:
        return Answer("retry", f"{what} A smoke test is tried once more.")
    told = "; ".join(f"{one.attempt}: {one.reason}" for one in attempts)
    return Answer("end", f"A smoke test is tried twice, and both lost their place ({told}).")
