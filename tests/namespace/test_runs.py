import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from factory.errors import NamespaceError
from factory.namespace import RunDirectory
from tests.namespace.planted import PLANTED, ends_soon

APPEND = """
import sys
from pathlib import Path
from factory.namespace import RunDirectory
run = RunDirectory("public", "run-1", Path(sys.argv[1]))
for number in range(300):
    run.append("monitor/steps.jsonl", f"{sys.argv[2]} {number} " + sys.argv[2] * 2000)
"""

CREATE = """
import sys
from pathlib import Path
from factory.errors import NamespaceError
from factory.namespace import RunDirectory
run = RunDirectory("public", "run-1", Path(sys.argv[1]))
won = 0
for number in range(60):
    try:
        run.create(f"messages/{number:06}.jsonl", sys.argv[2].encode() * 5000)
        won += 1
    except NamespaceError:
        pass
print(won)
"""


@pytest.fixture
def run(namespace) -> RunDirectory:
    return namespace.open_run("public", "run-1")


def test_a_run_has_a_directory_under_its_classification(namespace, root, run) -> None:
    assert run.path == root / "public" / "runs" / "run-1"
    assert run.path.is_dir()
    assert str(run) == "public/runs/run-1"
    assert namespace.run("run-1") == run
    closed = namespace.open_run("private", "run-2")
    assert closed.path == root / "private" / "runs" / "run-2"
    assert namespace.run("run-2") == closed


def test_opened_twice_it_is_the_same(namespace, run) -> None:
    run.append("lines", "one")
    opened_at = run.opened_at
    again = namespace.open_run("public", "run-1")
    assert again == run
    assert again.opened_at == opened_at
    assert (again.path / "lines").read_text() == "one\n"


def test_a_run_is_not_in_both_trees(namespace, run) -> None:
    with pytest.raises(NamespaceError, match="Run run-1 is public already; it cannot be private"):
        namespace.open_run("private", run.run_id)


@pytest.mark.parametrize(
    "run_id",
    ["", ".", "..", "../../private/runs/x", "a/b", "-a", "A", "a_b", "a.b", "a\n", "a" * 65, "ü"],
)
def test_ids_that_no_run_can_have(namespace, root, run_id) -> None:
    for call in (
        lambda: namespace.open_run("public", run_id),
        lambda: namespace.run(run_id),
        lambda: RunDirectory("public", run_id, root),
    ):
        with pytest.raises(NamespaceError, match="cannot be a directory"):
            call()
    assert list(root.iterdir()) == []


def test_a_classification_that_there_is_not(root) -> None:
    with pytest.raises(NamespaceError, match=r"A run is public or private, not '\.\./private'"):
        RunDirectory("../private", "run-1", root)  # type: ignore[arg-type]


def test_a_run_that_is_not_there(namespace, root) -> None:
    with pytest.raises(NamespaceError, match=r"No run 0000 in .*`factory runs list` shows"):
        namespace.run("0000")
    with pytest.raises(NamespaceError, match="public/runs/run-9 does not exist"):
        RunDirectory("public", "run-9", root).append("a", "b")
    assert not (root / "public").exists()


@pytest.mark.parametrize(
    "name",
    [
        "",
        "/etc/passwd",
        "../run-2/record.json",
        "../../../private/runs/x/y",
        "a/../../b",
        "a//b",
        "./a",
        ".opened",
        "a/",
        "a\nb",
        "a\0b",
        "a/" * 3 + "..",
        "x" * 201,
    ],
)
def test_names_that_lead_out_are_refused(run, name) -> None:
    for call in (
        lambda: run.append(name, "line"),
        lambda: run.create(name, b"data"),
        lambda: run.directory(name),
    ):
        with pytest.raises(NamespaceError, match="is not a name inside a run's directory"):
            call()
    assert [path.name for path in run.path.iterdir()] == [".opened"]


def test_a_link_planted_in_a_public_run_is_not_followed(namespace, run) -> None:
    private = namespace.open_run("private", "secret-run")
    private.create("notes", b"private\n")
    (run.path / "folder").symlink_to(private.path)
    (run.path / "file").symlink_to(private.path / "notes")

    for call in (
        lambda: run.append("file", "line"),
        lambda: run.append("folder/notes", "line"),
        lambda: run.create("folder/new", b""),
        lambda: run.directory("folder"),
        lambda: run.directory("folder/inner"),
    ):
        with pytest.raises(NamespaceError, match="is a link or not of the kind asked for"):
            call()
    with pytest.raises(NamespaceError, match="file exists already"):
        run.create("file", b"")

    assert (private.path / "notes").read_bytes() == b"private\n"
    assert {path.name for path in private.path.iterdir()} == {".opened", "notes"}


@pytest.mark.parametrize("plant", PLANTED)
def test_a_line_is_appended_to_a_file_and_waits_for_nobody(run, root, plant) -> None:
    PLANTED[plant](run.path / "lines.jsonl", root / "letter")
    with ends_soon():
        for _ in range(20):  # more than a pipe holds
            with pytest.raises(NamespaceError, match=r"lines\.jsonl is a link or not of the kind"):
                run.append("lines.jsonl", "line" * 1000)
    assert not (root / "letter").exists()


def test_a_run_directory_that_is_itself_a_link(namespace, root) -> None:
    private = namespace.open_run("private", "secret-run")
    (root / "public/runs").mkdir(parents=True)
    (root / "public/runs/alias").symlink_to(private.path)

    with pytest.raises(NamespaceError, match="No run alias"):
        namespace.run("alias")
    assert namespace.runs() == [private]
    with pytest.raises(NamespaceError, match="is a link"):
        RunDirectory("public", "alias", root).append("x", "y")


def test_append_and_directory(run) -> None:
    run.append("monitor/steps.jsonl", "one")
    run.append("monitor/steps.jsonl", "twö")
    assert (run.path / "monitor/steps.jsonl").read_text("utf-8") == "one\ntwö\n"
    assert run.directory("checkpoints/iter_10") == run.path / "checkpoints/iter_10"
    assert run.directory("checkpoints/iter_10").is_dir()

    with pytest.raises(NamespaceError, match="holds a line break"):
        run.append("monitor/steps.jsonl", "two\nlines")
    with pytest.raises(NamespaceError, match="is a link or not of the kind"):
        run.append("monitor", "a directory")
    with pytest.raises(NamespaceError, match="is a link or not of the kind"):
        run.directory("monitor/steps.jsonl")


def test_a_line_cut_off_by_a_crash_does_not_swallow_the_next(run) -> None:
    (run.path / "lines").write_text("whole\ncut o")
    run.append("lines", "next")
    assert (run.path / "lines").read_text() == "whole\ncut o\nnext\n"


def test_create_never_replaces(run) -> None:
    assert run.create("record.json", b"first").read_bytes() == b"first"
    for data in (b"second", b"first"):
        with pytest.raises(NamespaceError, match=r"record\.json exists already, and a run never"):
            run.create("record.json", data)
    assert (run.path / "record.json").read_bytes() == b"first"
    assert {path.name for path in run.path.iterdir()} == {".opened", "record.json"}


def test_newest_first(namespace) -> None:
    for number, run_id in enumerate(["b", "c", "a"]):
        opened = namespace.open_run("private" if run_id == "c" else "public", run_id)
        os.utime(opened.path / ".opened", (number, number))
    now = time.time()
    os.utime(namespace.run("b").path, (now, now))  # a file came later

    assert [run.run_id for run in namespace.runs()] == ["a", "c", "b"]


def processes(code: str, root: Path) -> list[str]:
    started = [
        subprocess.Popen(
            [sys.executable, "-c", code, str(root), letter], stdout=subprocess.PIPE, text=True
        )
        for letter in "abcd"
    ]
    outputs = [process.communicate()[0] for process in started]
    assert [process.returncode for process in started] == [0] * 4
    return outputs


def test_lines_of_several_processes_do_not_mix(root, run) -> None:
    processes(APPEND, root)

    lines = (run.path / "monitor/steps.jsonl").read_text().splitlines()
    assert len(lines) == 1200
    for letter in "abcd":
        mine = [line for line in lines if line[0] == letter]
        assert mine == [f"{letter} {number} {letter * 2000}" for number in range(300)]


def test_one_of_several_processes_creates_a_file_whole(root, run) -> None:
    won = processes(CREATE, root)

    assert sum(int(count) for count in won) == 60
    for path in (run.path / "messages").iterdir():
        data = path.read_bytes()
        assert len(data) == 5000
        assert len(set(data)) == 1


@pytest.mark.skipif(os.geteuid() != 0, reason="becoming another account needs root")
@pytest.mark.parametrize(
    ("tree", "runs", "one", "listed"),
    [
        (0o755, 0o755, 0o755, ["run-2", "run-1"]),
        (0o755, 0o755, 0o700, ["run-1"]),
        (0o755, 0o744, 0o755, ["run-1"]),
        (0o755, 0o711, 0o755, ["run-1"]),
        (0o700, 0o755, 0o755, ["run-1"]),
    ],
    ids=["readable", "run closed", "names only", "no names", "tree closed"],
)
def test_runs_that_an_account_may_not_read_are_not_listed(
    namespace, root: Path, tree: int, runs: int, one: int, listed: list[str]
) -> None:
    namespace.open_run("public", "run-1").path.chmod(0o755)
    closed = namespace.open_run("private", "run-2").path
    for path, mode in ((closed, one), (closed.parent, runs), (closed.parent.parent, tree)):
        path.chmod(mode)
    for above in (root, *root.parents):
        if "pytest" in str(above):
            above.chmod(0o755)
    code = (
        "import os, sys, json\n"
        "from pathlib import Path\n"
        "from factory.namespace import Namespace\n"
        "os.setuid(65534)\n"
        "print(json.dumps([run.run_id for run in Namespace(Path(sys.argv[1])).runs()]))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(root)], capture_output=True, text=True, check=False
    )
    assert done.stdout.strip() == str(listed).replace("'", '"'), done.stderr
