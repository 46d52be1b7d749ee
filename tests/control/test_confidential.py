"""Side doors: a marker in private rows never leaves the private tree, whatever a step does."""

import logging
import os
import subprocess
import sys
from pathlib import Path

import pytest

from factory.control.confidential import in_confidence
from factory.data import Check, CheckResult, Dataset, LocalFiles, Rejected, Row, Sample
from factory.errors import StepError
from factory.keys import private
from tests.control.conftest import FAST, Bench, Find, clean, deliver, letters

MARKER = "PATIENT-7391-SECRET"


@pytest.fixture
def secret(bench: Bench) -> Bench:
    """A private dataset whose every row holds the marker."""
    deliver(bench.settings, "notes", text=f"{MARKER} ")
    bench.declared[:] = [notes()]
    return bench


def notes(**changes: object) -> Dataset:
    source = LocalFiles(folder="notes", rows="*.jsonl", classification="private")
    return letters(private("text/notes"), source=source, **changes)


def outside_private_tree(bench: Bench, find: Find) -> list[Path]:
    """Every file of Dagster, of this machine's state and of the public tree with the marker."""
    settings = bench.settings
    places = (settings.dagster_home, settings.state, settings.root / "public")
    return [path for place in places if place.exists() for path in find(place, MARKER.encode())]


def test_rows_stay_in_the_private_tree(secret: Bench, files_with: Find) -> None:
    assert secret.run(*FAST).success
    assert files_with(secret.settings.root / "private", MARKER.encode())
    assert outside_private_tree(secret, files_with) == []


def raising(row: Row) -> Sample | Rejected:
    """Fails on every row with the row in the message."""
    raise ValueError(f"cannot read {row.text('question')}")


def talking(row: Row) -> Sample | Rejected:
    """Says the row by every way there is, and rejects some with it."""
    text = row.text("question")
    sys.stdout.write(text)
    sys.stderr.write(text)
    logging.getLogger("talking").warning(text)
    os.write(2, text.encode())
    subprocess.run(["/bin/echo", text], check=True)
    if "Question 1" in text:
        return Rejected(f"odd: {text}")
    return clean(row)


def test_error_of_clean(secret: Bench, files_with: Find) -> None:
    secret.declared[:] = [notes(clean=raising)]
    result = secret.run(*FAST)
    assert not result.success
    assert outside_private_tree(secret, files_with) == []
    (failure,) = [event for event in result.all_events if event.is_step_failure]
    message = str(failure.step_failure_data.error)
    assert "private/text/notes/clean: StepError." in message
    assert "/private/runs/" in message


class Panic(BaseException):
    """As packages written in Rust raise it: no `Exception`, and it quotes what it was given."""


@pytest.mark.parametrize("kind", [Panic, GeneratorExit, KeyboardInterrupt, SystemExit])
def test_error_that_is_no_exception(
    secret: Bench, files_with: Find, kind: type[BaseException]
) -> None:
    def panicking(row: Row) -> Sample | Rejected:
        raise kind(row.text("question"))

    secret.declared[:] = [notes(clean=panicking)]
    assert not secret.run(*FAST).success
    assert outside_private_tree(secret, files_with) == []


def test_interruption_carries_nothing_of_what_was_being_handled(secret: Bench) -> None:
    def work(_: object) -> None:
        try:
            int(MARKER)
        except ValueError:
            raise KeyboardInterrupt from None

    with pytest.raises(KeyboardInterrupt) as caught:
        in_confidence(work, key=private("text/notes"), namespace=secret.namespace, run_id="run")
    assert caught.value.__context__ is None


def test_error_of_clean_within_the_limit(secret: Bench, files_with: Find) -> None:
    secret.declared[:] = [notes(clean=raising, max_errors=1000)]
    secret.run(*FAST)
    assert outside_private_tree(secret, files_with) == []


def test_output_and_reasons(secret: Bench, files_with: Find) -> None:
    secret.declared[:] = [notes(clean=talking)]
    assert secret.run(*FAST).success
    assert outside_private_tree(secret, files_with) == []
    runs = secret.settings.root / "private" / "runs"
    assert files_with(runs, MARKER.encode()), "what was said is kept where it may be read"


def test_reasons_of_the_declaration_are_shown(secret: Bench) -> None:
    result = secret.run(*FAST)
    (made,) = [
        event.materialization
        for event in result.all_events
        if event.is_step_materialization and event.asset_key and event.asset_key.path[-1] == "clean"
    ]
    records = made.metadata["rejected rows"].records  # type: ignore[union-attr]
    assert sum(record.data["rows"] for record in records) == 6


def test_checks(secret: Bench, files_with: Find) -> None:
    def telling(_: Path) -> CheckResult:
        return CheckResult(True, f"saw {MARKER}", {MARKER: 1, "text": MARKER, "rows": 3})

    def raising_check(_: Path) -> CheckResult:
        raise ValueError(MARKER)

    checks = [Check("telling", telling), Check("raising", raising_check, blocking=False)]
    secret.declared[:] = [notes(checks=checks)]
    secret.run(*FAST)
    assert outside_private_tree(secret, files_with) == []


def test_error_names_the_type_and_the_place_only(secret: Bench) -> None:
    def work(_: object) -> None:
        raise ValueError(MARKER)

    with pytest.raises(StepError) as caught:
        in_confidence(work, key=private("text/notes"), namespace=secret.namespace, run_id="run-1")
    assert MARKER not in str(caught.value)
    assert caught.value.__cause__ is None
    assert caught.value.__context__ is None
    log = secret.settings.root / "private/runs/run-1/steps/private__text__notes.log"
    assert MARKER in log.read_text()
