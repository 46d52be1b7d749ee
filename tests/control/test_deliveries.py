"""Deliveries through Dagster: the sensor asks once per content; the UI shows counts only."""

import json
import os
from pathlib import Path
from typing import Any

import dagster as dg
import pytest

from factory.control.deliveries import deliveries_sensor
from factory.control.freshness import stale
from factory.control.lineage import asset_key
from factory.data import Dataset, PartnerDrop, Thresholds
from factory.data.steps import steps
from factory.keys import private
from factory.settings import Settings
from tests.control.conftest import FAST, Bench, Find, deliver, letters
from tests.deliveries import sign

MAIL = "canary-5d20@example.org"
MARKER = "PATIENT-1183-SECRET"


def notes(**changes: object) -> Dataset:
    source = PartnerDrop(folder="notes", rows="*.jsonl", **changes)  # type: ignore[arg-type]
    return letters(private("text/notes"), source=source)


@pytest.fixture
def drop(bench: Bench) -> Path:
    """A signed delivery whose every row holds the marker."""
    assert bench.settings.drops is not None
    bench.declared[:] = [notes()]
    deliver(bench.settings, "notes", text=f"{MARKER} ")
    folder = bench.settings.drops / "notes"
    sign(folder)
    return folder


def tick(bench: Bench) -> tuple[list[dg.RunRequest], str]:
    """One evaluation of the sensor against the instance: what it asks for, or why nothing."""
    sensor = deliveries_sensor(bench.declared, bench.settings)
    definitions = dg.Definitions.merge(bench.definitions(), dg.Definitions(sensors=[sensor]))
    repository = definitions.get_repository_def()
    with dg.build_sensor_context(
        bench.instance, repository_def=repository, sensor_name=sensor.name
    ) as context:
        data = repository.get_sensor_def(sensor.name).evaluate_tick(context)
    assert data.cursor is None
    return list(data.run_requests or []), data.skip_message or ""


def asked(bench: Bench) -> list[str]:
    """The run keys for which Dagster has no run yet: what its daemon would start."""
    return [
        str(one.run_key)
        for one in tick(bench)[0]
        if not bench.instance.get_runs(dg.RunsFilter(tags={"dagster/run_key": str(one.run_key)}))
    ]


def run_what_is_asked(bench: Bench) -> dg.ExecuteInProcessResult:
    (request,) = tick(bench)[0]
    job = bench.definitions().resolve_implicit_global_asset_job_def()
    fast = {asset_key(step.key) for step in bench.steps() if step.name in FAST}
    return job.execute_in_process(
        instance=bench.instance,
        asset_selection=[key for key in request.asset_selection or [] if key in fast],
        tags={"dagster/run_key": str(request.run_key), **request.tags},
        raise_on_error=False,
    )


def test_a_delivery_is_asked_for_with_every_asset(bench: Bench, drop: Path) -> None:
    (request,), _ = tick(bench)
    assert request.asset_selection == [asset_key(step.key) for step in steps(notes())]


def test_once_per_content(bench: Bench, drop: Path) -> None:
    (first,) = asked(bench)
    assert run_what_is_asked(bench).success
    assert bench.current("raw").manifest.classification == "private"
    assert asked(bench) == []
    text = (drop / "delivery.json").read_text()
    (drop / "delivery.json").unlink()
    (drop / "delivery.json").write_text(text)
    assert asked(bench) == [], "delivered again, but the same"
    deliver(bench.settings, "notes", rows=70)
    sign(drop)
    (second,) = asked(bench)
    assert second != first


def test_the_same_delivery_to_two_datasets_is_two_runs(bench: Bench, drop: Path) -> None:
    other = letters(private("text/others"), source=notes().source)
    bench.declared[:] = [notes(), other]
    assert len(set(asked(bench))) == 2


def test_nothing_is_asked_before_every_listed_file_is_there(bench: Bench, drop: Path) -> None:
    (drop / "rows.jsonl").rename(drop / "rows.part")
    requests, why = tick(bench)
    assert requests == []
    assert why == "private/text/notes: 1 files of the delivery are not there yet"
    (drop / "rows.part").rename(drop / "rows.jsonl")
    assert len(asked(bench)) == 1


def test_no_delivery(bench: Bench, drop: Path, settings: Settings) -> None:
    (drop / "delivery.json").unlink()
    assert tick(bench) == ([], "private/text/notes: no delivery")
    drop.rename(drop.with_name("gone"))
    assert tick(bench) == ([], "private/text/notes: no delivery")
    bench.settings = settings.model_copy(update={"drops": None})
    assert tick(bench) == ([], "private/text/notes: FACTORY_DROPS is not set")


def test_a_bad_statement_is_asked_for_once_so_that_its_refusal_is_seen(
    bench: Bench, drop: Path
) -> None:
    value = json.loads((drop / "delivery.json").read_text())
    value["pseudonymization"]["signed_by"] = ""
    (drop / "delivery.json").write_text(json.dumps(value))
    assert not run_what_is_asked(bench).success
    assert asked(bench) == []


def test_a_failed_delivery_is_asked_for_again_once_its_files_are_corrected(
    bench: Bench, drop: Path
) -> None:
    whole = (drop / "rows.jsonl").read_text()
    (drop / "rows.jsonl").write_text(whole[:-30])
    assert not run_what_is_asked(bench).success
    assert asked(bench) == []
    (drop / "rows.jsonl").write_text(whole[:-20])
    (second,) = asked(bench)
    assert asked(bench) == [second]
    assert not run_what_is_asked(bench).success
    assert asked(bench) == []
    (drop / "rows.jsonl").write_text(whole)
    assert run_what_is_asked(bench).success
    os.utime(drop / "rows.jsonl")
    assert asked(bench) == [], "what was taken in is not asked for again"
    assert (drop / "rows.jsonl").read_text() == whole


def test_a_file_too_many_that_goes_is_a_correction(bench: Bench, drop: Path) -> None:
    (drop / "extra.txt").write_text("x")
    assert not run_what_is_asked(bench).success
    assert asked(bench) == []
    (drop / "extra.txt").unlink()
    assert run_what_is_asked(bench).success


def test_a_corrected_statement_is_another_delivery(bench: Bench, drop: Path) -> None:
    sign(drop, pseudonymization={"signed_by": " "})
    assert not run_what_is_asked(bench).success
    sign(drop)
    assert run_what_is_asked(bench).success
    assert asked(bench) == []


def test_only_what_a_partner_delivers_is_watched(bench: Bench) -> None:
    assert tick(bench) == ([], "") or tick(bench)[0] == []


@pytest.mark.parametrize(
    ("deployment", "status"), [("laptop", "STOPPED"), ("dev", "STOPPED"), ("prod", "RUNNING")]
)
def test_on_in_production_only(settings: Settings, deployment: str, status: str) -> None:
    changed = settings.model_copy(update={"deployment": deployment})
    assert deliveries_sensor([notes()], changed).default_status.value == status


def made(result: dg.ExecuteInProcessResult) -> dict[str, Any]:
    (event,) = [
        event.materialization
        for event in result.all_events
        if event.is_step_materialization and event.asset_key and event.asset_key.path[-1] == "raw"
    ]
    return dict(event.metadata)


def outside(bench: Bench, find: Find, *markers: str) -> list[Path]:
    """Every file with a marker that is neither in the drop zone nor in the private tree."""
    settings = bench.settings
    places = (settings.dagster_home, settings.state, settings.root / "public")
    return [
        path
        for marker in markers
        for place in places
        if place.exists()
        for path in find(place, marker.encode())
    ]


def test_the_page_shows_counts_and_no_row(
    bench: Bench, drop: Path, files_with: Find, capfd: pytest.CaptureFixture[str]
) -> None:
    with (drop / "rows.jsonl").open("a") as file:
        file.write(json.dumps({"question": MAIL, "answer": f"Seen on 2019-03-04. {MARKER}"}) + "\n")
    sign(drop)
    bench.declared[:] = [notes(thresholds=Thresholds(direct=1))]
    result = bench.run(*FAST)
    assert result.success
    metadata = made(result)
    assert metadata["rows left in the drop zone"].value == 1
    found = metadata["identifiers found"].records
    assert {one.data["kind"]: one.data["found"] for one in found} == {"date": 1, "email": 1}
    assert outside(bench, files_with, MAIL, MARKER) == []
    assert files_with(bench.settings.root, MAIL.encode()) == []
    said = capfd.readouterr()
    assert MAIL not in said.out + said.err
    assert MARKER not in said.out + said.err


def test_a_blocked_delivery_says_how_many_and_of_which_kind(
    bench: Bench, drop: Path, files_with: Find, capfd: pytest.CaptureFixture[str]
) -> None:
    with (drop / "rows.jsonl").open("a") as file:
        file.write(json.dumps({"question": MAIL, "answer": "Seen on 2019-03-04."}) + "\n")
    sign(drop)
    result = bench.run(*FAST)
    assert not result.success
    (failure,) = [event for event in result.all_events if event.is_step_failure]
    message = str(failure.step_failure_data.error)
    assert "DeliveryRefused. The scan for identifiers blocked the delivery: 1 x email" in message
    assert "rows.jsonl" not in message, "a file may be named after a patient"
    key = bench.declared[0].key / "raw"
    assert bench.namespace.versions(key) == []
    assert outside(bench, files_with, MAIL, MARKER) == []
    assert files_with(bench.settings.root, MAIL.encode()) == []
    assert files_with(bench.settings.root, MARKER.encode()) == []
    said = capfd.readouterr()
    assert MAIL not in said.out + said.err
    log = bench.settings.root / "private" / "runs" / result.run_id / "steps"
    (told,) = [path.read_text() for path in log.iterdir()]
    assert "first in rows.jsonl, row 61, offset" in told


def test_what_was_delivered_decides_what_is_stale(bench: Bench, drop: Path) -> None:
    names = [step.key for step in bench.steps()]
    assert stale(bench.declared, bench.settings) == names
    bench.run(*FAST)
    assert stale(bench.declared, bench.settings) == names[len(FAST) :]
    sign(drop, agreement="DPA-2027-01")
    assert stale(bench.declared, bench.settings) == names


def test_a_tick_removes_what_a_killed_intake_left(bench: Bench, drop: Path) -> None:
    left = bench.settings.state / "intake" / "gone"
    (left / "content").mkdir(parents=True)
    (left / "content" / "notes.jsonl").write_text(MARKER)
    tick(bench)
    assert not left.exists()
