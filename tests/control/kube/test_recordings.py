"""What a real KubeRay with KAI showed of gangs that wait, are reclaimed, or lose their head."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from factory.control.answers import Ended, answer
from factory.control.kube.fields import at
from factory.control.kube.observed import Listed, Observed, observe
from factory.control.kube.states import State, state_of
from factory.control.kube.waiting import why_it_waits
from tests.control.kube import made

BOTH = ("kuberay-1.5.1", "kuberay-1.6.2")

MOMENTS = [
    # moment, run, phase, verdict, words
    ("s2-a-probe-running", "probe1", "running", None, ""),
    ("s2-b-evicting", "probe1", "evicted", "evicted", "in favour of train1"),
    ("s2-b-evicting", "train1", "queued", None, "the pods there are still stopping"),
    ("s2-c-evicted", "probe1", "evicted", "evicted", "in favour of train1"),
    ("s2-c-evicted", "train1", "starting", None, "1 of 2 pods are ready"),
    ("s2-d-training-running", "probe1", "evicted", "evicted", "in favour of train1"),
    ("s2-d-training-running", "train1", "running", None, ""),
    ("s2-e-training-done", "probe1", "evicted", "evicted", "in favour of train1"),
    ("s2-e-training-done", "train1", "succeeded", "succeeded", ""),
    ("s2-f-after-ttl", "probe1", "evicted", "evicted", "in favour of train1"),
    ("s2-f-after-ttl", "train1", "succeeded", "succeeded", "its cluster is gone"),
    ("s3-a-running", "head1", "running", None, ""),
    ("s3-b-head-gone", "head1", "lost", "lost", "its head was lost"),
    ("s3-c-after-45s", "head1", "lost", "lost", "its head was lost"),
    ("s3-d-after-135s", "head1", "lost", "lost", "its head was lost"),
]


def look(recordings: Path, version: str, moment: str, of: str) -> Observed:
    """One run at a moment, as it is listed with the others, a second after the last event."""
    held = json.loads((recordings / version / f"{moment}.json").read_text())
    now = max(when for event in held["events"] if (when := at(event)))
    return observe(of, now, Listed(**held))


def said(state: State) -> tuple[str, str | None]:
    return state.phase, state.verdict


@pytest.mark.parametrize("version", BOTH)
@pytest.mark.parametrize(("moment", "of", "phase", "verdict", "words"), MOMENTS)
def test_each_moment(
    recordings: Path,
    version: str,
    moment: str,
    of: str,
    phase: str,
    verdict: str | None,
    words: str,
) -> None:
    state = state_of(look(recordings, version, moment, of))
    assert said(state) == (phase, verdict)
    assert words in state.reason


def test_a_gang_that_waits_whole_says_why(recordings: Path) -> None:
    waits = look(recordings, "kuberay-1.5.1", "s1-gang-pending", "big")
    state = state_of(waits)
    assert said(state) == ("queued", None)
    assert state.reason == (
        "queue training; 1 of 3 pods fits, short of GPUs (8 for each pod); waiting 9 s"
    )
    free = [made.queue(used="0", quota=16)]
    assert why_it_waits(waits, free) == (
        "queue training, 0 of 16 GPUs in use; 1 of 3 pods fits, short of 8 GPUs; waiting 9 s"
    )


def test_a_waiting_gang_that_was_deleted_left_nothing(recordings: Path) -> None:
    gone = look(recordings, "kuberay-1.5.1", "s1-after-delete", "big")
    assert not gone.anything_left


def test_a_head_that_comes_again_is_another_attempt_of_kuberay_1_6(recordings: Path) -> None:
    """Its job runs, `failed` is 0, and the id is the same: only the start tells."""
    before = look(recordings, BOTH[1], "s3-a-running", "head1")
    after = look(recordings, BOTH[1], "s3-d-after-135s", "head1")
    assert after.job_status == "RUNNING"
    blind = replace(after, pods=None, raycluster=None, events=(), seen=before.remembered())
    state = state_of(blind)
    assert said(state) == ("lost", "lost")
    assert "second time" in state.reason
    follows = answer("training", [Ended(1, "lost", state.reason)])
    assert (follows.action, "Attempt 2" in follows.words) == ("resume", True)


@pytest.mark.parametrize("version", BOTH)
def test_an_evicted_probe_is_skipped(recordings: Path, version: str) -> None:
    state = state_of(look(recordings, version, "s2-c-evicted", "probe1"))
    assert state.verdict == "evicted"
    assert answer("probe", [Ended(1, state.verdict, state.reason)]).action == "skip"


@pytest.mark.parametrize("version", BOTH)
def test_sidecar_mode_ends_an_evicted_job_as_failed_and_it_is_an_eviction(
    recordings: Path, version: str
) -> None:
    """The recorded eviction with the end that KubeRay writes down in that mode."""
    probe = look(recordings, version, "s2-c-evicted", "probe1")
    assert probe.rayjob is not None
    status = {
        **probe.rayjob["status"],
        "jobDeploymentStatus": "Failed",
        "jobStatus": "FAILED",
        "reason": "AppFailed",
        "endTime": probe.now.isoformat(),
    }
    ended = replace(probe, rayjob={**probe.rayjob, "status": status})
    assert state_of(ended).verdict == "evicted"
    before = {**status, "endTime": "2026-11-29T22:00:00Z"}
    assert state_of(replace(ended, rayjob={**probe.rayjob, "status": before})).verdict == "failed"


@pytest.mark.parametrize("version", BOTH)
def test_a_proxy_for_rays_objects_alone_never_ends_a_run_by_mistake(
    recordings: Path, version: str
) -> None:
    """Without pods, PodGroup and events a status of the proxy's stays unknown."""
    probe = look(recordings, version, "s2-c-evicted", "probe1")
    blind = replace(probe, pods=None, podgroup=None, events=(), raycluster=None)
    assert said(state_of(blind)) == ("unknown", None)
