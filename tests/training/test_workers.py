"""Where ranks are placed and what they are given; whose failure is told first."""

import pytest

from factory.errors import RunFailed, SpecError
from factory.spec import CodeIdentity, Launch, RunSpec
from factory.training.waiting import _explained
from factory.training.workers import Failure, _apart, _bundles, _environment


def spec(**fields: int) -> RunSpec:
    return RunSpec(recipe="r", mix="m", **fields)


HEAD = {"NodeID": "head", "Resources": {"memory": 1e9}}
NODES = [{"NodeID": "a", "Resources": {"CPU": 2.0}}, HEAD]


def test_the_gpus_of_a_worker_lie_on_one_node_and_workers_on_nodes_of_their_own() -> None:
    wanted = spec(workers=3, gpus_per_worker=8)
    assert [bundle["GPU"] for bundle in _bundles(wanted)] == [8.0, 8.0, 8.0]
    assert _apart(wanted, NODES, "a")


@pytest.mark.parametrize(("driver", "apart"), [("a", False), ("head", True)])
def test_ranks_without_gpus_lie_apart_where_the_driver_has_a_node_of_its_own(
    driver: str, apart: bool
) -> None:
    assert _apart(spec(workers=3), NODES, driver) is apart


def test_every_rank_gets_what_its_cluster_says() -> None:
    launch = Launch(
        run_id="run-1",
        attempt=1,
        classification="public",
        spec=spec(workers=2, gpus_per_worker=4),
        profile="h100",
        datasets={},
        image=None,
        code=CodeIdentity(commit=None, tree="t", lock="l"),
        rank_environment={"NCCL_IB_HCA": "mlx5", "NCCL_DEBUG": "WARN"},
    )
    given = _environment(launch, 5, 1)
    assert given["NCCL_IB_HCA"] == "mlx5"
    assert (given["RANK"], given["LOCAL_RANK"], given["WORLD_SIZE"]) == ("5", "1", "8")
    assert "TORCHDYNAMO_DISABLE" not in given


def failure(rank: int, at: float, *, refused: bool = False) -> Failure:
    return Failure(
        rank=rank, at=at, refused=refused, summary=f"rank {rank} said", details=f"trace {rank}"
    )


def test_the_first_failure_comes_with_its_traceback_and_the_others_in_a_line() -> None:
    told = _explained([failure(2, 30.0), failure(1, 10.0), failure(0, 20.0)])
    assert isinstance(told, RunFailed)
    assert str(told).splitlines() == [
        "Rank 1 failed first: rank 1 said",
        "trace 1",
        "Then rank 0: rank 0 said",
        "Then rank 2: rank 2 said",
    ]


@pytest.mark.parametrize("at", [10.0, 1e12])
def test_a_process_that_died_without_a_word_was_first(at: float) -> None:
    told = _explained([failure(1, at), failure(0, 0.0)])
    assert str(told).startswith("Rank 0 failed first: its process died")


def test_a_refusal_is_of_the_launch_not_of_the_training() -> None:
    told = _explained([failure(0, 1.0, refused=True)])
    assert isinstance(told, SpecError)
    assert str(told) == "rank 0 said"
