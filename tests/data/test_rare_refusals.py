"""Refusals that no other test meets: what seldom happens is refused in plain words as well."""

import importlib.util
import os
import subprocess
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from factory import discovery
from factory.data import Check, CheckResult, Git, Row, checks, energon, making, raw
from factory.data.engines.local import Local
from factory.data.fetch import git as fetch_git
from factory.data.fetch import local, objects, partner, staging_area
from factory.data.fetch.errand import Errand
from factory.data.formats import beside
from factory.data.identifiers.statement import read_statement
from factory.data.pattern import Pattern, Rows
from factory.data.phases import Workshop
from factory.data.progress import silent
from factory.data.reader import Notes, read
from factory.data.sources import LocalFiles
from factory.errors import (
    BadFile,
    BadRow,
    DeclarationError,
    DeliveryRefused,
    SettingsError,
    SourceError,
    StepError,
)


def passes(directory: Path) -> CheckResult:
    return CheckResult(directory.is_dir(), "")


@pytest.mark.parametrize("name", ["", "two words", "a/b", "x" * 101])
def test_a_check_with_a_name_that_cannot_be_shown(name: str) -> None:
    with pytest.raises(DeclarationError, match="cannot be used; write letters, digits and '_'"):
        Check(name, passes)


@pytest.mark.parametrize("reason", [3, None, "", " "])
def test_a_check_of_a_reason_that_no_row_has(reason: Any) -> None:
    with pytest.raises(DeclarationError, match="write the reason for which `clean` rejects rows"):
        checks.rejected(reason, at_most=0.1)


@pytest.mark.parametrize(
    ("rows", "says"),
    [
        ({"encoding": "utf-9"}, "encoding is 'utf-9'"),
        ({"delimiter": "::"}, "delimiter is '::'"),
        ({"quote": ""}, "quote is ''"),
        ({"columns": ("a", "a")}, "columns is ('a', 'a')"),
        ({"min_confidence": 0}, "min_confidence is 0"),
        ({"max_ratio": 0.5}, "max_ratio is 0.5"),
        ({"max_ratio": float("nan")}, "max_ratio is nan"),
        ({"max_ratio": float("inf")}, "max_ratio is inf"),
        ({"pattern": "*.xml//A", "encoding": "utf-8-sig"}, "in which no XML can be read"),
        ({"pattern": "*.xml", "encoding": "cp037"}, "encoding is 'cp037', in which no XML"),
        ({"columns": "abc"}, "columns is 'abc'. Write a tuple of texts or None"),
        ({"columns": (1, 2)}, "columns is (1, 2). Write texts"),
        ({"header": 1}, "header is 1. Write True or False"),
        ({"encoding": 3}, "encoding is 3. Write a text or None"),
        ({"max_ratio": "9"}, "max_ratio is '9'. Write a number"),
        ({"max_ratio": True}, "max_ratio is True. Write a number"),
        ({"min_confidence": "high"}, "min_confidence is 'high'. Write a number or None"),
        ({"beside": "*.png"}, "beside is '*.png'. Write a tuple of texts"),
        ({"pattern": 3}, "pattern is 3. Write a text"),
        ({"format": "excel"}, "format is 'excel'"),
        ({"ragged": "drop"}, "ragged is 'drop'"),
        ({"header": False}, "header=False leaves the columns without names"),
        ({"pattern": "a.zip!**/*.dcm//frame"}, "asks for parts of images inside an archive"),
        ({"pattern": "a.zip!b.zip!*.csv"}, "reaches into an archive within an archive"),
        ({"pattern": "a.zip!**/b.tar.gz/*.csv"}, "reaches into an archive within an archive"),
        ({"pattern": "a.csv!b.csv"}, "asks for members of files that are no archives"),
    ],
)
def test_rows_that_cannot_be_declared(rows: dict[str, Any], says: str) -> None:
    with pytest.raises(DeclarationError) as caught:
        Pattern.parse(Rows(**{"pattern": "*.csv"} | rows))
    assert says in str(caught.value)


def archive(path: Path) -> None:
    with zipfile.ZipFile(path, "w") as packed:
        packed.writestr("a.jsonl", "{}\n")
        packed.writestr("b.png", b"pixels")


def tarred(path: Path) -> None:
    (path.parent / "a.jsonl").write_text("{}\n")
    (path.parent / "b.png").write_bytes(b"pixels")
    command = ["tar", "-C", path.parent, "-cf", path, "a.jsonl", "b.png"]
    subprocess.run(command, check=True)


@pytest.mark.parametrize("rows", ["a.jsonl", "a.zip!a.jsonl", "a.tar!a.jsonl"])
def test_a_file_beside_a_row_that_is_too_large(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, rows: str
) -> None:
    archive(tmp_path / "a.zip")
    tarred(tmp_path / "a.tar")
    (row,) = read(tmp_path, [rows.partition("!")[0]], Pattern.parse(rows), Notes())
    monkeypatch.setattr(beside, "LARGEST_FILE", 5)
    with pytest.raises(BadRow, match=beside.TOO_LARGE):
        row.beside("b.png")


@pytest.mark.parametrize("text", ["{1: {}}", "{,}", '{"a": 1, }', "{[]: 1}"])
def test_keyed_rows_without_names(tmp_path: Path, text: str) -> None:
    (tmp_path / "a.json").write_text(text)
    with pytest.raises(BadFile, match="Expecting a name in double quotes"):
        list(read(tmp_path, ["a.json"], Pattern.parse(Rows("a.json", keyed="id")), Notes()))


def test_a_parquet_column_whose_texts_are_none(tmp_path: Path) -> None:
    texts = pa.array([b"ok", b"\xff\xfe"], pa.binary()).view(pa.string())
    pq.write_table(pa.table({"t": texts}), tmp_path / "a.parquet")
    good, bad = read(tmp_path, ["a.parquet"], Pattern.parse("*.parquet"), Notes())
    assert good.text("t") == "ok"
    with pytest.raises(BadRow, match="text that is not UTF-8"):
        bad.text("t")


def test_what_a_row_does_not_have() -> None:
    plain, record = Row("a.txt", None, data=b""), Row("a.jsonl", 1, json={})
    with pytest.raises(TypeError, match="not XML, so it has no element"):
        _ = plain.element
    with pytest.raises(TypeError, match="not a plain file, so it has no content"):
        _ = record.content


def git(store: Path, *arguments: str, content: bytes = b"") -> str:
    command = ["git", "-C", str(store), *arguments]
    return subprocess.run(command, input=content, capture_output=True, check=True).stdout.decode()


def object_of(store: Path, kind: str, content: bytes) -> str:
    return git(store, "hash-object", "--literally", "-w", "--stdin", "-t", kind, content=content)


def test_a_repository_with_a_path_that_leaves_it(tmp_path: Path) -> None:
    store = tmp_path / "store"
    store.mkdir()
    git(store, "init", "--quiet", "--bare")
    blob = bytes.fromhex(object_of(store, "blob", b"x"))
    inner = bytes.fromhex(object_of(store, "tree", b"100644 a.jsonl\0" + blob))
    tree = object_of(store, "tree", b"40000 ..\0" + inner)
    who = b"a <a@example.org> 0 +0000\n"
    said = b"tree " + tree.encode() + b"author " + who + b"committer " + who + b"\nx\n"
    commit = object_of(store, "commit", said).strip()
    git(store, "update-ref", "refs/heads/main", commit)
    (tmp_path / "scratch").mkdir()
    source = Git(url=store.as_uri(), revision=commit, rows="*.jsonl")
    errand = Errand(
        scratch=tmp_path / "scratch", mirror=None, drops=None, closed=(), inputs={}, say=silent
    )
    with pytest.raises(SourceError, match=r"holds the path '\.\./a\.jsonl', which leaves it"):
        fetch_git.fetch(source, errand)
    assert not list((tmp_path / "scratch").rglob("a.jsonl"))
    assert not (tmp_path / "a.jsonl").exists()


def test_a_statement_that_is_far_too_long(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from factory.data.identifiers import statement

    monkeypatch.setattr(statement, "MAXIMUM_BYTES", 10)
    (tmp_path / "delivery.json").write_text('{"partner": "x"}')
    with pytest.raises(DeliveryRefused, match="larger than 10 bytes; it is not read"):
        read_statement(tmp_path)


def test_a_delivery_with_nowhere_to_be_staged(tmp_path: Path) -> None:
    (tmp_path / "state").write_text("a file")
    with (
        pytest.raises(SettingsError, match="where a delivery cannot be staged"),
        staging_area._made(tmp_path / "state"),
    ):
        pass


def test_a_file_of_a_delivery_that_is_exchanged_for_a_link(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").symlink_to("/etc/passwd")
    with (
        pytest.raises(SourceError, match=r"of the drop folder .* cannot be read"),
        partner._opened(tmp_path, tmp_path / "a.jsonl", 1),
    ):
        pass


@pytest.mark.skipif(os.geteuid() != 0, reason="becoming another account needs root")
def test_a_drop_folder_of_another_account(tmp_path: Path) -> None:
    folder = tmp_path / "drops" / "letters"
    folder.mkdir(parents=True)
    folder.chmod(0o000)
    for one in (tmp_path, *tmp_path.parents[:3]):
        one.chmod(one.stat().st_mode | 0o011)
    source = LocalFiles(folder="letters", rows="*", classification="private")
    errand = Errand(
        scratch=tmp_path, mirror=None, drops=tmp_path / "drops", closed=(), inputs={}, say=silent
    )
    os.seteuid(65534)
    try:
        with pytest.raises(SourceError, match="cannot be read by this account"):
            local.fetch(source, errand)
    finally:
        os.seteuid(0)


def test_a_drop_folder_that_changes_while_it_is_read(runner, letters, monkeypatch) -> None:
    before = raw.take

    def late(folder: Path, *given: Any) -> None:
        before(folder, *given)
        (given[1] / "letters.jsonl").write_text("{}\n")

    monkeypatch.setattr(making.raw, "take", late)
    with pytest.raises(SourceError, match="changed while it was read"):
        runner.until(letters, "raw")
    assert runner.namespace.current(letters.key / "raw") is None


def test_a_store_that_sends_more_than_was_asked_for(tmp_path: Path) -> None:
    class Talkative:
        def info(self, path: str) -> dict[str, int]:
            return {"size": 3}

        def cat_file(self, path: str, start: int, end: int) -> bytes:
            return b"more than three"

    store = objects._Store(Talkative(), "x", "memory://x", tmp_path)
    with pytest.raises(SourceError, match=r"sends other parts of a\.txt than those asked for"):
        store.fetch("a.txt", "0" * 64)


def test_finished_work_that_disappears(tmp_path: Path) -> None:
    shop = Workshop(tmp_path, Local(), silent)

    def fill(folder: Path) -> dict[str, Any]:
        return {}

    def gone(*given: Any, **named: Any) -> None:
        return None

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("factory.data.phases.finish", gone)
        with pytest.raises(StepError, match="is gone although it was finished"):
            shop.once("decided", fill)


@pytest.mark.slow
def test_shards_that_energon_cannot_prepare(tmp_path: Path) -> None:
    (tmp_path / energon.shard_name(0)).write_bytes(b"no tar" * 1000)
    with pytest.raises(StepError, match="Energon could not prepare"):
        energon.prepare(tmp_path, 1, silent)


def test_no_definitions_at_all(monkeypatch: pytest.MonkeyPatch) -> None:
    find: Callable[..., Any] = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name: None if name == "definitions" else find(name)
    )
    with pytest.raises(DeclarationError, match="'definitions' cannot be imported"):
        discovery.definitions_folder()
