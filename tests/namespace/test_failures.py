"""The file system says no: one clear error, and what was there is still there."""

import os
import subprocess
import sys

import pytest

from factory.errors import NamespaceError
from factory.keys import public
from factory.namespace import Namespace

FULL = """
import resource, sys
from pathlib import Path
from factory.errors import NamespaceError
from factory.keys import public
from factory.namespace import Namespace, Provenance

def write(namespace, size, name):
    with namespace.write(public("text/x"), inputs=[], input_id=name, source="public",
                         provenance=Provenance(run_id="r", identity="i"), parameters={}, code="",
                         checks=[], licenses=[]) as staging:
        (staging.path / "data.bin").write_bytes(b"x" * size)
        staging.describe(content_id=name)
    return staging.version

namespace = Namespace(Path(sys.argv[1]))
old = write(namespace, 10, "old")
namespace.promote(old)
resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))
try:
    write(namespace, 1_000_000, "new")
except NamespaceError as error:
    print(error)
assert namespace.current(old.key) == old
assert namespace.verify(old) == []
assert namespace.versions(old.key) == [old]
"""


def test_the_root_is_missing(tmp_path, key, write) -> None:
    missing = tmp_path / "not" / "mounted"
    namespace = Namespace(missing)

    for call in (
        lambda: write(namespace=namespace),
        lambda: namespace.current(key),
        lambda: namespace.find(key, "x"),
        lambda: namespace.versions(key),
        lambda: list(namespace.keys()),
        lambda: namespace.open_run("public", "r"),
        lambda: namespace.run("r"),
        namespace.runs,
    ):
        with pytest.raises(NamespaceError) as refusal:
            call()
        assert str(refusal.value) == (
            f"The namespace root {missing} does not exist. Mount it, create it with `mkdir -p`, "
            "or set FACTORY_ROOT to where it is."
        )
    assert not missing.parent.exists()


def test_the_root_is_a_file(tmp_path, write) -> None:
    file = tmp_path / "file"
    file.write_text("")
    with pytest.raises(NamespaceError, match="is not a directory"):
        write(namespace=Namespace(file))


def test_the_root_is_read_only(mount, key, write, passed) -> None:
    root = mount()
    namespace = Namespace(root)
    version = write(namespace=namespace).version
    run = namespace.open_run("public", "run-1")
    subprocess.run(["mount", "-o", "remount,ro", str(root)], check=True)  # noqa: S607

    for call in (
        lambda: write("two", namespace=namespace),
        lambda: write(namespace=namespace, key=public("new")),
        lambda: namespace.record_checks(version, {"files": passed}),
        lambda: namespace.open_run("public", "run-2"),
        lambda: run.append("lines", "line"),
        lambda: run.create("file", b""),
        lambda: run.directory("new"),
    ):
        with pytest.raises(
            NamespaceError, match=r"Read-only file system\. Is .* mounted read-only"
        ):
            call()

    assert namespace.versions(key) == [version]
    assert namespace.verify(version) == []
    assert namespace.find(key, "input") == version
    assert namespace.run("run-1") == run


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write into a directory of mode 0555")
def test_an_account_without_access(root, write) -> None:
    root.chmod(0o555)
    with pytest.raises(NamespaceError, match="Permission denied"):
        write()
    root.chmod(0o755)


@pytest.mark.skipif(os.geteuid() != 0, reason="becoming another account needs root")
def test_a_tree_that_another_account_may_not_read(root, write, tmp_path) -> None:
    from factory.keys import private

    write(key=private("text/letters"), source="private")
    write(key=public("text/articles"))
    (root / "private").chmod(0o700)
    code = (
        "import os, sys; from pathlib import Path\n"
        "from factory.namespace import Namespace; from factory.keys import private\n"
        "os.setuid(65534)\n"
        "namespace = Namespace(Path(sys.argv[1]))\n"
        "print([str(key) for key in namespace.keys()], namespace.runs())\n"
        "try: namespace.current(private('text/letters'))\n"
        "except Exception as error: print(type(error).__name__, error)\n"
    )
    for directory in [root, *root.parents][:-2]:
        directory.chmod(directory.stat().st_mode | 0o055)
    out = subprocess.run(
        [sys.executable, "-c", code, str(root)], capture_output=True, text=True, check=True
    ).stdout.splitlines()

    assert out[0] == "['public/text/articles'] []"
    assert out[1].startswith("NamespaceError The namespace refuses reading private/text/letters")


def test_a_full_disk(mount, key, write, passed) -> None:
    root = mount("tmpfs", "size=1m")
    namespace = Namespace(root)
    version = write(namespace=namespace).version
    namespace.record_checks(version, {"files": passed})
    namespace.promote(version)

    with pytest.raises(NamespaceError) as refusal:
        write("two", namespace=namespace, files={"big.bin": b"x" * 2_000_000})

    assert str(refusal.value).startswith(f"No space left while writing {key}: the namespace root ")
    assert f"{root} has " in str(refusal.value)
    assert "MiB free of 1.0 MiB" in str(refusal.value)
    assert namespace.current(key) == version
    assert namespace.versions(key) == [version]
    assert namespace.verify(version) == []
    assert list((root / "public/text/plos/raw.versions").glob(".[sw]*")) == []
    write("three", namespace=namespace, files={"fits.bin": b"x" * 500_000})


def test_no_more_inodes(mount, key, write) -> None:
    namespace = Namespace(mount("tmpfs", "size=4m,nr_inodes=40"))
    version = write(namespace=namespace).version

    with pytest.raises(NamespaceError, match=f"No space left while writing {key}"):
        write("two", namespace=namespace, files={str(number): b"" for number in range(60)})
    assert namespace.versions(key) == [version]


def test_a_disk_that_fills_up_in_a_run(mount) -> None:
    run = Namespace(mount("tmpfs", "size=1m")).open_run("public", "run-1")
    run.append("lines", "one")

    with pytest.raises(NamespaceError, match="No space left while writing public/runs/run-1"):
        run.append("lines", "x" * 2_000_000)
    with pytest.raises(NamespaceError, match="No space left while writing public/runs/run-1"):
        run.create("file", b"x" * 2_000_000)

    assert [path.name for path in run.path.iterdir() if path.name != ".opened"] == ["lines"]
    os.truncate(run.path / "lines", 5_000)  # free space; the cut-off line stays
    run.append("lines", "two")
    lines = (run.path / "lines").read_text().splitlines()
    assert lines[0] == "one"
    assert lines[-1] == "two"
    assert len(lines) == 3


def test_a_file_beyond_what_is_allowed(root) -> None:
    result = subprocess.run(
        [sys.executable, "-c", FULL, str(root)], capture_output=True, text=True, check=True
    )
    assert result.stdout.startswith("No space left while writing public/text/x: the namespace root")


def test_a_full_database_is_a_full_disk(mount, key, begin) -> None:
    import sqlite3

    namespace = Namespace(mount("tmpfs", "size=1m"))

    def attempt() -> None:
        with begin(namespace=namespace) as staging:
            database = sqlite3.connect(staging.path / "index.sqlite")
            try:
                database.execute("create table big (data blob)")
                database.execute("insert into big values (zeroblob(2000000))")
                database.commit()
            finally:
                database.close()

    with pytest.raises(NamespaceError, match="No space left while writing"):
        attempt()


def test_the_root_goes_away_during_a_write(root, begin) -> None:
    def attempt() -> None:
        with begin() as staging:
            root.rename(root.with_name("unmounted"))
            (staging.path / "a").write_text("a")

    with pytest.raises(NamespaceError, match="The namespace went away while writing public/text"):
        attempt()
    assert not root.exists()


def test_an_error_of_the_step_itself_stays_what_it_is(begin, tmp_path) -> None:
    def attempt() -> None:
        with begin():
            (tmp_path / "not there").read_text()

    with pytest.raises(FileNotFoundError):
        attempt()
