"""Values of assets never reach Dagster's own storage."""

from pathlib import Path

import dagster as dg

from factory.control.clusters import Local
from factory.control.resources import Factory, resources
from factory.settings import Settings
from tests.control.a_cluster import a_cluster

MARKER = "MARKER-hand-written"


@dg.asset(key=["private", "by_hand"])
def returning() -> list[str]:
    """Returns its rows instead of writing them."""
    return [MARKER]


@dg.asset(key=["private", "written"])
def writing() -> None:
    """Writes elsewhere and returns nothing, as it should."""


@dg.op
def first() -> dict[str, int]:
    return {"a": 1}


@dg.op
def second(value: dict[str, int]) -> None:
    assert value == {"a": 1}


@dg.job
def two_ops() -> None:
    second(first())


def test_the_value_of_an_asset_is_refused(settings: Settings, files_with) -> None:
    result = dg.materialize([returning], resources=resources(settings), raise_on_error=False)
    assert not result.success
    (failure,) = [event for event in result.all_events if event.is_step_failure]
    assert "private/by_hand returned list" in str(failure.step_failure_data.error)
    assert files_with(Path(settings.dagster_home), MARKER.encode()) == []


def test_an_asset_that_returns_nothing_is_fine(settings: Settings) -> None:
    assert dg.materialize([writing], resources=resources(settings)).success


def test_ops_hand_plain_data_to_each_other(settings: Settings) -> None:
    assert two_ops.execute_in_process(resources=resources(settings)).success


def test_the_image_that_is_sent_to_a_cluster_is_not_the_one_that_this_process_runs_in(
    settings: Settings,
) -> None:
    sent = settings.model_copy(update={"image": "a/b@sha256:" + "0" * 64})
    inside = sent.model_copy(update={"dependencies": "install"})
    here = Local(name="local", kind="local", profile="cpu")
    for chosen, own in ((settings, None), (sent, None), (inside, sent.image)):
        assert Factory(chosen).provenance("run-1").image == own
        assert Factory(chosen).image_on(here) == own
        assert Factory(chosen).image_on(a_cluster()) == chosen.image
