"""Which objects are orphans: every state of a run, labels that are missing, clocks that differ."""

from datetime import datetime, timedelta
from typing import Any

import pytest

from factory.control.kube.orphans import (
    GRACE,
    UNKNOWN,
    Fate,
    Findings,
    Judge,
    Known,
    Left,
    Orphan,
    orphans_among,
)
from tests.control.kube.an_orphan import MADE, OWNER, RUN, an_object

ROOT = "00000000-7a41-4c0e-9d3b-1a2b3c4d5e6f"
LATER = MADE + timedelta(hours=2)
LONG_AGO = MADE + timedelta(hours=1)
JUST_NOW = LATER - GRACE + timedelta(seconds=1)
ALIVE = Fate("started", None)


def ended(when: datetime, words: str = "failure") -> Fate:
    return Fate(words, when)


def found(one: Any, known: Known, now: datetime = LATER) -> Findings:
    return orphans_among([one], known, owner=OWNER, now=now, grace=GRACE)


def left(one: Any, known: Known, now: datetime = LATER) -> Left:
    judged = found(one, known, now)
    assert judged.orphans == ()
    ((kind, count),) = judged.left.items()
    assert count == 1
    return kind


def orphan(one: Any, known: Known, now: datetime = LATER) -> Orphan:
    (judged,) = found(one, known, now).orphans
    return judged


@pytest.mark.parametrize(
    ("known", "kind"),
    [
        ({RUN: ALIVE}, "alive"),
        ({RUN: ALIVE, ROOT: ended(LONG_AGO)}, "alive"),
        ({RUN: ended(LONG_AGO), ROOT: ALIVE}, "alive"),
        ({ROOT: ALIVE}, "alive"),
        ({RUN: ended(JUST_NOW), ROOT: ended(LONG_AGO)}, "young"),
        ({RUN: ended(LONG_AGO), ROOT: ended(JUST_NOW)}, "young"),
        ({RUN: ended(LATER + timedelta(hours=3)), ROOT: ended(LONG_AGO)}, "young"),
    ],
)
def test_what_a_run_or_its_root_still_needs_is_left(known: Known, kind: Left) -> None:
    assert left(an_object(root_run=ROOT), known) == kind


def test_an_ended_run_leaves_orphans_after_the_grace_time_since_its_end() -> None:
    known = {RUN: ended(LONG_AGO, "canceled")}
    one = orphan(an_object(), known, LONG_AGO + GRACE)
    assert (one.kind, one.name, one.run, one.since) == ("RayJob", "run-a", RUN, LONG_AGO)
    assert one.why == "its run has ended (canceled)"
    assert one.secret == f"{one.name}-token"
    assert not one.leaving
    assert left(an_object(), known, LONG_AGO + GRACE - timedelta(seconds=1)) == "young"


def test_the_age_of_what_no_run_is_known_for_begins_with_the_object() -> None:
    one = orphan(an_object(), {}, MADE + GRACE)
    assert (one.why, one.since) == (UNKNOWN, MADE)
    assert left(an_object(), {}, MADE + GRACE - timedelta(seconds=1)) == "young"
    assert left(an_object(), {"another": ended(LONG_AGO)}, MADE) == "young"


def test_an_unknown_run_of_a_known_root_has_both_times_behind_it() -> None:
    known = {ROOT: ended(MADE - timedelta(days=1))}
    assert orphan(an_object(root_run=ROOT), known).since == MADE
    known = {ROOT: ended(LONG_AGO)}
    one = orphan(an_object(root_run=ROOT), known)
    assert (one.since, one.why) == (LONG_AGO, "its run has ended (failure)")


def test_a_clock_that_is_ahead_keeps_what_is_unknown_and_not_what_has_ended() -> None:
    ahead = {"creationTimestamp": "2026-12-30T12:00:00Z"}
    assert left(an_object(metadata=ahead), {}) == "young"
    assert orphan(an_object(metadata=ahead), {RUN: ended(LONG_AGO)}).since == LONG_AGO


@pytest.mark.parametrize(
    ("changes", "kind"),
    [
        ({"managed_by": None}, "another's"),
        ({"managed_by": "helm"}, "another's"),
        ({"owner": None}, "another's"),
        ({"owner": ""}, "another's"),
        ({"owner": "that-dagster"}, "another's"),
        ({"run": None}, "unclear"),
        ({"run": None, "root_run": None}, "unclear"),
        ({"metadata": {"labels": None}}, "another's"),
        ({"metadata": {"labels": ["owner"]}}, "another's"),
        ({"metadata": {"uid": None}}, "unclear"),
        ({"metadata": {"name": 7}}, "unclear"),
        ({"metadata": {"creationTimestamp": None}}, "unclear"),
        ({"metadata": {"creationTimestamp": "yesterday"}}, "unclear"),
    ],
)
def test_what_does_not_say_enough_is_left_alone(changes: dict[str, Any], kind: Left) -> None:
    assert left(an_object(**changes), {}) == kind


def test_no_owner_owns_nothing() -> None:
    judged = orphans_among([an_object(owner="")], {}, owner="", now=LATER, grace=GRACE)
    assert judged.left == {"another's": 1}


def test_the_root_may_be_missing_and_the_time_too_where_an_end_is_known() -> None:
    known = {RUN: ended(LONG_AGO)}
    assert orphan(an_object(root_run=None), known).runs == {RUN}
    assert orphan(an_object(metadata={"creationTimestamp": None}), known).since == LONG_AGO


@pytest.mark.parametrize("one", [{}, {"metadata": None}, {"metadata": []}, {"kind": 3}])
def test_what_is_no_object_is_nobodys(one: Any) -> None:
    assert left(one, {RUN: ended(LONG_AGO)}) == "another's"


def test_what_is_leaving_already_is_shown_as_that() -> None:
    leaving = an_object(metadata={"deletionTimestamp": "2026-11-30T13:00:00Z"})
    assert orphan(leaving, {}).leaving


def test_dagster_is_asked_after_the_listing_and_only_of_our_runs() -> None:
    asked: list[Any] = []

    def known(runs: Any) -> Known:
        asked.append(set(runs))
        return {}

    judge = Judge(owner=OWNER, known=known, clock=lambda: LATER)
    listed = [an_object(root_run=ROOT), an_object(owner="that-dagster", run="theirs")]
    judged = judge.among(listed)
    assert asked == [{RUN, ROOT}]
    assert len(judged.orphans) == 1
    assert judge.among([]) == Findings()
    assert asked == [{RUN, ROOT}]


def test_what_was_left_alone_is_said_in_words() -> None:
    listed = [
        an_object(owner="that-dagster"),
        an_object("RayCluster", owner="that-dagster"),
        an_object(run=None),
        an_object(metadata={"creationTimestamp": f"{JUST_NOW:%Y-%m-%dT%H:%M:%SZ}"}),
    ]
    judged = orphans_among(listed, {}, owner=OWNER, now=LATER, grace=GRACE)
    assert judged.notes == [
        "1 object of runs that are over or unknown, for less than the grace time",
        "2 objects of another Dagster, or of nobody, left alone",
        "1 object left alone, because labels, uid or time do not say enough to judge",
    ]
    alive = orphans_among([an_object()], {RUN: ALIVE}, owner=OWNER, now=LATER, grace=GRACE)
    assert alive.notes == []


@pytest.mark.parametrize(
    ("changes", "goes"),
    [
        ({}, True),
        ({"owner": "that-dagster"}, False),
        ({"managed_by": None}, False),
        ({"run": ROOT}, False),
        ({"metadata": {"uid": ""}}, False),
    ],
)
def test_a_secret_goes_with_its_job_if_it_is_of_the_same_run(
    changes: dict[str, Any], goes: bool
) -> None:
    judge = Judge(owner=OWNER, known=lambda _: {}, clock=lambda: LATER)
    job = orphan(an_object(), {})
    secret = judge.going_with(an_object("Secret", "run-a-token", **changes), job)
    assert (secret is not None) == goes
    if secret is not None:
        assert (secret.kind, secret.name, secret.secret) == ("Secret", "run-a-token", "")
        assert secret.uid == "uid-of-Secret-run-a-token"
