"""A check whose code or bounds change while the data does not: it counts as not run, and is run."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from factory import discovery
from factory.control import freshness
from factory.control.gates import gate
from factory.control.metadata import check_metadata
from factory.control.resources import Factory
from factory.data import Check, CheckResult, checks
from factory.data.check_form import OUTDATED
from factory.data.dataset import Dataset
from factory.data.mix import Mix
from factory.errors import GateRefused
from factory.namespace import CheckRecord, retention
from factory.spec import RunSpec
from tests.control.conftest import FAST, Bench, letters

pytestmark = pytest.mark.slow

SPEC = RunSpec(recipe="debug.pretrain", mix="letters")


def stale(bench: Bench, dataset: Dataset) -> list[str]:
    names = {f"{dataset.key}/{name}" for name in FAST}
    return [f"{key}" for key in freshness.stale([dataset], bench.settings) if f"{key}" in names]


def bounded(low: int) -> Callable[[Path], CheckResult]:
    return lambda _: CheckResult(low > 0, f"{low}")


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (checks.rows(1, 100), checks.rows(2, 100)),
        (checks.rows(1, 100), checks.rows(1, 100, blocking=False)),
        (Check("mine", bounded(1)), Check("mine", bounded(2))),
        (Check("mine", bounded(1), blocking=False), Check("mine", bounded(2), blocking=False)),
    ],
    ids=["bounds", "blocking", "closure", "only warns"],
)
def test_it_is_run_again_and_nothing_else(bench: Bench, before: Check, after: Check) -> None:
    bench.declared[:] = [letters(checks=[before])]
    assert bench.run(*FAST).success
    (dataset,) = bench.declared
    assert stale(bench, dataset) == []
    clean = bench.current("clean")
    first = bench.namespace.checks(clean)[before.name]

    # The file of the declaration is the same, so the code of `clean` is too: as with a helper.
    changed = replace(dataset, checks=[after])
    assert stale(bench, changed)[0] == f"{dataset.key}/clean"
    bench.declared[:] = [changed]
    assert bench.run(*FAST).success
    assert stale(bench, changed) == []
    assert bench.current("clean") == clean, "nothing was made anew"
    second = bench.namespace.checks(clean)[after.name]
    assert second.form != first.form
    assert second.blocking == after.blocking


@pytest.fixture
def trained(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> Callable[[Dataset], str]:
    """What the gate says of a mix of that dataset."""

    def refusal(dataset: Dataset) -> str:
        declared = {"letters": Mix(domain_shift=[(1.0, dataset)])}
        monkeypatch.setattr(discovery, "mixes", lambda: declared)
        try:
            gate(SPEC, run_id="run-1", factory=Factory(bench.settings))
        except GateRefused as refused:
            return str(refused)
        return ""

    return refusal


def test_the_gate_sees_it_and_pins_what_it_lets_through(
    bench: Bench, trained: Callable[[Dataset], str]
) -> None:
    bench.declared[:] = [letters(checks=[checks.rows(1, 100)])]
    assert bench.run().success
    (dataset,) = bench.declared
    clean, train = bench.current("clean"), bench.current("energon/train")
    assert trained(dataset) == ""
    at_once = retention.Policy(keep=0)
    kept = retention.plan(bench.settings.root, at_once).kept
    assert kept[train] == "current"
    assert (bench.settings.root / "public/runs/.pins/run-1.json").is_file()

    refused = trained(replace(dataset, checks=[checks.rows(50, 100)]))
    assert f"{clean}: check rows ({OUTDATED})." in refused
    assert refused.count(OUTDATED) == 1
    assert not (bench.settings.root / "public/runs/.pins").is_dir() or not list(
        (bench.settings.root / "public/runs/.pins").iterdir()
    ), "a refused launch needs nothing"


def test_the_gate_refuses_what_is_removed_meanwhile(
    bench: Bench, trained: Callable[[Dataset], str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between looking up what is current and pinning it, a collection took it."""
    assert bench.run().success
    train = bench.current("energon/train")
    pin = type(bench.namespace).pin

    def late(namespace, run, versions, hold) -> None:
        train.path.rename(train.path.with_name(".trash-1"))
        pin(namespace, run, versions, hold)

    monkeypatch.setattr(type(bench.namespace), "pin", late)
    assert f"{train} is gone: `factory gc` removed it" in trained(bench.declared[0])


def test_the_history_shows_figures_that_can_be_plotted(bench: Bench) -> None:
    record = CheckRecord(
        passed=True,
        blocking=True,
        summary="",
        facts={"groups": {"train": 40}, "rows": 3, "version": "mine", "none": None},
        checked_at="",
        form="f00d",
    )
    assert bench.run("raw", "clean").success
    clean = bench.current("clean")
    shown = check_metadata(record, clean, confidential=False)
    assert shown == {
        "groups: train": 40,
        "rows": 3,
        "version": clean.id,
        "form of the check": "f00d",
        "rows of the version": clean.manifest.rows,
    }
    private = check_metadata(record, clean, confidential=True)
    assert private.keys() == {"version", "form of the check", "rows of the version"}
