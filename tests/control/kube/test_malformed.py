"""Objects of other versions, and broken ones: never an exception, never a success by mistake."""

from copy import deepcopy
from typing import Any, get_args

from hypothesis import given, settings
from hypothesis import strategies as st

from factory.control.clocks import Clocks
from factory.control.kube.observed import Listed, Observed, Seen, observe
from factory.control.kube.states import Phase, State, state_of
from factory.control.kube.waiting import why_it_waits
from tests.control.kube import made

PHASES = get_args(Phase.__value__)

WORDS = st.sampled_from(
    ["", "True", "Running", "Evict", "Failed", "head", "-", "2026-11-30T12:00:00Z", "9999-12-31"]
) | st.text(max_size=20)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | WORDS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(WORDS, inner, max_size=3),
    max_leaves=5,
)


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Every place in an object."""
    inner = value.items() if isinstance(value, dict) else []
    if isinstance(value, list):
        inner = enumerate(value)
    return [path, *(place for key, one in inner for place in places(one, (*path, key)))]


@st.composite
def damaged(draw: st.DrawFn) -> dict[str, Any]:
    """A namespace's objects with some places overwritten."""
    job = made.rayjob(
        draw(st.sampled_from(["", "Initializing", "Running", "Failed", "Complete", "Frozen"])),
        draw(st.sampled_from(["", "RUNNING", "FAILED", "STOPPED", "Failure"])),
        rayJobInfo={"startTime": made.at(90), "endTime": made.at(20)},
        message="Job entrypoint command failed with exit code 1, last available logs",
    )
    pods = draw(st.sampled_from([made.gang(), made.pending_gang("didn't have enough"), []]))
    held = {
        "rayjobs": [job],
        "rayclusters": [made.raycluster()],
        "pods": [*pods, made.pod(containerStatuses=made.waiting("ImagePullBackOff", "x"))],
        "podgroups": [made.podgroup("Resources were found for 1 pods")],
        "events": [made.evict(), made.event("Killing", "x"), made.event("Pipelined", "to node a")],
    }
    held = deepcopy(held)
    for _ in range(draw(st.integers(1, 4))):
        kind = draw(st.sampled_from(sorted(held)))
        where = draw(st.sampled_from([place for place in places(held[kind]) if place]))
        inside = held[kind]
        for step in where[:-1]:
            inside = inside[step]
        inside[where[-1]] = draw(JSON)
    return held


def check(state: State) -> None:
    assert state.phase in PHASES
    assert state.verdict != "succeeded"
    assert "\n" not in state.reason
    assert len(state.reason) < 2000


@settings(max_examples=60)  # slow to make, not to judge
@given(damaged())
def test_a_damaged_field_is_an_empty_field(held: dict[str, Any]) -> None:
    look = observe(made.NAME, made.NOW, Listed(**held))
    check(state_of(look, held["podgroups"]))
    why_it_waits(look, held["rayclusters"])
    Clocks({"run": 1.0}).tick(state_of(look).phase, 0.0)
    check(
        state_of(
            Observed(
                name=made.NAME,
                now=made.NOW,
                rayjob=look.rayjob,
                raycluster=look.raycluster,
                pods=None,
                seen=look.remembered(),
            )
        )
    )


@settings(max_examples=40)
@given(JSON, JSON, JSON, JSON, JSON)
def test_objects_that_are_no_objects(job, cluster, pod, group, event) -> None:
    look = Observed(
        name=made.NAME,
        now=made.NOW,
        rayjob=job,
        raycluster=cluster,
        pods=[pod],
        podgroup=group,
        events=[event],
        seen=Seen(existed=True),
    )
    check(state_of(look, [group]))
