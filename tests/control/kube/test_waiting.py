"""Why an attempt waits, in words."""

from dataclasses import replace
from datetime import timedelta

import pytest

from factory.control.kube.observed import Observed
from factory.control.kube.states import state_of
from factory.control.kube.waiting import has_place, lasting, why_it_starts, why_it_waits
from tests.control.kube import made

ONE_FITS = (
    "Resources were found for 1 pods from all sub-groups while sub-group w requires 2 pods for "
    "gang scheduling. Additional pods cannot be scheduled in this sub-group due to: no nodes with "
    "enough resources were found: 2 node(s) didn't have enough resources: GPUs."
)
NONE_FITS = (
    "Resources were not found for pod ray/x due to: no nodes with enough resources were found: "
    "2 node(s) didn't have enough resources: GPUs."
)


def waits(*messages: str, pods: list | None = None, gpus: str = "12", **more) -> Observed:
    given = {
        "podgroup": made.podgroup(*messages, gpus=gpus),
        "raycluster": made.raycluster(ready_before=None),
        **more,
    }
    pods = made.pending_gang() if pods is None else pods
    for one in pods:
        limits = {"nvidia.com/gpu": "4"}
        one["spec"]["containers"] = [{"name": "ray", "resources": {"limits": limits}}]
    return made.observed(made.rayjob("Initializing", ""), pods, **given)


def test_the_whole_sentence() -> None:
    assert why_it_waits(waits(ONE_FITS), [made.queue("other"), made.queue()]) == (
        "queue training, 12 of 16 GPUs in use; 1 of 3 pods fits, short of 8 GPUs; waiting 4 min"
    )


@pytest.mark.parametrize(
    ("queue", "words"),
    [
        (made.queue(used="0", quota=0, limit=8), "queue training, 0 of 8 GPUs in use; "),
        (made.queue(quota=0), "queue training, 12 GPUs in use; "),
        (made.queue(quota=-1), "queue training, 12 GPUs in use; "),
        (made.queue(used="3500m", quota=8), "queue training, 3.5 of 8 GPUs in use; "),
        (made.queue(used="many"), "queue training, 0 of 16 GPUs in use; "),
        (made.queue("other"), "queue training, which this cluster does not have; "),
    ],
)
def test_what_is_said_of_a_queue(queue: dict, words: str) -> None:
    assert why_it_waits(waits(ONE_FITS), [queue]).startswith(words)


def test_how_much_is_missing_is_said_only_where_it_is_known() -> None:
    assert "short of GPUs (4 for each pod); " in why_it_waits(waits(ONE_FITS))
    free = [made.queue(used="0", quota=64)]  # the queue has room, the nodes do not
    assert "short of GPUs (4 for each pod); " in why_it_waits(waits(ONE_FITS), free)
    assert "0 of 3 pods fit, short of 12 GPUs; " in why_it_waits(
        waits(NONE_FITS), [made.queue(used="16")]
    )


def test_what_is_asked_for_is_counted_from_the_pods_where_kai_has_not_told() -> None:
    waiting = waits(ONE_FITS)
    group = made.podgroup(ONE_FITS)
    del group["status"]["resourcesStatus"]
    said = why_it_waits(replace(waiting, podgroup=group), [made.queue(used="14")])
    assert "short of 8 GPUs" in said  # 12 of which 2 are free, but no more than two pods of 4


def test_a_scheduler_that_is_not_kais() -> None:
    said = "0/3 nodes are available: 3 Insufficient nvidia.com/gpu."
    pods = [made.pod("head"), made.pending("worker", 1, said), made.pending("worker", 2, said)]
    job = made.rayjob("Initializing", "")
    job["metadata"]["labels"] = {}
    waiting = replace(waits(pods=pods), rayjob=job, podgroup=None)
    assert why_it_waits(waiting) == (
        "1 of 3 pods fits, short of GPUs (4 for each pod); waiting 4 min"
    )
    of_memory = made.pending_gang("0/3 nodes are available: 3 Insufficient memory.")
    assert "0 of 3 pods fit, short of memory" in why_it_waits(replace(waiting, pods=of_memory))


def test_other_words_of_the_scheduler_are_repeated() -> None:
    said = "NonPreemptibleOverQuota: Workload requested 1 GPUs, but training quota is 1 GPUs..\n"
    assert "NonPreemptibleOverQuota: Workload requested" in why_it_waits(waits(said))
    assert len(why_it_waits(waits("no " * 1000))) < 400


def test_a_place_that_is_being_cleared() -> None:
    pods = made.pending_gang()
    kept = [
        made.event(
            "Pipelined", f"Pod ray/x was pipelined to node n{n}", about=one["metadata"]["name"]
        )
        for n, one in enumerate(pods)
    ]
    waiting = replace(waits(pods=pods), events=kept)
    assert "its place on n0, n1, n2 is being cleared" in why_it_waits(waiting)
    later = made.event("Unschedulable", "no", about=pods[1]["metadata"]["name"], before=5)
    assert "cleared" not in why_it_waits(replace(waiting, events=[*kept, later]))
    assert "cleared" not in why_it_waits(replace(waiting, events=kept[:2]))


def test_before_there_are_pods() -> None:
    new = made.observed(made.rayjob("", ""), [], raycluster=None, podgroup=None)
    job = made.rayjob("", "")
    job["metadata"]["creationTimestamp"] = made.at(59)
    assert "KubeRay has not taken it up yet; waiting 59 s" in why_it_waits(replace(new, rayjob=job))
    assert "only the operator's log says" in why_it_waits(new)
    taken = replace(waits(pods=[]), podgroup=None)
    assert "KubeRay has still to make 3 of 3 pods" in why_it_waits(taken)
    ungrouped = replace(waits(), podgroup=None)
    assert "KAI has not made a gang of its pods yet" in why_it_waits(ungrouped)
    assert "0 of 3 pods have a place" in why_it_waits(waits())


def test_pods_that_may_not_be_made() -> None:
    told = "pods is forbidden: exceeded quota: gpus"
    refused = made.event("FailedToCreateWorkerPod", told, "RayCluster", made.CLUSTER, before=20)
    made_later = made.event("CreatedWorkerPod", "Created", "RayCluster", made.CLUSTER, before=10)
    waiting = replace(waits(pods=[]), events=[refused])
    assert f"its pods cannot be made: {told}" in why_it_waits(waiting)
    assert "cannot be made" not in why_it_waits(replace(waiting, events=[refused, made_later]))


def test_suspended_by_somebody() -> None:
    for status in ("Suspending", "Suspended"):
        state = state_of(made.observed(made.rayjob(status, ""), []))
        assert (state.phase, "is suspended" in state.reason) == ("queued", True)


def test_a_place_is_that_of_the_whole_gang() -> None:
    assert has_place(waits(pods=made.gang()))
    assert not has_place(waits(pods=made.gang()[:2]))
    assert not has_place(waits(pods=[*made.gang()[:2], made.pending(number=2)]))
    assert not has_place(replace(waits(), pods=None))
    assert has_place(replace(waits(), pods=None, podgroup=made.podgroup(allocated=True)))


def test_what_a_start_still_misses() -> None:
    worker = made.pod(number=2, conditions=[], containerStatuses=made.waiting("ContainerCreating"))
    pods = [*made.gang()[:2], worker]
    pulling = made.event("Pulling", 'Pulling image "r/i"', about=made.pod_name("worker", 2))
    starts = made.observed(made.rayjob("Initializing", ""), pods, pulling)
    assert why_it_starts(starts) == (
        f"starting; 2 of 3 pods are ready; {made.pod_name('worker', 2)} pulls its image"
    )
    pulled = made.event("Pulled", "x", about=made.pod_name("worker", 2), before=5)
    assert "pulls" not in why_it_starts(replace(starts, events=[pulling, pulled]))
    submitted = made.observed(made.rayjob("Running", "PENDING"), made.gang())
    assert "its driver is being started" in why_it_starts(submitted)


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (-5, "0 s"),
        (59.9, "59 s"),
        (60, "1 min"),
        (3599, "59 min"),
        (3600, "1 h"),
        (3661, "1 h 1 min"),
        (172_799, "47 h 59 min"),
        (172_800, "2 days"),
    ],
)
def test_durations_as_a_person_says_them(seconds: float, words: str) -> None:
    assert lasting(timedelta(seconds=seconds)) == words
