"""What may go and what stays: each thing that names a version, each in its place."""

import json
import os
import subprocess
import sys
import threading
import time
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path

import pytest

from factory.errors import DamagedVersion, NamespaceError
from factory.keys import private, public
from factory.namespace import Namespace, Version, retention
from factory.namespace.owner import this_process
from factory.namespace.pins import needing
from factory.namespace.retention import Policy
from tests.namespace.planted import PLANTED, ends_soon

RAW, CLEAN, SPLIT = (public(f"text/plos/{name}") for name in ("raw", "clean", "split"))
LONG_AGO = timedelta(days=90)
NOTHING_KEPT = Policy(keep=0, older_than=timedelta(days=14))


@pytest.fixture
def old(write, namespace: Namespace):
    """Publish a version, and let it look as if nobody had touched it for long."""

    def publish(content: str, key=RAW, inputs: list[Version] | None = None, **given) -> Version:
        version = write(content, key=key, input_id=content, inputs=inputs or [], **given).version
        age(version)
        return version

    return publish


def age(version: Version, by: timedelta = LONG_AGO) -> None:
    then = time.time() - by.total_seconds()
    os.utime(version.path, (then, then))


@pytest.fixture
def chain(old):
    """A raw version, what was cleaned from it, and its splits."""
    raw = old("raw")
    clean = old("clean", CLEAN, [raw])
    return raw, clean, old("split", SPLIT, [clean])


def make_current(namespace: Namespace, version: Version, passed) -> None:
    namespace.record_checks(version, {"files": passed})
    namespace.promote(version)
    age(version)


def going(namespace: Namespace, policy: Policy = NOTHING_KEPT) -> list[Version]:
    return retention.plan(namespace.root, policy).going


def collect(namespace: Namespace, policy: Policy = NOTHING_KEPT) -> retention.Collected:
    return retention.collect(namespace.root, policy, namespace.times)


def test_nothing_names_it_and_it_goes(namespace, old) -> None:
    version = old("one")
    freed = retention.space([version])
    assert freed == sum(path.stat().st_size for path in version.path.rglob("*") if path.is_file())

    assert going(namespace) == [version]
    assert version.path.is_dir(), "a plan touches nothing"
    assert collect(namespace).removed == [version]
    assert not version.path.parent.exists(), "nothing is left of the key, locks and index included"
    assert list(namespace.keys()) == []


def test_the_current_version_and_all_it_was_made_from_stay(namespace, chain, passed) -> None:
    raw, clean, split = chain
    make_current(namespace, split, passed)
    assert going(namespace) == []
    kept = retention.plan(namespace.root, NOTHING_KEPT).kept
    assert kept[split] == "current"
    assert kept[raw] == kept[clean] == "others that stay were made from it"


def test_young_versions_stay_whatever_is_asked(namespace, old, write) -> None:
    version = write("young").version
    at_once = Policy(keep=0, older_than=timedelta(0))
    assert going(namespace, at_once) == []
    age(version, timedelta(hours=2))
    assert going(namespace, at_once) == [version]
    assert going(namespace) == []


def test_checks_and_reuse_make_it_young_again(namespace, old, passed) -> None:
    version = old("one")
    namespace.record_checks(version, {"files": passed})
    assert going(namespace) == []
    age(version)
    assert namespace.renew(version)
    assert going(namespace) == []


def test_the_newest_that_a_rollback_could_go_back_to(namespace, old, passed, failed) -> None:
    versions = [old(f"{n}") for n in range(4)]
    for version in versions[:3]:
        namespace.record_checks(version, {"files": passed})
    namespace.record_checks(versions[3], {"files": failed})
    limited = old("limited", limit=5)
    namespace.record_checks(limited, {"files": passed})
    for version in (*versions, limited):
        age(version)

    assert set(going(namespace, Policy(keep=2))) == {versions[0], versions[3], limited}


def run_of(namespace: Namespace, version: Version, run_id: str = "run-1"):
    run = namespace.open_run("public", run_id)
    record = {"launch": {"datasets": {version.key.path: version.id}}}
    run.create("record.json", json.dumps(record).encode())
    return run


def test_what_a_run_record_names_stays(namespace, chain) -> None:
    raw, clean, split = chain
    run_of(namespace, split)
    assert going(namespace) == []
    sources = Policy(keep=0, lineage="sources")
    assert going(namespace, sources) == [clean]
    assert retention.plan(namespace.root, sources).kept[split] == "run run-1"
    assert collect(namespace, sources).removed == [clean]
    assert raw.path.is_dir()
    assert namespace.verify(split) == []


def test_what_the_record_of_a_later_attempt_names_stays(namespace, old) -> None:
    version = old("one")
    run = namespace.open_run("public", "run-1")
    run.create("record.2.json", json.dumps({"pins": [f"{version}"]}).encode())
    assert going(namespace) == []


def test_a_private_run_keeps_a_public_version(namespace, old) -> None:
    version = old("one")
    run = namespace.open_run("private", "run-1")
    run.create("record.json", json.dumps({"pins": [f"{version}"]}).encode())
    assert going(namespace) == []


@pytest.mark.parametrize("name", ["mix.lock", "letters.lock.json"])
@pytest.mark.parametrize("where", ["run", "definitions"])
def test_what_a_lock_names_stays_whatever_its_format(
    namespace, chain, tmp_path, name, where
) -> None:
    _, clean, split = chain
    text = f'[[datasets]]\nkey = "{split.key}"\nversion = "{split.id}"\n'
    if where == "run":
        namespace.open_run("public", "run-1").create(name, text.encode())
        folders = ()
    else:
        folder = tmp_path / "definitions/mixes/deep"
        folder.mkdir(parents=True)
        (folder / name).write_text(text)
        folders = (tmp_path / "definitions",)
    policy = Policy(keep=0, lineage="sources", folders=folders)
    assert going(namespace, policy) == [], "a lock is launched again: all of its lineage stays"
    without = Policy(keep=0)
    assert (split in going(namespace, without)) == (where == "definitions")
    assert clean not in going(namespace, policy)


def test_a_launch_keeps_what_it_pinned_until_its_time_is_over(namespace, old) -> None:
    version = old("one")
    run = namespace.open_run("public", "run-1")
    namespace.pin(run, [version], timedelta(hours=5))
    assert retention.plan(namespace.root, NOTHING_KEPT).kept == {version: "launch run-1"}
    pin = namespace.root / "public/runs/.pins/run-1.json"
    then = time.time() - 6 * 3600
    os.utime(pin, (then, then))
    assert going(namespace) == [version]
    assert pin in namespace.sweep(timedelta(hours=1))
    assert not pin.exists()


def test_a_refused_launch_lets_go(namespace, old) -> None:
    version = old("one")
    run = namespace.open_run("public", "run-1")
    namespace.pin(run, [version], timedelta(hours=5))
    namespace.unpin(run)
    namespace.unpin(run)
    assert going(namespace) == [version]


def test_a_pin_that_cannot_be_read_holds(namespace, old) -> None:
    version = old("one")
    pins = namespace.root / "public/runs/.pins"
    pins.mkdir(parents=True)
    (pins / "run-1.json").write_text(f'{{"versions": {{"{version.key}": "{version.id}"')
    assert going(namespace) == []


def test_what_a_step_reads_now_stays(namespace, old, begin) -> None:
    raw = old("raw")
    with begin(key=CLEAN, inputs=[raw], input_id="clean") as staging:
        assert going(namespace) == []
        assert collect(namespace).removed == []
        staging.path.joinpath("a").write_text("a")
        staging.describe(content_id="clean")
    assert namespace.verify(raw) == []
    age(staging.version)
    assert going(namespace) == [staging.version, raw]


def test_a_step_does_not_begin_on_a_version_that_is_gone(namespace, old, begin) -> None:
    raw = old("raw")
    assert raw.manifest.rows == 2
    collect(namespace)
    refused = pytest.raises(NamespaceError, match=r"raw@\w+ is gone: `factory gc` removed it")
    with refused, begin(key=CLEAN, inputs=[raw], input_id="clean"):
        pytest.fail("the step must not run")
    assert not (namespace.root / f"{CLEAN}.versions").exists()


def test_a_key_that_is_written_waits_for_the_next_time(namespace, old, begin) -> None:
    version, other = old("one"), old("other", key=CLEAN)
    with begin(input_id="two") as staging:
        done = collect(namespace)
        assert done.removed == [other]
        assert "has to wait for process" in done.busy[RAW]
        staging.path.joinpath("a").write_text("a")
        staging.describe(content_id="two")
    assert collect(namespace).removed == [version]


def test_only_what_was_asked_about(namespace, chain, old) -> None:
    raw, _, split = chain
    other = old("other", key=public("text/other"))
    policy = Policy(keep=0, within=lambda key: key == RAW)
    assert going(namespace, policy) == [], "others that stay were made from it"
    unused = old("unused")
    assert going(namespace, policy) == [unused]
    assert collect(namespace, policy).removed == [unused]
    assert {raw.path.is_dir(), split.path.is_dir(), other.path.is_dir()} == {True}


def test_the_index_forgets_what_is_gone(namespace, old, passed) -> None:
    kept, gone = old("kept"), old("gone")
    make_current(namespace, kept, passed)
    collect(namespace)
    assert namespace.find(RAW, "gone") is None
    assert namespace.find(RAW, "kept") == kept
    assert len(list((gone.path.parent / ".inputs").iterdir())) == 1
    assert namespace.sweep(timedelta(0)) == []


def test_a_file_with_other_names_frees_nothing(namespace, old, tmp_path) -> None:
    version = old("one", files={"a": b"x" * 1000, "b": b"y" * 10})
    os.link(version.path / "a", tmp_path / "elsewhere")
    written = ("_manifest.json", "_manifest.sha256")
    manifest = sum((version.path / name).stat().st_size for name in written)
    assert retention.space([version]) == 10 + manifest


# What cannot be known stops everything


@pytest.mark.parametrize("record", [b'{"launch": {"datasets"', b"[" * 200_000, b""])
def test_a_damaged_run_record_stops_it(namespace, old, record) -> None:
    old("one")
    run = namespace.open_run("public", "run-1")
    run.create("record.json", record)
    for act in (going, collect):
        with pytest.raises(NamespaceError, match=r"record\.json is cut off or damaged"):
            act(namespace)


@pytest.mark.parametrize("plant", PLANTED)
@pytest.mark.parametrize("name", ["record.json", "record.2.json", "mix.lock", "x.lock.json"])
def test_what_a_pod_planted_in_a_run_stops_it(namespace, old, tmp_path, name, plant) -> None:
    version = old("one")
    (tmp_path / "elsewhere").write_text(f'"{version.id}"')
    run = namespace.open_run("public", "run-1")
    PLANTED[plant](run.path / name, tmp_path / "elsewhere")
    for act in (going, collect):
        with ends_soon(), pytest.raises(NamespaceError, match=f"{name} is a link, or not of the"):
            act(namespace)


def test_a_named_version_without_a_manifest_stops_it(namespace, old) -> None:
    version = old("one")
    run_of(namespace, version)
    (version.path / "_manifest.json").unlink()
    with pytest.raises(DamagedVersion, match="is missing"):
        going(namespace)


def test_an_unnamed_version_without_a_manifest_goes_when_it_is_old(namespace, old, write) -> None:
    young, version = write("young", input_id="young").version, old("one")
    for one in (young, version):
        (one.path / "_manifest.json").write_text("{")
    assert going(namespace) == [version]


def test_a_missing_folder_of_definitions_stops_it(namespace, old, tmp_path) -> None:
    old("one")
    with pytest.raises(NamespaceError, match="is not a folder"):
        going(namespace, Policy(folders=(tmp_path / "nowhere",)))


@pytest.mark.parametrize("hidden", ["private", "private/runs", "private/runs/run-1/record.json"])
def test_an_account_that_may_not_read_everything_is_refused(
    namespace, old, write, root, hidden
) -> None:
    """What it cannot see may need what it would remove."""
    if os.geteuid() != 0:
        pytest.skip("becoming another account needs root")
    old("one")
    write(key=private("text/x"), source="private")
    namespace.open_run("private", "run-1").create("record.json", b"{}")
    for above in (root, *root.parents):
        if above.owner() == "root" and above != Path("/") and "pytest" in str(above):
            above.chmod(0o755)
    (root / hidden).chmod(0o700 if (root / hidden).is_dir() else 0o600)
    code = (
        "import os, sys\n"
        "from factory.errors import NamespaceError\n"
        "from factory.namespace import retention\n"
        "from factory.namespace.failures import explained\n"
        "from pathlib import Path\n"
        "os.setuid(65534)\n"
        "try:\n"
        "    with explained(Path(sys.argv[1]), 'looking'):\n"
        "        retention.plan(Path(sys.argv[1]), retention.Policy(keep=0))\n"
        "except NamespaceError as error: print('refused:', error)\n"
    )
    result = subprocess.run(
        [sys.executable, "-c", code, str(root)], capture_output=True, text=True, check=False
    )
    assert "refused:" in result.stdout, result.stderr


# Others at the same time


def test_a_rollback_and_a_collection(namespace, old, passed) -> None:
    """Whoever comes first: the version is current and whole, or gone and the rollback refused."""
    version = old("one")
    namespace.record_checks(version, {"files": passed})
    age(version)
    with holding(namespace):
        waiting = Thread(lambda: namespace.rollback(version.key, version.id))
        time.sleep(0.05)
    waiting.join()
    assert waiting.error is None
    age(version)
    assert collect(namespace).removed == []
    gone = old("two")
    collect(namespace)
    with pytest.raises(NamespaceError, match="has no version"):
        namespace.rollback(gone.key, gone.id)
    with pytest.raises(NamespaceError, match="has no version"):
        namespace.promote(gone)
    assert not namespace.renew(gone)


@pytest.mark.parametrize("attempt", range(5))
def test_a_launch_and_a_collection_at_once(root, old, attempt) -> None:
    """The launch has its version whole, or is refused."""
    namespace = Namespace(root)
    version = old(f"{attempt}", files={f"{n}": b"x" for n in range(50)})
    run = namespace.open_run("public", f"run-{attempt}")
    start = threading.Barrier(2)

    def launch() -> None:
        start.wait()
        time.sleep(attempt * 0.002)
        namespace.pin(run, [version], timedelta(hours=1))
        assert namespace.verify(version) == []

    launching = Thread(launch)
    start.wait()
    done = collect(namespace)
    launching.join()
    if version in done.removed:
        assert isinstance(launching.error, NamespaceError)
        assert "is gone" in str(launching.error)
    else:
        assert launching.error is None
        assert namespace.verify(version) == []


def test_a_launch_waits_while_it_is_decided(namespace, old) -> None:
    version = old("one")
    run = namespace.open_run("public", "run-1")
    with holding(namespace), pytest.raises(NamespaceError, match="Pinning for public/runs/run-1"):
        namespace.pin(run, [version], timedelta(hours=1))
    namespace.pin(run, [version], timedelta(hours=1))
    assert collect(namespace).removed == []


def test_what_a_dead_collection_held_is_free_and_swept(namespace, root, old) -> None:
    old("one")
    gone = this_process().model_copy(update={"pid": 2**22 + 1}).model_dump_json()
    for name, token in ((".pinning", "dead"), (".pinning-beef", "beef")):
        (root / "public" / name).mkdir()
        (root / "public" / name / token).write_text(gone)
    trash = root / f"{RAW}.versions" / ".trash-1"
    (trash / "deep").mkdir(parents=True)
    removed = namespace.sweep(timedelta(days=1))
    assert trash in removed
    assert not list((root / "public").glob(".pinning*"))
    assert len(collect(namespace).removed) == 1


class Thread:
    def __init__(self, body) -> None:
        self.error: Exception | None = None

        def run() -> None:
            try:
                body()
            except Exception as error:
                self.error = error

        self._thread = threading.Thread(target=run)
        self._thread.start()

    def join(self) -> None:
        self._thread.join()


@contextmanager
def holding(namespace: Namespace):
    """As a collection does while it decides."""
    with needing(namespace.root, "public", "deciding", namespace.times).hold():
        yield
