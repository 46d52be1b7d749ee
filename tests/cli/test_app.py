"""Exit codes and words: what a person sees when a command line is wrong."""

import socket
from pathlib import Path

import pytest

from factory.keys import public
from factory.namespace import Namespace
from factory.reports import StepLine
from tests.cli.conftest import Factory


def test_help_lists_every_command(factory: Factory) -> None:
    found = factory("--help")
    assert found.code == 0
    for command in ("path", "verify", "versions", "rollback", "new-dataset", "datasets", "runs"):
        assert command in found.out


@pytest.mark.parametrize("words", [["bogus"], ["path"], ["versions", "--bogus"], ["runs", "x"]])
def test_unknown_words_are_usage_errors(factory: Factory, words: list[str]) -> None:
    assert factory(*words).code == 2


def test_a_root_that_was_chosen_and_is_missing_is_not_made(
    factory: Factory, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    missing = root / "not-mounted"
    monkeypatch.setenv("FACTORY_ROOT", str(missing))
    found = factory("path", "public/text/notes")
    assert found.code == 1
    assert str(missing) in found.err
    assert not missing.exists()


def test_an_unknown_deployment_is_named(factory: Factory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FACTORY_DEPLOYMENT", "stagging")
    found = factory("path", "public/text/notes")
    assert found.code == 1
    assert "'stagging'" in found.err


def test_datasets_lists_what_is_declared(factory: Factory) -> None:
    rows = factory("datasets", "--json").facts
    declared = {row["dataset"]: row for row in rows}
    assert {"public/text/plos", "public/text/medquad"} <= declared.keys()
    assert declared["public/text/plos"]["steps current"] == "0/7"


def test_new_dataset_never_overwrites(factory: Factory) -> None:
    found = factory("new-dataset", str(public("text/plos")))
    assert found.code == 1
    assert "exists already" in found.err


def test_an_unknown_engine_is_a_usage_error(factory: Factory) -> None:
    found = factory("materialize", "public/text/plos", "--engine", "spark")
    assert found.code == 2
    assert "no engine 'spark'; write one of local, ray" in found.err


@pytest.mark.parametrize("command", ["path", "verify", "versions", "diff", "card", "materialize"])
def test_an_unknown_key_is_answered_with_the_nearest(factory: Factory, command: str) -> None:
    found = factory(command, "public/text/medquadd")
    assert found.code in (1, 2)
    assert "Did you mean public/text/medquad" in found.err
    assert "for instance public/text/plos" in factory(command, "text/medquad").err


def test_a_part_of_the_tree_may_be_empty(factory: Factory) -> None:
    assert "Nothing is current under public/text in" in factory("path", "public/text").err


def test_set_needs_a_field_and_a_value(factory: Factory) -> None:
    found = factory("launch", "smoke", "--set", "workers")
    assert found.code == 2
    assert "FIELD=VALUE" in found.err


def test_runs_of_an_empty_namespace(factory: Factory) -> None:
    found = factory("runs", "list", "--json")
    assert (found.code, found.facts) == (0, [])


def test_a_run_half_way_is_shown_without_its_last_partial_line(
    factory: Factory, root: Path
) -> None:
    run = Namespace(root).open_run("public", "0a1b2c3d-0000")
    line = StepLine(
        step=1, of=9, loss=2.5, grad_norm=None, learning_rate=None, tokens=64, seconds=0.1
    )
    run.append("monitor/steps.jsonl", line.model_dump_json())
    with (run.path / "monitor" / "steps.jsonl").open("a") as file:
        file.write('{"kind": "step", "st')
    shown = factory("runs", "show", "0a1b", "--json").facts
    assert shown["steps"] == "1/9"
    assert [entry["loss"] for entry in shown["steps_log"]] == [2.5]
    missing = factory("runs", "show", "ffff")
    assert missing.code == 1
    assert "'ffff'" in missing.err


def test_new_dataset_of_a_kind_that_there_is_not(factory: Factory) -> None:
    found = factory("new-dataset", "public/text/nothing", "--kind", "video")
    assert found.code == 1
    assert "no template for 'video'; write one of document, article" in found.err


def test_new_dataset_never_nests(factory: Factory) -> None:
    for key in ("public/text", "public/text/plos/raw"):
        found = factory("new-dataset", key)
        assert found.code == 1, key
        assert "lie inside one another" in found.err


def test_one_unreadable_run_does_not_hide_the_others(factory: Factory, root: Path) -> None:
    namespace = Namespace(root)
    for run, text in (("aaaa-0001", b'{"recipe": "deb'), ("bbbb-0002", None)):
        directory = namespace.open_run("public", run)
        if text is not None:
            directory.create("spec.json", text)
    found = factory("runs", "list", "--json")
    assert found.code == 0
    assert {row["run"] for row in found.facts} == {"aaaa-000", "bbbb-000"}
    assert "spec.json cannot be read" in found.err


def test_dev_refuses_a_busy_port(factory: Factory) -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        found = factory("dev", "--port", str(port))
    assert found.code == 1
    assert f"127.0.0.1:{port} cannot be used" in found.err
