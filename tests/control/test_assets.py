"""From a declaration to current versions through Dagster: reuse, checks, promotion, limits."""

from pathlib import Path

import dagster as dg
import pytest

from factory.control.assets import CONFIG, op_name
from factory.control.freshness import report, stale
from factory.control.lineage import asset_key, inputs_of
from factory.data import Check, CheckResult, Dataset
from factory.keys import private, public
from tests.control.conftest import AFTER_CLEAN, FAST, Bench, deliver, letters


class Switch:
    """A check that passes or fails as the test says."""

    def __init__(self) -> None:
        self.passes = True

    def __call__(self, directory: Path) -> CheckResult:
        return CheckResult(self.passes, "on" if self.passes else "off", {"on": self.passes})


@pytest.fixture
def switch(bench: Bench) -> Switch:
    """`clean` of the dataset has a blocking check that the test can make fail."""
    made = Switch()
    bench.declared[:] = [letters(checks=[Check("switch", made)])]
    return made


def materializations(result: dg.ExecuteInProcessResult) -> dict[str, dg.AssetMaterialization]:
    return {
        "/".join(event.asset_key.path): event.materialization
        for event in result.all_events
        if event.is_step_materialization and event.asset_key
    }


def check_key(step: str, name: str = "switch") -> dg.AssetCheckKey:
    return dg.AssetCheckKey(dg.AssetKey(["public", "text", "letters", step]), name)


def run_checks_only(bench: Bench, name: str, only: str | None = None) -> dg.ExecuteInProcessResult:
    (step,) = [step for step in bench.steps() if step.name == name]
    names = [only] if only else [check.name for check in step.checks]
    keys = [check_key(name, check) for check in names]
    job = dg.define_asset_job("only", selection=dg.AssetSelection.checks(*keys))
    definitions = dg.Definitions.merge(bench.definitions(), dg.Definitions(jobs=[job]))
    return definitions.resolve_job_def("only").execute_in_process(
        instance=bench.instance, raise_on_error=False
    )


def test_run_makes_every_asset_current(bench: Bench) -> None:
    result = bench.run(*FAST)
    assert result.success
    made = materializations(result)
    assert list(made) == [f"public/text/letters/{name}" for name in FAST]
    clean = bench.current("clean")
    metadata = made["public/text/letters/clean"].metadata
    assert metadata["version"].value == clean.id
    assert metadata["dagster/row_count"].value == 54
    assert metadata["reused"].value is False
    rejected = metadata["rejected rows"]
    assert isinstance(rejected, dg.TableMetadataValue)
    assert [r.data for r in rejected.records] == [
        {"reason": "no answer", "rows": 6, "share": "10.0%"}
    ]
    assert "Question 1?" in str(metadata["preview"].value)
    card = str(made["public/text/letters/deduplicated"].metadata["card"].value)
    assert "| **samples** | 54 of 60 rows read, all questions |" in card
    assert "](data:image/png;base64," in card


def test_page_shows_what_was_removed_and_for_which(bench: Bench) -> None:
    file = bench.settings.drops / "letters/rows.jsonl"  # type: ignore[operator]
    file.write_text(file.read_text() * 2)
    made = materializations(bench.run(*FAST))
    metadata = made["public/text/letters/deduplicated"].metadata
    counts = metadata["duplicates removed"]
    assert isinstance(counts, dg.TableMetadataValue)
    assert [r.data for r in counts.records] == [
        {"kind": "kept", "rows": 54, "share": "50.0%"},
        {"kind": "exact", "rows": 54, "share": "50.0%"},
        {"kind": "near", "rows": 0, "share": "0.0%"},
    ]
    head, _, *pairs = str(metadata["removed pairs"].value).splitlines()
    assert head == "| similarity | removed | kept |"
    assert len(pairs) == 5
    assert all(pair.startswith("| 1.000 |") and pair.count("Question ") == 2 for pair in pairs)


def test_page_of_a_private_dataset_shows_no_pair(bench: Bench) -> None:
    file = bench.settings.drops / "letters/rows.jsonl"  # type: ignore[operator]
    file.write_text(file.read_text() * 2)
    bench.declared[:] = [letters(private("text/letters"))]
    made = materializations(bench.run(*FAST))
    metadata = made["private/text/letters/deduplicated"].metadata
    assert {"duplicates removed"} == {"duplicates removed", "removed pairs"} & set(metadata)


def test_second_run_reuses_every_version(bench: Bench) -> None:
    bench.run(*FAST)
    before = [bench.current(name).id for name in FAST]
    again = bench.run(*FAST)
    assert again.success
    assert all(m.metadata["reused"].value for m in materializations(again).values())
    assert [bench.current(name).id for name in FAST] == before


def test_asset_pages_say_what_the_declaration_says(bench: Bench) -> None:
    specs = {
        spec.key.to_user_string(): spec for spec in bench.definitions().resolve_all_asset_specs()
    }
    spec = specs["public/text/letters/clean"]
    assert spec.owners == ["team:data"]
    assert spec.kinds == {"parquet"}
    assert spec.group_name == "public_text_letters"
    assert spec.tags["licence"] == "CC-BY-4.0"
    assert spec.tags["classification"] == "public"
    assert spec.metadata["licence"] == "CC-BY-4.0"
    assert spec.description == "Letters. Cleaned samples; rejected rows beside."


def test_owner_that_is_a_person_is_refused(bench: Bench) -> None:
    bench.declared[:] = [letters(owners=["someone@example.org"])]
    with pytest.raises(Exception, match=r"is not a team\. Write team:name"):
        bench.definitions()


def test_failed_check_keeps_the_old_version_and_stops_downstream(
    bench: Bench, switch: Switch
) -> None:
    bench.run(*FAST)
    old = bench.current("clean"), bench.current(AFTER_CLEAN)
    deliver(bench.settings, rows=80)
    switch.passes = False
    result = bench.run(*FAST)
    assert not result.success
    assert list(materializations(result)) == [
        "public/text/letters/raw",
        "public/text/letters/clean",
    ]
    assert (bench.current("clean"), bench.current(AFTER_CLEAN)) == old
    newest = bench.namespace.versions(old[0].key)[0]
    assert newest != old[0]
    assert bench.namespace.not_passed(newest) == ["switch (failed)"]
    evaluations = result.get_asset_check_evaluations()
    assert {e.check_name: e.passed for e in evaluations if e.asset_key.path[-1] == "clean"} == {
        "schema": True,
        "ids_unique": True,
        "has_rows": True,
        "rows_accounted": True,
        "switch": False,
    }


def test_later_run_after_a_failed_check_reads_the_old_version(bench: Bench, switch: Switch) -> None:
    bench.run(*FAST)
    old = bench.current("clean")
    deliver(bench.settings, rows=80)
    switch.passes = False
    bench.run(*FAST)
    later = bench.run(AFTER_CLEAN)
    assert later.success
    assert bench.current(AFTER_CLEAN).manifest.inputs == {str(old.key): old.id}
    tags = materializations(later)[f"public/text/letters/{AFTER_CLEAN}"].tags or {}
    assert tags["dagster/input_data_version/public/text/letters/clean"] == old.id


def test_rerun_of_checks_is_recorded_for_the_current_version(bench: Bench, switch: Switch) -> None:
    bench.run(*FAST)
    switch.passes = False
    assert not run_checks_only(bench, "clean").success
    assert bench.namespace.not_passed(bench.current("clean")) == ["switch (failed)"]


def test_one_check_can_be_run_alone(bench: Bench, switch: Switch) -> None:
    bench.run(*FAST)
    result = run_checks_only(bench, "clean", only="schema")
    assert [e.check_name for e in result.get_asset_check_evaluations()] == ["schema"]


def test_rerun_of_checks_promotes_a_version_that_had_not_passed(
    bench: Bench, switch: Switch
) -> None:
    bench.run(*FAST)
    deliver(bench.settings, rows=80)
    switch.passes = False
    bench.run(*FAST)
    switch.passes = True
    assert run_checks_only(bench, "clean").success
    assert bench.current("clean").manifest.rows == 72


def test_rerun_of_checks_does_not_undo_a_rollback(bench: Bench, switch: Switch) -> None:
    bench.run(*FAST)
    old = bench.current("clean")
    deliver(bench.settings, rows=80)
    bench.run(*FAST)
    bench.namespace.rollback(old.key, old.id)
    assert run_checks_only(bench, "clean").success
    assert bench.current("clean") == old


def test_checks_without_any_version_fail_with_a_reason(bench: Bench, switch: Switch) -> None:
    result = run_checks_only(bench, "clean")
    assert not result.success
    assert "Nothing was ever materialized" in failures(result)


def test_step_without_its_input_names_it(bench: Bench) -> None:
    result = bench.run(AFTER_CLEAN)
    assert not result.success
    assert "Nothing is current at public/text/letters/clean" in failures(result)


def test_limited_run_flows_downstream_and_is_never_current(bench: Bench) -> None:
    result = bench.run(*FAST, limit=20)
    assert result.success
    assert bench.current("raw").manifest.limit is None
    for name in FAST[1:]:
        key = public("text/letters") / name
        assert bench.namespace.current(key) is None
        (version,) = bench.namespace.versions(key)
        assert version.manifest.limit == 20
    assert bench.namespace.versions(public("text/letters/split"))[0].manifest.rows == 18
    said = [entry.user_message for entry in bench.instance.all_logs(result.run_id)]
    assert sum("of the first 20 rows: it does not become current" in one for one in said) == 3


def test_the_engine_is_offered_and_checked_before_anything_runs(bench: Bench) -> None:
    (clean,) = [step for step in bench.steps() if step.name == "clean"]
    given: dict[str, object] = {"ops": {op_name(clean): {"config": {"engine": "local"}}}}
    assert bench.run("raw").success
    assert bench.execute([asset_key(clean.key)], given).success
    wrong: dict[str, object] = {"ops": {op_name(clean): {"config": {"engine": "spark"}}}}
    with pytest.raises(dg.DagsterInvalidConfigError, match="spark"):
        bench.execute([asset_key(clean.key)], wrong)
    declared = {step.kind for step in bench.steps() if CONFIG.get(step.kind) is not None}
    assert declared == {"clean", "deduplicated", "split", "energon"}


def test_limit_of_nothing_is_refused(bench: Bench) -> None:
    bench.run("raw")
    result = bench.run("clean", limit=0)
    assert not result.success
    assert "limit is 0; it is the number of rows to read" in failures(result)


def test_limited_run_leaves_the_ui_on_the_current_version(bench: Bench) -> None:
    bench.run(*FAST)
    bench.run(*FAST, limit=20)
    for name in FAST:
        version = bench.current(name)
        event = bench.instance.get_latest_materialization_event(asset_key(version.key))
        assert event is not None
        assert event.asset_materialization is not None
        assert (event.asset_materialization.tags or {})["dagster/data_version"] == version.id
        assert {"preview", "card"} & set(event.asset_materialization.metadata)


def test_retry_of_a_limited_run_reads_what_that_run_made(bench: Bench, switch: Switch) -> None:
    switch.passes = False
    first = bench.run(*FAST, limit=20)
    assert not first.success
    job = bench.definitions().resolve_implicit_global_asset_job_def()
    retry = bench.instance.create_run_for_job(
        job_def=job, parent_run_id=first.run_id, root_run_id=first.run_id
    )
    key = public("text/letters/clean")
    read = inputs_of((key,), bench.namespace, bench.instance, retry.run_id)
    assert read[key].manifest.limit == 20


def test_warning_check_does_not_block(bench: Bench, switch: Switch) -> None:
    bench.declared[:] = [letters(checks=[Check("switch", switch, blocking=False)])]
    switch.passes = False
    result = bench.run(*FAST)
    assert result.success
    (found,) = [e for e in result.get_asset_check_evaluations() if e.check_name == "switch"]
    assert not found.passed
    assert found.severity == dg.AssetCheckSeverity.WARN
    assert bench.current("clean").manifest.rows == 54


def test_nothing_is_stale_after_a_run(bench: Bench) -> None:
    names = [step.key for step in bench.steps()]
    assert stale(bench.declared, bench.settings) == names
    bench.run(*FAST)
    assert stale(bench.declared, bench.settings) == names[len(FAST) :]
    deliver(bench.settings, rows=80)
    assert stale(bench.declared, bench.settings) == names


def test_failed_recheck_makes_stale(bench: Bench, switch: Switch) -> None:
    bench.run(*FAST)
    switch.passes = False
    run_checks_only(bench, "clean")
    assert public("text/letters/clean") in stale(bench.declared, bench.settings)


class TestStalenessInTheUI:
    """What Dagster says, by code and data versions."""

    def statuses(self, bench: Bench) -> dict[str, str]:
        from dagster._core.definitions.data_version import CachingStaleStatusResolver
        from dagster._core.loader import LoadingContextForTest

        graph = bench.definitions().resolve_asset_graph()
        resolver = CachingStaleStatusResolver(
            bench.instance, graph, LoadingContextForTest(bench.instance)
        )
        return {
            name: resolver.get_status(asset_key(public(f"text/letters/{name}"))).value
            for name in FAST
        }

    def stale(self, bench: Bench) -> set[str]:
        return {name for name, status in self.statuses(bench).items() if status == "STALE"}

    def other(self, dataset: Dataset) -> Dataset:
        """The same dataset with another `clean`: what a change of code is."""
        return letters(license="CC0-1.0", checks=dataset.checks)

    def test_fresh_after_a_run(self, bench: Bench) -> None:
        assert set(self.statuses(bench).values()) == {"MISSING"}
        bench.run(*FAST)
        assert set(self.statuses(bench).values()) == {"FRESH"}

    def test_stale_after_a_change_and_fresh_after_the_next_run(self, bench: Bench) -> None:
        bench.run(*FAST)
        bench.declared[:] = [self.other(bench.declared[0])]
        assert self.stale(bench) == {"clean"}
        bench.run("clean")
        assert self.stale(bench) == {AFTER_CLEAN}
        bench.run(*FAST)
        assert set(self.statuses(bench).values()) == {"FRESH"}

    def test_fresh_after_a_rollback_is_reported(self, bench: Bench) -> None:
        bench.run(*FAST)
        first = [bench.current(name) for name in FAST[1:]]
        original = list(bench.declared)
        bench.declared[:] = [self.other(bench.declared[0])]
        bench.run(*FAST)
        bench.declared[:] = original
        assert self.statuses(bench)["clean"] == "STALE"
        for version in first:
            report(bench.instance, bench.namespace.rollback(version.key, version.id))
        assert set(self.statuses(bench).values()) == {"FRESH"}

    def test_stale_while_a_newer_version_has_failed_its_check(
        self, bench: Bench, switch: Switch
    ) -> None:
        bench.run(*FAST)
        deliver(bench.settings, rows=80)
        switch.passes = False
        bench.run(*FAST)
        assert self.stale(bench) == {AFTER_CLEAN}


def failures(result: dg.ExecuteInProcessResult) -> str:
    events = [event for event in result.all_events if event.is_step_failure]
    return "\n".join(str(event.step_failure_data.error) for event in events)
