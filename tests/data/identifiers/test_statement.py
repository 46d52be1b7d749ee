"""`delivery.json` and its folder: what is refused, and that the refusal quotes nothing."""

import json
import os
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from factory.data.fetch import partner
from factory.data.identifiers.statement import read_statement
from factory.data.identifiers.verify import verify_files
from factory.errors import DeliveryRefused, SourceError

CANARY = "canary-7f3a@example.org"
type Change = Callable[[dict[str, Any]], None]


def changed(folder: Path, change: Change) -> None:
    path = folder / "delivery.json"
    value = json.loads(path.read_text(encoding="utf-8"))
    change(value)
    path.write_text(json.dumps(value), encoding="utf-8")


def refused(folder: Path) -> str:
    with pytest.raises(DeliveryRefused) as caught:
        verify_files(folder, read_statement(folder))
    shown = "".join(traceback.format_exception(caught.value))
    assert CANARY not in shown
    assert caught.value.__context__ is None
    return str(caught.value)


def test_a_complete_delivery(make_delivery: Any) -> None:
    folder = make_delivery({"b/notes.jsonl": "{}", "a.txt": ""})
    statement = read_statement(folder)
    assert statement.pseudonymization.surrogates
    assert verify_files(folder, statement) == ["a.txt", "b/notes.jsonl"]


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda v: v.pop("partner"), "partner: Field required"),
        (lambda v: v.pop("agreement"), "agreement: Field required"),
        (lambda v: v.pop("pseudonymization"), "pseudonymization: Field required"),
        (lambda v: v["pseudonymization"].pop("signed_by"), "pseudonymization.signed_by"),
        (lambda v: v["pseudonymization"].update(signed_by="  "), "pseudonymization.signed_by"),
        (lambda v: v["pseudonymization"].update(signed_by="\u200b"), "pseudonymization.signed_by"),
        (lambda v: v["pseudonymization"].update(signed_by="."), "pseudonymization.signed_by"),
        (lambda v: v["pseudonymization"].update(signed_by=None), "pseudonymization.signed_by"),
        (lambda v: v["pseudonymization"].update(date="2999-01-01"), "lies in the future"),
        (lambda v: v["pseudonymization"].update(date=CANARY), "pseudonymization.date"),
        (lambda v: v["pseudonymization"].update(date="0001-01-01"), "lies before 1990"),
        (lambda v: v["pseudonymization"].update(date="1989-12-31"), "lies before 1990"),
        (lambda v: v["pseudonymization"].update(surrogates="yes"), "pseudonymization.surrogates"),
        (lambda v: v["pseudonymization"].pop("surrogates"), "pseudonymization.surrogates"),
        (lambda v: v["pseudonymization"].update(pseudonym_prefix="4"), "pseudonym_prefix"),
        (lambda v: v["pseudonymization"].update(pseudonym_prefix=""), "pseudonym_prefix"),
        (lambda v: v.update(files={}), "files"),
        (lambda v: v.update(files={CANARY: "0"}), "files, entry 1"),
        (lambda v: v["files"].update({"../x": "0" * 64}), "entries [2]"),
        (lambda v: v["files"].update({"/etc/passwd": "0" * 64}), "entries [2]"),
        (lambda v: v["files"].update({"a\\b": "0" * 64}), "entries [2]"),
        (lambda v: v["files"].update({"delivery.json": "0" * 64}), "entries [2]"),
        (lambda v: v.update(burned_in_allowed=[CANARY]), "burned_in_allowed has 1"),
        (lambda v: v.update({CANARY: CANARY}), "a field"),
        (lambda v: v.update(partner={CANARY: 1}), "partner"),
    ],
)
def test_incomplete_statements(make_delivery: Any, change: Change, says: str) -> None:
    folder = make_delivery({"a.txt": "x"})
    changed(folder, change)
    assert says in refused(folder)


@pytest.mark.parametrize(
    "prefix",
    [
        "MRN",
        "mrn-",
        "Mrn_",
        "XMRN",
        "HOSP-MRN-",
        "HOSP-SSN-",
        "PatientID",
        "pat_no",
        "SSN",
        "ACCT",
        "Tel",
        "NHS",
    ],
)
def test_a_prefix_that_would_excuse_real_numbers(make_delivery: Any, prefix: str) -> None:
    folder = make_delivery({"a.txt": "x"}, pseudonymization={"pseudonym_prefix": prefix})
    said = refused(folder)
    assert "pseudonymization.pseudonym_prefix" in said
    assert "is a word that real numbers are written with" in said
    assert f"{prefix}" not in said.replace("pseudonym_prefix", "")


PSEUDONYMS = [
    *("SUBJ-", "PSN", "anon_", "Study7-", "PAT-", "CASE"),
    *("NEXT-", "TEXT", "CONTEXT-", "HOTEL-", "BASIN-", "IDEA-", "ADNI-"),
]


@pytest.mark.parametrize("prefix", PSEUDONYMS)
def test_a_prefix_of_their_own(make_delivery: Any, prefix: str) -> None:
    folder = make_delivery({"a.txt": "x"}, pseudonymization={"pseudonym_prefix": prefix})
    assert read_statement(folder).pseudonymization.pseudonym_prefix == prefix


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"{",
        b"[]",
        b"null",
        b"\xff\xfe{}",
        b'{"a": 1, "a": 2}',
        b"[" * 100_000,
        f'"{CANARY}"'.encode(),
        f"{{{CANARY}}}".encode(),
        b'{"partner": NaN}',
    ],
    ids=range(10),
)
def test_what_is_no_statement(make_delivery: Any, text: bytes) -> None:
    folder = make_delivery({"a.txt": "x"})
    (folder / "delivery.json").write_bytes(text)
    assert "delivery.json" in refused(folder)


def test_no_statement(tmp_path: Path) -> None:
    assert "has no delivery.json" in refused(tmp_path)


def test_a_statement_that_is_a_link(make_delivery: Any, tmp_path: Path) -> None:
    folder = make_delivery({"a.txt": "x"})
    (folder / "delivery.json").rename(tmp_path / "elsewhere.json")
    (folder / "delivery.json").symlink_to(tmp_path / "elsewhere.json")
    assert "has no delivery.json" in refused(folder)


def test_files_that_differ(make_delivery: Any) -> None:
    folder = make_delivery({"a.txt": "x", "b.txt": "y", "c/d.txt": "z"})
    (folder / "a.txt").write_text("X")
    (folder / "b.txt").unlink()
    (folder / "e.txt").write_text("extra")
    (folder / "c" / ".hidden").write_text("extra")
    said = refused(folder)
    for one in (
        "a.txt differs from the sha256",
        "b.txt is listed but missing",
        "e.txt is not listed",
        "c/.hidden is not listed",
    ):
        assert one in said
    assert "d.txt" not in said


def test_links_and_pipes(make_delivery: Any, tmp_path: Path) -> None:
    folder = make_delivery({"a.txt": "x", "b.txt": "y"})
    (folder / "a.txt").rename(tmp_path / "a.txt")
    (folder / "a.txt").symlink_to(tmp_path / "a.txt")
    (folder / "more").symlink_to(tmp_path)
    os.mkfifo(folder / "pipe")
    said = refused(folder)
    assert "a.txt is a link" in said
    assert "more is a link" in said
    assert "pipe is a link or no regular file" in said


def test_a_folder_that_cannot_be_read(make_delivery: Any, monkeypatch: Any) -> None:
    folder = make_delivery({"a.txt": "x", f"{CANARY}/b.txt": "y"})
    statement = read_statement(folder)
    scandir = os.scandir

    def scan(path: Any) -> Any:
        if Path(path).name == CANARY:
            raise PermissionError(13, "Permission denied", str(path))
        return scandir(path)

    monkeypatch.setattr(os, "scandir", scan)
    with pytest.raises(DeliveryRefused, match="it is not known whether it holds more") as caught:
        verify_files(folder, statement)
    assert CANARY not in str(caught.value)
    with pytest.raises(SourceError, match="so what is in it would be missing") as refused:
        partner._hash(folder)
    assert CANARY not in str(refused.value)


def test_a_file_named_after_a_patient_is_not_named(make_delivery: Any) -> None:
    folder = make_delivery({f"letters/{CANARY}.txt": "x", "MRN_00423178.txt": "y", "c.txt": "z"})
    (folder / f"letters/{CANARY}.txt").unlink()
    (folder / "MRN_00423178.txt").write_text("other")
    said = refused(folder)
    assert "00423178" not in said
    assert said.count("its name is withheld") == 2


def test_many_problems_are_cut_short(make_delivery: Any) -> None:
    folder = make_delivery({f"{number}.txt": "x" for number in range(50)})
    for path in folder.glob("*.txt"):
        path.unlink()
    assert "and 30 more" in refused(folder)
