"""What a kubelet says about a pod: in words, with what to do; an end only if it will not pass."""

import pytest

from factory.control.kube.states import state_of
from tests.control.kube import made

PULL = 'Back-off pulling image "r/i@sha256:0"'


def starting(pods: list, *events: dict, deployment: str = "Initializing", job: str = ""):
    return state_of(
        made.observed(
            made.rayjob(deployment, job),
            pods,
            *events,
            raycluster=made.raycluster(ready_before=None),
        )
    )


def one(reason: str, message: str = "", since: float = 200, **more) -> list:
    statuses = made.waiting(reason, message, **more)
    head = made.pod("head", startTime=made.at(since), containerStatuses=statuses)
    return [head, made.pod(number=1), made.pod(number=2)]


@pytest.mark.parametrize(
    ("reason", "words"),
    [
        ("InvalidImageName", "name of its image"),
        ("ErrImageNeverPull", "not on the node"),
        ("ErrImagePull", "cannot be pulled"),
        ("ImagePullBackOff", "cannot be pulled"),
        ("ImageInspectError", "cannot be read"),
        ("RegistryUnavailable", "does not answer"),
        ("SignatureValidationFailed", "signature"),
        ("CreateContainerConfigError", "cannot be made"),
        ("CreateContainerError", "cannot be made"),
        ("RunContainerError", "cannot be started"),
    ],
)
def test_what_lasts_ends_the_attempt_with_words_and_advice(reason: str, words: str) -> None:
    state = starting(one(reason, "it says"))
    assert (state.phase, state.verdict) == ("failed", "failed")
    assert made.pod_name("head") in state.reason
    assert words in state.reason
    assert f"{reason}: it says" in state.reason
    assert state.advice
    assert f"{made.pod_name('head')}: {reason}" in state.evidence


@pytest.mark.parametrize("reason", ["ImagePullBackOff", "CreateContainerConfigError"])
def test_what_may_pass_is_shown_and_waited_for(reason: str) -> None:
    state = starting(one(reason, "busy", since=44))
    assert (state.phase, state.verdict) == ("starting", None)
    assert f"{reason}: busy" in state.reason
    assert starting(one(reason, "busy", since=45)).verdict == "failed"


def test_a_long_pull_that_fails_once_is_not_a_pull_that_failed_for_long() -> None:
    head = made.pod_name("head")
    first = made.event("Failed", "Failed to pull image: timeout", about=head, before=10)
    assert starting(one("ErrImagePull", "timeout", since=600), first).verdict is None
    second = made.event("BackOff", PULL, about=head, before=50)
    assert starting(one("ErrImagePull", "timeout", since=600), first, second).verdict == "failed"
    of_another = made.event("Failed", "x", about=made.pod_name("worker", 1), before=50)
    state = starting(one("ErrImagePull", "timeout", since=600), first, of_another)
    assert state.verdict is None


@pytest.mark.parametrize(
    "message",
    [
        "failed to resolve reference r/i@sha256:0: not found",
        "manifest unknown",
        "unauthorized: authentication required",
        "pull access denied, repository does not exist",
    ],
)
def test_an_image_that_will_not_come_ends_it_at_once(message: str) -> None:
    state = starting(one("ErrImagePull", message, since=2))
    assert state.verdict == "failed"
    assert "r/i@sha256:0" in state.reason


def test_it_says_so_too_while_other_pods_have_no_place() -> None:
    pods = [*one("InvalidImageName"), made.pending("worker", 3)]
    assert starting(pods).verdict == "failed"


def test_a_failing_init_container_ends_it() -> None:
    worker = made.pod(number=1, initContainerStatuses=made.waiting("ImagePullBackOff", "denied"))
    assert starting([made.pod("head"), worker]).verdict == "failed"


def test_a_container_that_ends_again_and_again() -> None:
    last = {"terminated": {"reason": "Error", "exitCode": 2}}
    twice = one("CrashLoopBackOff", "back-off 10s", restartCount=2, lastState=last)
    assert starting(twice).verdict is None
    state = starting(one("CrashLoopBackOff", "back-off 20s", restartCount=3, lastState=last))
    assert state.verdict == "failed"
    assert "Error, exit code 2" in state.reason


NO_SUCH_COMMAND = 'unable to start container process: exec: "ray": executable file not found'


def unstarted(message: str, *, restarts: int = 0, now: str = "terminated") -> list:
    ended = {"reason": "StartError", "exitCode": 128, "message": message}
    state = {"terminated": ended} if now == "terminated" else {now: {"reason": "CrashLoopBackOff"}}
    last = {} if now == "terminated" else {"terminated": ended}
    status = {"name": "ray", "state": state, "lastState": last, "restartCount": restarts}
    workers = [made.pod(number=1, containerStatuses=[status]), made.pod(number=2)]
    return [made.pod("head"), *workers]


@pytest.mark.parametrize("now", ["terminated", "waiting"])
def test_a_start_that_was_interrupted_is_waited_for(now: str) -> None:
    """So it is when a kubelet or containerd is restarted; the container is started again."""
    state = starting(unstarted("failed to create shim task: context canceled", now=now))
    assert (state.phase, state.verdict) == ("starting", None)
    assert "could not be started (StartError, exit code 128: failed to create" in state.reason
    state = starting(unstarted("context canceled", restarts=3, now=now))
    assert state.verdict == "failed"


@pytest.mark.parametrize("now", ["terminated", "waiting"])
def test_a_command_that_is_not_there_ends_it_at_once(now: str) -> None:
    state = starting(unstarted(NO_SUCH_COMMAND, now=now))
    assert state.verdict == "failed"
    assert "executable file not found" in state.reason
    assert "image's command" in state.advice


def test_a_container_that_runs_after_all_is_no_trouble() -> None:
    state = starting(unstarted("context canceled", restarts=1, now="running"))
    assert (state.phase, state.verdict) == ("starting", None)
    assert "StartError" not in state.reason


def test_normal_waiting_is_no_trouble() -> None:
    for reason in ("PodInitializing", "ContainerCreating", "", "Bored"):
        assert starting(one(reason, since=6000)).phase == "starting"


OOM = {"terminated": {"reason": "OOMKilled", "exitCode": 137, "finishedAt": made.at(40)}}
STATUS = {"name": "ray", "state": {"running": {"startedAt": made.at(190)}}, "lastState": OOM}


def test_a_head_without_memory_is_a_failure_and_not_a_loss() -> None:
    head = made.pod("head", containerStatuses=[STATUS | {"state": {"running": {}}}])
    state = state_of(made.observed(made.rayjob(), [head, made.pod()]))
    assert state.verdict == "failed"
    assert "want of memory (OOMKilled, exit code 137)" in state.reason
    assert "memory" in state.advice


def test_a_worker_without_memory_is_what_the_failed_driver_died_of() -> None:
    pods = [made.pod("head"), made.pod(containerStatuses=[STATUS])]
    message = "Job entrypoint command failed with exit code 1, last available logs"
    job = made.rayjob("Failed", "FAILED", message=message, endTime=made.at(20))
    state = state_of(made.observed(job, pods))
    assert (state.verdict, state.exit_code) == ("failed", 1)
    assert f"{made.pod_name()} was killed for want of memory" in state.reason
    running = state_of(made.observed(made.rayjob(), pods))
    assert running.phase == "running"  # the driver will say


def test_a_pod_evicted_for_what_it_took_itself_is_a_failure() -> None:
    condition = {"type": "DisruptionTarget", "status": "True", "reason": "TerminationByKubelet"}
    own = "Usage of EmptyDir volume shm exceeds the limit 512Mi."
    for message, verdict in ((own, "failed"), ("The node was low on resource: memory.", "evicted")):
        head = made.pod("head", reason="Evicted", message=message, conditions=[condition])
        state = state_of(made.observed(made.rayjob(), [head, made.pod()]))
        assert state.verdict == verdict
    assert starting([made.pod("head", reason="Evicted", message=own)]).advice


def test_the_head_is_named_before_its_workers() -> None:
    worker = made.pod(number=1, containerStatuses=made.waiting("InvalidImageName"))
    head = made.pod("head", containerStatuses=made.waiting("InvalidImageName"))
    assert made.pod_name("head") in starting([worker, head]).reason


def test_a_volume_that_does_not_come_is_shown_and_waited_for() -> None:
    told = made.event("FailedMount", "MountVolume failed: no such share")
    pods = one("ContainerCreating")
    state = starting(pods, told)
    assert (state.phase, state.verdict) == ("starting", None)
    assert "no such share" in state.reason
