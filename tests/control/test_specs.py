"""Names, fields and values of a spec: refused before anything starts, with the nearest name."""

import pytest

from factory.control import specs
from factory.control.nearest import naming
from factory.control.selection import select
from factory.control.specs import check, completed, with_sets
from factory.discovery import datasets
from factory.errors import SpecError
from factory.spec import RunSpec
from tests.control.a_cluster import a_cluster

SPEC = RunSpec(recipe="debug.pretrain", mix="smoke", overrides={"train.train_iters": "5"})


def test_sets_are_parsed_by_the_field() -> None:
    changed = with_sets(SPEC, {"workers": "2", "run_limit_hours": "0.5", "mix": "other"})
    assert (changed.workers, changed.run_limit_hours, changed.mix) == (2, 0.5, "other")
    assert changed.overrides == SPEC.overrides


def test_overrides_are_added_by_path() -> None:
    changed = with_sets(SPEC, {"overrides.train.global_batch_size": "8"})
    assert changed.overrides == {"train.train_iters": "5", "train.global_batch_size": "8"}


@pytest.mark.parametrize(
    ("sets", "message"),
    [
        ({"worker": "2"}, r"no field 'worker'. Did you mean workers"),
        ({"workers": "0"}, r"workers='0': write 1 or more\."),
        ({"workers": "two"}, r"workers='two': write a whole number\."),
        ({"overrides": "train_iters=3"}, r"name the field of the recipe"),
    ],
)
def test_wrong_sets(sets: dict[str, str], message: str) -> None:
    with pytest.raises(SpecError, match=message):
        with_sets(SPEC, sets)


def test_every_wrong_name_is_listed() -> None:
    wrong = RunSpec(recipe="debug.pretran", mix="smok", cluster="lokal")
    with pytest.raises(SpecError) as refused:
        check(wrong)
    assert [line.partition(".")[0] for line in str(refused.value).splitlines()] == [
        "No recipe 'debug",
        "No mix 'smok' in definitions/mixes",
        "No cluster 'lokal' in definitions/clusters",
    ]
    assert "Did you mean debug.pretrain or debug_vision.pretrain" in str(refused.value)


def test_unknown_override_names_the_nearest() -> None:
    with pytest.raises(SpecError, match=r"train\.train_iters"):
        check(with_sets(SPEC, {"overrides.train.train_iter": "5"}))


def test_gpus_on_the_cpu_profile() -> None:
    with pytest.raises(SpecError, match=r"which has no GPUs\. Leave it 0"):
        check(with_sets(SPEC, {"gpus_per_worker": "1"}))


def test_more_than_a_kubernetes_cluster_has(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(specs, "cluster", lambda _: a_cluster())
    fits = with_sets(SPEC, {"cluster": "gpu-west", "workers": "4", "gpus_per_worker": "8"})
    check(fits)
    with pytest.raises(
        SpecError, match=r"gpus_per_worker=4: .*\nworkers=5: .* has 4 nodes \(20 GPU"
    ):
        check(with_sets(fits, {"workers": "5", "gpus_per_worker": "4"}))


def test_a_worker_has_the_gpus_of_a_node_where_nothing_else_is_said(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(specs, "cluster", lambda _: a_cluster())
    assert check(with_sets(SPEC, {"cluster": "gpu-west"})).gpus_per_worker == 8
    monkeypatch.undo()
    assert check(SPEC).gpus_per_worker == 0
    elsewhere = with_sets(SPEC, {"cluster": "nowhere"})
    assert completed(elsewhere) == elsewhere


def test_select_takes_datasets_and_assets() -> None:
    declared = datasets().values()
    whole = select(["public/text/plos"], declared)
    assert [step.name for step in whole][:2] == ["raw", "clean"]
    assert [step.split for step in whole][-3:] == ["train", "validation", "test"]
    (one,) = select(["public/text/plos/clean"], declared)
    assert one.name == "clean"


def test_select_names_the_nearest() -> None:
    with pytest.raises(SpecError, match=r"Did you mean public/text/plos"):
        select(["public/text/plso"], datasets().values())


def test_naming_of_many_is_short() -> None:
    text = naming("d7", [f"dataset_{i}" for i in range(1000)])
    assert text.endswith("and 988 more.")
    assert naming("x", []) == "None is declared."
