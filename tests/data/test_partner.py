"""Intake: what a delivery must be, what of it is published, and what no one may read afterwards."""

import gzip
import json
import os
import signal
import stat
import subprocess
import sys
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from factory.data import Dataset, Kind, PartnerDrop, Rejected, Row, Rows, Sample, Thresholds
from factory.data.fetch import partner, staging_area
from factory.data.intake import IDENTIFIERS
from factory.data.steps import steps
from factory.errors import DeliveryRefused, ScanFailed, SettingsError, SourceError
from factory.keys import private
from factory.settings import CHECKOUT
from tests.deliveries import sign

MAIL = "canary-7f3a@example.org"
"""A direct identifier, and what no message may hold."""


def clean(row: Row) -> Sample | Rejected:
    return Sample.document(id=row.text("id"), title="", sections=[("", row.text("text"))])


def notes(rows: str | Rows = "**/*.jsonl", **options: Any) -> Dataset:
    return Dataset(
        key=private("text/notes"),
        license="LicenseRef-test",
        source=PartnerDrop(folder="notes", rows=rows, **options),
        clean=clean,
    )


@pytest.fixture
def drop(settings: Any) -> Path:
    folder = settings.drops / "notes"
    folder.mkdir()
    return folder


def lines(*texts: str) -> str:
    return "".join(json.dumps({"id": f"n{i}", "text": one}) + "\n" for i, one in enumerate(texts))


def put(folder: Path, files: dict[str, str | bytes], **changes: Any) -> None:
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)
    sign(folder, **changes)


def raw(runner: Any, dataset: Dataset) -> Any:
    return runner.checked(steps(dataset)[0])[0]


def refused(runner: Any, dataset: Dataset, kind: type[SourceError] = DeliveryRefused) -> str:
    """The message of a refusal, after which nothing is anywhere but in the drop zone."""
    with pytest.raises(kind) as caught:
        runner.step(steps(dataset)[0])
    assert [path for path in runner.settings.root.rglob("*") if path.is_file()] == []
    assert left(runner) == []
    shown = "".join(traceback.format_exception(caught.value)) + caught.value.outside
    assert MAIL not in shown
    assert MAIL not in "".join(runner.said)
    assert caught.value.__context__ is None
    return str(caught.value)


def left(runner: Any) -> list[Path]:
    base = runner.settings.state / "intake"
    return [path for path in base.iterdir() if path.is_dir()] if base.exists() else []


def test_a_clean_delivery_is_published_as_it_is(runner, drop):
    text = lines("Well on 2019-03-04.", "Rest.")
    put(drop, {"a/b.jsonl": text, "README.md": "What this is.", "other.csv": "x\n"})
    version = raw(runner, notes())
    assert runner.namespace.current(version.key) == version
    assert (version.path / "files/a/b.jsonl").read_text() == text
    names = {name for name in version.manifest.files if name.startswith("files/")}
    assert names == {"files/a/b.jsonl", "files/README.md"}
    assert version.manifest.classification == "private"
    assert pq.read_table(version.path / IDENTIFIERS).num_rows == 0
    facts = version.manifest.facts
    assert facts["identifiers"]["found"] == {"date": 1}
    assert facts["identifiers"]["rows_taken_out"] == 0
    assert facts["delivery"]["agreement"] == "DPA-2026-01"
    assert "Data protection officer" not in (version.path / "_manifest.json").read_text()
    assert left(runner) == []


def test_the_statement_is_no_row(runner, drop):
    put(drop, {"a.json": json.dumps({"id": "1", "text": "Well."})})
    version = raw(runner, notes("*.json"))
    assert set(version.manifest.files) == {"files/a.json", IDENTIFIERS}


def test_an_unchanged_delivery_is_neither_copied_nor_scanned_again(runner, drop, monkeypatch):
    put(drop, {"a.jsonl": lines("Well.")})
    first = raw(runner, notes())
    monkeypatch.setattr(partner, "take_in", None)
    os.utime(drop / "delivery.json")
    again = runner.step(steps(notes())[0])
    assert again.reused
    assert again.version.id == first.id


@pytest.mark.parametrize(
    "change",
    [
        lambda folder: put(folder, {"b.jsonl": lines("More.")}),
        lambda folder: sign(folder, agreement="DPA-2026-02"),
    ],
)
def test_another_delivery_is_another_version(runner, drop, change: Callable[[Path], object]):
    put(drop, {"a.jsonl": lines("Well.")})
    first = raw(runner, notes())
    change(drop)
    assert raw(runner, notes()).id != first.id


def test_rows_with_identifiers_stay_in_the_drop_zone(runner, drop, files_with):
    put(drop, {"a.jsonl": lines("Well.", f"Write to {MAIL}.", "Rest."), "b.jsonl": lines("Fine.")})
    dataset = notes(thresholds=Thresholds(direct=1))
    version, _ = runner.until(dataset, "clean")
    assert version.manifest.rows == 3
    kept = runner.namespace.current(dataset.key / "raw")
    assert (kept.path / "files/a.jsonl").read_text().splitlines()[1] == ""
    (found,) = pq.read_table(kept.path / IDENTIFIERS).to_pylist()
    assert set(found) == {"file", "row", "offset", "kind"}
    assert (found["file"], found["row"], found["kind"]) == ("a.jsonl", 2, "email")
    assert kept.manifest.facts["identifiers"]["rows_taken_out"] == 1
    for place in (runner.settings.root, runner.settings.state):
        assert files_with(place, MAIL.encode()) == []
    assert MAIL in (drop / "a.jsonl").read_text()


@pytest.mark.parametrize("end", ["\r\n", "\r"])
def test_rows_keep_their_numbers_however_lines_end(runner, drop, files_with, end):
    put(drop, {"a.jsonl": lines("Well.", f"Write to {MAIL}.", "Rest.").replace("\n", end)})
    dataset = notes(thresholds=Thresholds(direct=1))
    version, _ = runner.until(dataset, "clean")
    (rows,) = [runner.namespace.current(dataset.key / "raw").path / "files/a.jsonl"]
    assert [bool(line) for line in rows.read_bytes().splitlines()] == [True, False, True]
    assert version.manifest.rows == 2
    assert files_with(runner.settings.root, MAIL.encode()) == []


def test_a_file_with_a_finding_that_is_no_row_is_left_out(runner, drop, files_with):
    files = {
        "a.jsonl": lines("Well."),
        "README.txt": f"Ask {MAIL}.",
        f"{MAIL}.jsonl": lines("Rest."),
    }
    put(drop, files)
    version = raw(runner, notes(thresholds=Thresholds(direct=5)))
    assert set(version.manifest.files) == {"files/a.jsonl", IDENTIFIERS}
    assert version.manifest.facts["identifiers"]["files_left_out"] == 2
    assert files_with(runner.settings.root, MAIL.encode()) == []


@pytest.mark.parametrize(
    ("name", "rows"),
    [
        ("a.jsonl.gz", "*.jsonl.gz"),
        ("a.jsonl", Rows("*.jsonl", encoding="utf-16")),
        ("a.jsonl", "*.jsonl"),
        ("a.csv", "*.csv"),
    ],
)
def test_a_row_is_taken_out_of_plain_lines_only(runner, drop, name, rows):
    written = lines("Well.", MAIL).encode("utf-16")
    content = {
        "a.jsonl.gz": gzip.compress(lines("Well.", MAIL).encode()),
        "a.csv": f"id,text\n1,Well.\n2,{MAIL}\n",
    }
    put(drop, {name: content.get(name, written)})
    said = refused(runner, notes(rows, thresholds=Thresholds(direct=1)))
    assert "out of which a row cannot be taken" in said
    assert f"{name}, row 2" in said


@pytest.mark.parametrize("name", ["a.json", "a.xml"])
def test_a_row_that_cannot_be_taken_out_refuses_the_delivery(runner, drop, name):
    rows = json.dumps([{"id": "1", "text": "Well."}, {"id": "2", "text": MAIL}])
    element = f"<all><note><text>Well.</text></note><note><text>{MAIL}</text></note></all>"
    put(drop, {name: rows if name == "a.json" else element})
    pattern = "*.json" if name == "a.json" else "*.xml//note"
    said = refused(runner, notes(pattern, thresholds=Thresholds(direct=1)))
    assert "out of which a row cannot be taken" in said
    assert f"{name}, row 2" in said


def test_a_blocked_delivery_publishes_nothing_and_says_where(runner, drop):
    put(drop, {"a.jsonl": lines("Well.", f"Write to {MAIL}.", "MRN: 00423178")})
    said = refused(runner, notes())
    assert "1 x email where 0 may be, first in a.jsonl, row 2, offset" in said
    assert "record number: a.jsonl, row 3, offset" in said
    assert "00423178" not in said
    assert raw(runner, notes(thresholds=Thresholds(allowed={Kind.EMAIL: 1, Kind.RECORD_NUMBER: 1})))


def test_names_block_where_no_surrogates_were_used(runner, drop):
    put(drop, {"a.jsonl": lines("Seen by Dr. Alvarez.")}, pseudonymization={"surrogates": False})
    assert "1 x name where 0 may be" in refused(runner, notes())


def test_without_a_statement(runner, drop):
    (drop / "a.jsonl").write_text(lines(MAIL))
    assert "has no delivery.json" in refused(runner, notes())


@pytest.mark.parametrize("signed", ["", " ", None])
def test_an_unsigned_statement(runner, drop, signed):
    put(drop, {"a.jsonl": lines(MAIL)}, pseudonymization={"signed_by": signed})
    assert "signed_by" in refused(runner, notes())


def test_other_files_than_stated(runner, drop, tmp_path):
    put(drop, {"a.jsonl": lines("x"), "b.jsonl": lines("y"), "c.jsonl": lines("z"), "d.jsonl": ""})
    (drop / "a.jsonl").write_text(lines(MAIL))
    (drop / "b.jsonl").unlink()
    (drop / "extra.jsonl").write_text(lines(MAIL))
    (drop / "c.jsonl").unlink()
    (drop / "c.jsonl").symlink_to("/etc/hostname")
    (drop / "d.jsonl").unlink()
    os.mkfifo(drop / "d.jsonl")
    (drop / "linked").symlink_to(tmp_path)
    said = refused(runner, notes())
    for one in (
        "a.jsonl differs",
        "b.jsonl is listed but missing",
        "extra.jsonl is not listed",
        "c.jsonl is a link",
        "d.jsonl is a link or no regular file",
        "linked is a link",
    ):
        assert one in said


def test_a_name_that_is_no_text(runner, drop):
    put(drop, {"a.jsonl": lines("Well.")})
    with (drop / os.fsdecode(b"\xff.jsonl")).open("w") as file:
        file.write("x")
    assert "its name is withheld" in refused(runner, notes())


def test_a_failing_recognizer(runner, drop, monkeypatch):
    from factory.data.identifiers import text

    def fail(one: str) -> None:
        raise ValueError(one)

    put(drop, {"a.jsonl": lines(f"Write to {MAIL}.")})
    monkeypatch.setattr(text, "_look", fail)
    assert "(ValueError)" in refused(runner, notes(), ScanFailed)


def test_a_delivery_that_changes_while_it_is_copied(runner, drop, monkeypatch):
    put(drop, {"a.jsonl": lines("Well.")})
    before = partner._copy  # the moment is in there

    def late(*given: Any) -> None:
        (drop / "late.jsonl").write_text(lines(MAIL))
        before(*given)

    monkeypatch.setattr(partner, "_copy", late)
    assert "changed while it was read" in refused(runner, notes(), SourceError)


def test_a_file_exchanged_after_it_was_verified_is_not_what_is_published(runner, drop, monkeypatch):
    """The partner can write to the drop zone at any time: only the copy counts."""
    put(drop, {"a.jsonl": lines("Well.")})
    before = partner.scan_files

    def late(*given: Any, **options: Any) -> Any:
        (drop / "a.jsonl").write_text(lines(MAIL))
        report = before(*given, **options)
        (drop / "a.jsonl").write_text(lines(MAIL))
        return report

    monkeypatch.setattr(partner, "scan_files", late)
    version = raw(runner, notes())
    assert (version.path / "files/a.jsonl").read_text() == lines("Well.")


def test_a_link_as_drop_folder(runner, settings, tmp_path):
    (settings.drops / "notes").symlink_to(tmp_path)
    assert "Declare the folder itself" in refused(runner, notes(), SourceError)


def test_the_copy_is_for_this_account_only(runner, drop, monkeypatch):
    put(drop, {"a.jsonl": lines("Well.")})
    seen: list[tuple[bool, int]] = []
    before = partner.scan_files

    def look(folder: Path, *given: Any, **options: Any) -> Any:
        seen.extend(
            (path.is_relative_to(runner.settings.state), stat.S_IMODE(path.stat().st_mode))
            for path in (folder.parent, folder.parent.parent)
        )
        return before(folder, *given, **options)

    monkeypatch.setattr(partner, "scan_files", look)
    (runner.settings.state / "intake").mkdir(mode=0o755)
    raw(runner, notes())
    assert seen == [(True, 0o700)] * 2


def test_a_state_directory_inside_the_namespace_is_refused(runner, drop):
    put(drop, {"a.jsonl": lines("Well.")})
    inside = runner.settings.root / "state"
    runner.settings = runner.settings.model_copy(update={"state": inside})
    with pytest.raises(SettingsError, match="inside the namespace"):
        runner.step(steps(notes())[0])


HOLD = """
import sys, time
from pathlib import Path
from factory.data.fetch.staging_area import staging_area
with staging_area(Path(sys.argv[1]), Path(sys.argv[2])) as area:
    (area / "note.txt").write_text("secret")
    print("ready", flush=True)
    time.sleep(60)
"""


def test_what_a_killed_intake_left_goes_at_the_next_start(runner, drop):
    state = runner.settings.state
    child = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(state), str(runner.settings.root)],
        stdout=subprocess.PIPE,
        text=True,
        cwd=CHECKOUT,
    )
    assert child.stdout is not None
    with child.stdout:
        assert child.stdout.readline() == "ready\n"
        assert staging_area.sweep(state) == [], "its owner is alive"
        (kept,) = left(runner)
        assert (kept / "content" / "note.txt").exists()
        child.send_signal(signal.SIGKILL)
        child.wait()
    put(drop, {"a.jsonl": lines("Well.")})
    raw(runner, notes())
    assert left(runner) == []


def test_an_interrupted_intake_leaves_nothing(runner, drop, monkeypatch):
    def interrupt(*given: Any, **options: Any) -> None:
        raise KeyboardInterrupt

    put(drop, {"a.jsonl": lines(MAIL)})
    monkeypatch.setattr(partner, "scan_files", interrupt)
    with pytest.raises(KeyboardInterrupt):
        runner.step(steps(notes())[0])
    assert left(runner) == []
    assert [path for path in runner.settings.root.rglob("*") if path.is_file()] == []


def test_what_is_declared_decides_what_is_scanned_again(drop):
    def code(dataset: Dataset) -> object:
        return steps(dataset)[0].parameters

    assert code(notes()) == code(notes(thresholds=Thresholds()))
    assert code(notes()) != code(notes(thresholds=Thresholds(direct=1)))
    assert code(notes("*.xml//a")) != code(notes("*.xml//b"))


def test_many_positions_are_cut_short(runner, drop):
    put(drop, {"a.jsonl": lines(*[MAIL] * 60)})
    started = time.monotonic()
    said = refused(runner, notes())
    assert "and 10 more" in said
    assert time.monotonic() - started < 60
