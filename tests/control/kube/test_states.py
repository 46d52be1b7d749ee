"""One attempt's state from every pair of statuses, and from what the pods and events add to it."""

from dataclasses import replace

import pytest

from factory.control.kube.observed import (
    DEPLOYMENT_STATUSES,
    JOB_STATUSES,
    Listed,
    Observed,
    Seen,
    observe,
)
from factory.control.kube.states import State, state_of
from tests.control.kube import made

UNDOCUMENTED = ("Failure", "running", "TIMED_OUT")

JOBS = ("", "PENDING", "RUNNING", "STOPPED", "SUCCEEDED", "FAILED", *UNDOCUMENTED)

TABLE = {
    # deployment:       none       PENDING    RUNNING    STOPPED      SUCCEEDED    FAILED     others
    "": ("queued", "queued", "queued", "queued", "queued", "queued", "queued"),
    "Initializing": ("place", "place", "place", "place", "place", "place", "place"),
    "Waiting": (("starting",) * 7),
    "Running": ("starting", "starting", "running", "running", "running", "running", "unknown"),
    "Complete": ("unknown", "unknown", "unknown", "cancelled", "succeeded", "failed", "unknown"),
    "Failed": (("failed",) * 7),
    "ValidationFailed": (("failed",) * 7),
    "Suspending": (("queued",) * 7),
    "Suspended": (("queued",) * 7),
    "Retrying": (("queued",) * 7),
    "Frozen": (("unknown",) * 7),
    "complete": (("unknown",) * 7),
    " ": (("unknown",) * 7),
}

PAIRS = [
    (deployment, job, row[min(number, 6)])
    for deployment, row in TABLE.items()
    for number, job in enumerate(JOBS)
]

SURROUNDINGS = {
    "nothing known": {"pods": None, "raycluster": None, "podgroup": None},
    "nothing there": {"pods": [], "raycluster": None, "podgroup": None},
    "pods wait": {
        "pods": made.pending_gang("no room"),
        "raycluster": made.raycluster(ready_before=None),
        "podgroup": made.podgroup("no room"),
    },
    "pods run": {"pods": made.gang()},
    "pods run, no PodGroup": {"pods": made.gang(), "podgroup": None},
    "no pods listed, gang has its place": {"pods": None},
}
PLACED = {"pods run", "pods run, no PodGroup", "no pods listed, gang has its place"}
VERDICTS = {"failed", "succeeded", "cancelled", "evicted", "lost", "gone"}


def look(deployment: str, job: str, around: str, *events: dict, **more) -> Observed:
    given = dict(SURROUNDINGS[around])
    pods = given.pop("pods")
    return made.observed(made.rayjob(deployment, job), pods, *events, **given, **more)


def test_the_table_has_every_documented_status() -> None:
    assert set(TABLE) > DEPLOYMENT_STATUSES
    assert set(JOBS) > JOB_STATUSES


@pytest.mark.parametrize(("deployment", "job", "phase"), PAIRS)
def test_every_pair_of_statuses(deployment: str, job: str, phase: str) -> None:
    for around in SURROUNDINGS:
        state = state_of(look(deployment, job, around))
        expected = phase
        if phase == "place":
            expected = "starting" if around in PLACED else "queued"
        assert state.phase == expected, around
        assert state.verdict == (expected if expected in VERDICTS else None), around
        assert f"jobDeploymentStatus={deployment or '(none)'}" in state.evidence[0]
        assert state.reason or expected == "running"
        assert not state.reason.endswith(".")


@pytest.mark.parametrize("around", SURROUNDINGS)
def test_every_pair_once_it_was_evicted(around: str) -> None:
    for deployment, job, phase in PAIRS:
        state = state_of(look(deployment, job, around, made.evict()))
        final = deployment == "ValidationFailed" or (
            deployment == "Complete" and job in ("SUCCEEDED", "STOPPED")
        )
        assert state.verdict == (phase if final else "evicted"), (deployment, job)
        assert final or "in favour of big" in state.reason


def test_a_cluster_out_of_reach_pauses_the_run_and_never_ends_it() -> None:
    around = look("Failed", "FAILED", "pods run", made.evict(), unreachable="connection refused")
    first = state_of(around)
    assert (first.phase, first.verdict, first.paused) == ("unreachable", None, False)
    later = state_of(replace(around, paused=True))
    assert (later.phase, later.verdict, later.paused) == ("unreachable", None, True)
    assert "connection refused" in later.reason
    assert "paused" in later.reason


# What is not there.


def test_a_rayjob_that_the_server_does_not_show_yet() -> None:
    state = state_of(Observed(name="x", now=made.NOW, pods=()))
    assert (state.phase, state.verdict) == ("queued", None)
    assert "does not show" in state.reason


def test_a_rayjob_that_somebody_deleted_has_no_verdict_of_the_clusters() -> None:
    state = state_of(Observed(name="x", now=made.NOW, seen=Seen(existed=True)))
    assert (state.phase, state.verdict) == ("gone", "gone")


def test_a_rayjob_that_is_gone_after_its_pods_were_evicted() -> None:
    assert state_of(made.observed(None, [], made.evict())).verdict == "evicted"


@pytest.mark.parametrize("verdict", sorted(VERDICTS))
def test_a_recorded_verdict_stays(verdict) -> None:
    seen = Seen(existed=True, verdict=verdict, reason="so it was")
    here = made.observed(made.rayjob("Running", "RUNNING"), made.gang(), made.evict(), seen=seen)
    state = state_of(here)
    assert (state.verdict, state.reason) == (verdict, "so it was")
    assert state.phase == ("stopping" if verdict == "cancelled" else verdict)
    gone = state_of(Observed(name="x", now=made.NOW, pods=(), seen=seen))
    assert (gone.phase, gone.verdict) == ("gone", verdict)


def test_a_rayjob_that_is_being_deleted_by_others() -> None:
    job = made.rayjob("Running", "RUNNING")
    job["metadata"]["deletionTimestamp"] = made.at(3)
    assert state_of(made.observed(job, made.gang())).phase == "stopping"
    job["status"] |= {"jobDeploymentStatus": "Complete", "jobStatus": "SUCCEEDED"}
    assert state_of(made.observed(job, made.gang())).verdict == "succeeded"


# Evictions and losses.


def failed(ended_before: float = 20, **status) -> dict:
    return made.rayjob(
        "Failed", "FAILED", reason="AppFailed", endTime=made.at(ended_before), **status
    )


def verdict(*args, **more) -> str | None:
    return state_of(made.observed(*args, **more)).verdict


def test_an_eviction_before_the_end_explains_it_and_one_after_it_does_not() -> None:
    assert verdict(failed(20), made.gang(), made.evict(before=21)) == "evicted"
    assert verdict(failed(20), made.gang(), made.evict(before=10)) == "failed"
    inner = {"rayJobInfo": {"endTime": made.at(60)}}
    assert verdict(failed(20, **inner), made.gang(), made.evict(before=30)) == "failed"


def test_clocks_that_differ_by_seconds_do_not_change_a_verdict() -> None:
    assert verdict(failed(20), made.gang(), made.evict(before=15)) == "evicted"
    assert verdict(failed(20), made.gang(), made.evict(before=14)) == "failed"


def test_an_eviction_counts_only_if_it_names_a_pod_of_this_cluster() -> None:
    other = made.evict("fy-1-zzzzz-head-00000")
    assert verdict(failed(), made.gang(), other) == "failed"
    assert verdict(failed(), made.gang(), made.evict()) == "evicted"


def test_an_eviction_in_words_of_a_later_version_still_counts() -> None:
    event = made.evict() | {"message": "made room for others"}
    event["metadata"] = {"annotations": {"evictor-pod-group-name": f"pg-big-{made.OTHER_UID}"}}
    state = state_of(made.observed(failed(), made.gang(), event))
    assert (state.verdict, state.reason) == ("evicted", "it was evicted in favour of big")


@pytest.mark.parametrize(
    ("said", "words"),
    [
        ("by workload {winner}.\nprobe uses <GPU: 16>", " in favour of big"),
        ("by higher priority workload {winner}", " in favour of big"),
        (
            "and rescheduled due to bin packing (resource consolidation) procedure",
            ", to be placed again: KAI moves runs together to make room",
        ),
    ],
)
def test_each_way_of_kai_to_take_a_place(said: str, words: str) -> None:
    """Reclaimed by another queue, preempted in its own, moved."""
    told = said.format(winner=f"ray/pg-big-{made.OTHER_UID}")
    event = made.evict() | {"message": f"Pod ray/{made.pod_name('head')} was preempted {told}"}
    state = state_of(made.observed(made.rayjob(), made.gang(), event))
    assert (state.verdict, state.reason) == ("evicted", f"it was evicted{words}")


def test_the_rest_of_a_gang_that_had_lost_a_pod_was_not_evicted_for_anybody() -> None:
    message = (
        "Workload doesn't meet the minimum required number of pods (1) in sub-group headgroup, "
        f"evicting remaining pod: ray/{made.pod_name()}"
    )
    event = made.evict() | {"message": message}
    job = made.rayjob("Running", "Failure")
    cluster = made.raycluster(head=False)
    assert verdict(job, [made.pod()], event, raycluster=cluster) == "lost"


@pytest.mark.parametrize(
    "reason",
    [
        "PreemptionByScheduler",
        "EvictionByEvictionAPI",
        "DeletionByTaintManager",
        "DeletionByPodGC",
        "TerminationByKubelet",
    ],
)
def test_a_pod_that_kubernetes_itself_takes_away(reason: str) -> None:
    condition = {"type": "DisruptionTarget", "status": "True", "reason": reason}
    condition["lastTransitionTime"] = made.at(30)
    pods = [made.pod("head", conditions=[condition]), made.pod(number=1), made.pod(number=2)]
    assert verdict(made.rayjob(), pods) == "evicted"
    assert verdict(failed(20), pods) == "evicted"
    assert verdict(failed(60), pods) == "failed"
    condition["status"] = "False"
    assert verdict(made.rayjob(), pods) is None


def test_an_eviction_of_a_taint_that_was_taken_back() -> None:
    marked = made.event("TaintManagerEviction", "Marking for deletion Pod ray/x")
    kept = made.event("TaintManagerEviction", "Cancelling deletion of Pod ray/x")
    assert verdict(made.rayjob(), made.gang(), marked) == "evicted"
    assert verdict(made.rayjob(), made.gang(), kept) is None


def test_a_driver_that_says_that_it_was_told_to_stop() -> None:
    said = "Job entrypoint command failed with exit code 75, last available logs: Mr Smith"
    state = state_of(made.observed(failed(message=said), made.gang()))
    assert (state.verdict, state.exit_code) == ("evicted", 75)


@pytest.mark.parametrize("code", [3, 4])
def test_a_driver_that_refuses_would_refuse_again(code: int) -> None:
    said = f"Job entrypoint command failed with exit code {code}"
    state = state_of(made.observed(failed(message=said), made.gang(), made.evict()))
    assert (state.verdict, state.exit_code) == ("failed", code)


def test_a_driver_that_kuberay_starts_again_is_kept_out_and_its_attempt_was_lost() -> None:
    said = "Job entrypoint command failed with exit code 4"
    job = failed(message=said, rayJobInfo={"startTime": made.at(10)})
    seen = Seen(existed=True, cluster=made.CLUSTER, driver_started=made.at(90))
    state = state_of(made.observed(job, made.gang(), seen=seen))
    assert (state.verdict, state.exit_code) == ("lost", 4)


def test_a_head_that_is_gone_is_believed_when_two_things_say_so() -> None:
    workers = [made.pod(number=1), made.pod(number=2)]
    gone = made.raycluster(head=False)
    killing = made.event("Killing", "Stopping container ray", about=made.pod_name("head"))
    assert verdict(made.rayjob(), workers) is None  # a list of pods may be an old one
    assert verdict(made.rayjob(), workers, raycluster=gone) == "lost"
    assert verdict(made.rayjob(), workers, killing) == "lost"
    assert verdict(made.rayjob("Running", "Failure"), workers) == "lost"
    assert verdict(made.rayjob("Frozen", "Failure"), workers) == "lost"


def test_a_head_that_does_not_answer_kuberay_is_said_to_be_that() -> None:
    why = "error trying to reach service: dial tcp 10.0.0.7:8265: connect: no route to host"
    state = state_of(made.observed(made.rayjob("Running", "Failure", message=why), made.gang()))
    assert (state.phase, state.verdict) == ("unknown", None)
    assert state.reason == f"its head does not answer KubeRay ({why})"


def test_a_worker_that_ray_took_for_dead_is_lost_although_its_pod_is_well() -> None:
    dead = ["Ray on 10.0.0.8: Unexpected termination: health check failed"]
    of = made.observed(failed(), made.gang())
    assert state_of(of).verdict == "failed"
    state = state_of(replace(of, given_up=dead))
    assert (state.verdict, state.evidence[-1]) == ("lost", dead[0])
    refused = failed(message="Job entrypoint command failed with exit code 3")
    assert state_of(made.observed(refused, made.gang(), given_up=dead)).verdict == "failed"


def test_a_cluster_that_is_gone_under_its_driver() -> None:
    job = made.rayjob(rayJobInfo={"startTime": made.at(90)})
    assert verdict(job, [], raycluster=None, podgroup=None) == "lost"


def test_a_head_that_is_younger_than_the_readiness_of_its_cluster() -> None:
    another = made.pod("head")
    another["metadata"]["creationTimestamp"] = made.at(60)
    assert verdict(made.rayjob(), [another, made.pod()]) == "lost"
    again = made.pod("head")
    again["status"]["containerStatuses"][0]["state"] = {"running": {"startedAt": made.at(60)}}
    state = state_of(made.observed(made.rayjob(), [again, made.pod()]))
    assert (state.verdict, state.reason) == ("lost", "its head ended and was started again")
    early = made.raycluster(ready_before=50)
    assert verdict(made.rayjob(), [another, made.pod()], raycluster=early) is None


def test_the_submitter_of_sidecar_mode_is_no_head() -> None:
    head = made.pod("head")
    head["status"]["containerStatuses"].append(
        {"name": "ray-job-submitter", "state": {"terminated": {"reason": "Error"}}}
    )
    assert verdict(failed(), [head, made.pod()]) == "failed"
    head["status"]["containerStatuses"][0]["state"] = {
        "terminated": {"reason": "Error", "finishedAt": made.at(40)}
    }
    assert verdict(failed(), [head, made.pod()]) == "lost"


def test_a_driver_that_kuberay_starts_a_second_time() -> None:
    job = made.rayjob(rayJobInfo={"startTime": made.at(10)})
    seen = Seen(existed=True, cluster=made.CLUSTER, driver_started=made.at(90))
    state = state_of(made.observed(job, made.gang(), seen=seen))
    assert (state.verdict, "second time" in state.reason) == ("lost", True)
    same = replace(seen, driver_started=made.at(10))
    assert verdict(job, made.gang(), seen=same) is None
    other = replace(same, cluster="fy-1-zzzzz")
    assert verdict(job, made.gang(), seen=other) == "lost"


@pytest.mark.parametrize("status", ["Suspending", "Suspended", ""])
def test_a_running_job_that_somebody_suspends_waits_and_then_counts_as_another(status: str) -> None:
    seen = Seen(existed=True, cluster=made.CLUSTER, driver_started=made.at(90))
    job = made.rayjob(status, "", rayClusterName="")
    state = state_of(made.observed(job, [], raycluster=None, podgroup=None, seen=seen))
    assert (state.phase, state.verdict) == ("queued", None)
    again = made.rayjob("Initializing", "", rayClusterName="fy-1-zzzzz")
    assert verdict(again, [], raycluster=None, seen=seen) == "lost"


def test_a_head_that_dies_before_there_is_a_driver_is_no_loss() -> None:
    gone = made.raycluster(head=False)
    assert verdict(made.rayjob("Initializing", ""), [made.pod()], raycluster=gone) is None


def test_what_is_remembered_is_the_first_start() -> None:
    job = made.rayjob(rayJobInfo={"startTime": "first"})
    seen = made.observed(job, [], seen=Seen()).remembered()
    assert seen == Seen(existed=True, cluster=made.CLUSTER, driver_started="first")
    job["status"]["rayJobInfo"] = {"startTime": "second"}
    assert made.observed(job, [], seen=seen).remembered() == seen
    assert made.observed(None, [], seen=seen).remembered() == seen


def test_a_worker_that_was_lost_under_a_driver_that_failed() -> None:
    killing = made.event("Killing", "Stopping container ray", about=made.pod_name("worker", 1))
    assert verdict(failed(20), made.gang(), killing) == "lost"
    assert verdict(failed(60), made.gang(), killing) == "failed"
    assert verdict(made.rayjob(), made.gang(), killing) is None  # the driver will say
    new = made.pod("worker", 3)
    new["metadata"]["creationTimestamp"] = made.at(40)
    assert verdict(failed(20), [*made.gang(), new]) == "lost"


def test_a_cluster_that_its_ttl_removes_after_a_failure() -> None:
    killing = [
        made.event("Killing", "Stopping container ray", about=one["metadata"]["name"], before=1)
        for one in made.gang()
    ]
    assert verdict(failed(60), [], *killing, raycluster=None) == "failed"


# Failures, and their words.


@pytest.mark.parametrize(
    "reason",
    [
        "SubmissionFailed",
        "DeadlineExceeded",
        "PreRunningDeadlineExceeded",
        "JobDeploymentStatusTransitionGracePeriodExceeded",
        "JobStatusCheckTimeoutExceeded",
        "ValidationFailed",
    ],
)
def test_each_of_kuberays_reasons_has_words_and_advice(reason: str) -> None:
    job = made.rayjob("Failed", "RUNNING", reason=reason, message="told so")
    state = state_of(made.observed(job, made.gang()))
    assert state.verdict == "failed"
    assert "(told so)" in state.reason
    assert state.advice


def test_what_is_said_of_the_backstop_can_be_done() -> None:
    """The factory itself sets that deadline in every RayJob, so nobody can take it away."""
    state = state_of(made.observed(made.rayjob("Failed", "RUNNING", reason="DeadlineExceeded")))
    assert "the factory's backstop has passed" in state.reason
    assert "out of reach" in state.reason
    assert state.advice.startswith("`factory resume RUN`")


def test_a_reason_that_nobody_documented_is_a_failure_without_advice() -> None:
    job = made.rayjob("Failed", "RUNNING", reason="Bored", message="told so")
    state = state_of(made.observed(job, made.gang()))
    assert (state.verdict, state.reason, state.advice) == ("failed", "its driver failed", "")
    assert "reason=Bored" in state.evidence[0]


@pytest.mark.parametrize(
    ("told", "code", "words"),
    [
        ("exit code 1", 1, "its driver ended with exit code 1"),
        ("exit code 137", -9, "SIGKILL"),
        ("exit code 139", -11, "SIGSEGV"),
        ("exit code -15", -15, "SIGTERM"),
        ("exit code 255", 255, "its driver ended with exit code 255"),
    ],
)
def test_the_exit_code_of_a_driver(told: str, code: int, words: str) -> None:
    message = f"Job entrypoint command failed with {told}, last available logs"
    state = state_of(made.observed(failed(message=message), made.gang()))
    assert state.exit_code == code
    assert words in state.reason


@pytest.mark.parametrize("deployment", ["Failed", "Complete", "Running", "Frozen"])
@pytest.mark.parametrize("job", ["FAILED", "Failure", "STOPPED"])
@pytest.mark.parametrize("reason", ["AppFailed", "", "DeadlineExceeded", "Bored"])
@pytest.mark.parametrize(
    "message",
    [
        "Job entrypoint command failed with exit code 1, last available logs:\nMr Smith",
        "Job entrypoint command failed with exit code 1. Last available logs: Mr Smith",
        "Job failed due to an application error, last available logs: Mr Smith",
        "told so\nMr Smith",
    ],
)
def test_the_drivers_log_is_never_repeated(
    deployment: str, job: str, reason: str, message: str
) -> None:
    job = made.rayjob(deployment, job, reason=reason, message=message)
    state = state_of(made.observed(job, made.gang()))
    assert "Smith" not in f"{state}"


def test_what_the_client_asks_of_a_state() -> None:
    assert State(phase="queued").waits
    assert State(phase="starting").waits
    assert not State(phase="running").waits
    assert not State(phase="stopping").ended
    assert State(phase="stopping", verdict="cancelled").ended


# Which objects belong to the attempt.


def test_a_look_takes_only_what_belongs_to_the_attempt() -> None:
    other = made.pod()
    other["metadata"]["labels"]["ray.io/cluster"] = "fy-10-abcde"
    other["metadata"]["annotations"] = {"pod-group-name": f"pg-fy-10-{made.UID}"}
    old = made.event("Evict", "x", "PodGroup", f"pg-{made.NAME}-{made.OTHER_UID}")
    job_of_old = made.event("Deleted", "x", "RayJob", made.NAME)
    job_of_old["involvedObject"]["uid"] = made.OTHER_UID
    listed = Listed(
        rayjobs=[made.rayjob(), {"metadata": {"name": "fy-10"}}],
        rayclusters=[{"metadata": {"name": "fy-10-abcde"}}, made.raycluster()],
        pods=[other, *made.gang()],
        podgroups=[{"metadata": {"name": f"pg-fy-10-{made.UID}"}}, made.podgroup()],
        events=[old, job_of_old, made.evict(), made.event("Started", "x")],
    )
    look = observe(made.NAME, made.NOW, listed)
    assert look.rayjob == made.rayjob()
    assert look.raycluster == made.raycluster()
    assert look.pods == made.gang()
    assert look.podgroup == made.podgroup()
    assert [one["reason"] for one in look.events] == ["Evict", "Started"]


def test_a_look_finds_what_a_deleted_rayjob_left() -> None:
    orphans = made.gang()
    for one in orphans:
        one["metadata"]["annotations"] = {}
    listed = Listed(rayjobs=[], pods=orphans, podgroups=[made.podgroup()], events=[made.evict()])
    look = observe(made.NAME, made.NOW, listed)
    assert len(look.pods or ()) == 3
    assert look.podgroup is not None
    assert look.events
    assert look.anything_left


def test_a_cluster_is_the_one_that_the_rayjob_names_now() -> None:
    old, new = made.raycluster(), made.raycluster()
    old["metadata"]["name"] = "fy-1-zzzzz"
    both = Listed(rayjobs=[made.rayjob()], rayclusters=[old, new], pods=made.gang())
    assert observe(made.NAME, made.NOW, both).raycluster == new
    only_old = Listed(rayjobs=[made.rayjob()], rayclusters=[old])
    assert observe(made.NAME, made.NOW, only_old).raycluster is None
    left = Listed(rayjobs=[], rayclusters=[old])
    assert observe(made.NAME, made.NOW, left).raycluster == old


@pytest.mark.parametrize(
    ("kind", "of", "found"),
    [("RayJob", made.NAME, True), ("RayJob", "fy-2", False), ("RayService", made.NAME, False)],
)
def test_a_cluster_says_by_labels_too_whose_it_is(kind: str, of: str, found: bool) -> None:
    labels = {"ray.io/originated-from-crd": kind, "ray.io/originated-from-cr-name": of}
    orphan = {"metadata": {"name": made.CLUSTER, "labels": labels}}
    look = observe(made.NAME, made.NOW, Listed(rayjobs=[], rayclusters=[orphan]))
    assert (look.raycluster is not None) == found


def test_pods_that_cannot_be_listed_are_not_pods_that_are_not_there() -> None:
    assert observe(made.NAME, made.NOW, Listed(rayjobs=[], pods=None)).pods is None
