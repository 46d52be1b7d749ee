import os
import time
from datetime import timedelta

import pytest

from factory.keys import private, public
from factory.namespace.owner import this_process

HOUR = timedelta(hours=1)
NONE = timedelta(0)


def staging_of(root, owner, name="0123"):
    directory = root / f"public/text/plos/raw.versions/.staging-{name}"
    (directory / "files").mkdir(parents=True)
    (directory / "files" / "half").write_text("half")
    if owner is not None:
        (directory / "owner.json").write_text(owner.model_dump_json())
    return directory


def test_nothing_to_sweep(namespace, write, root) -> None:
    assert namespace.sweep(NONE) == []
    version = write().version
    namespace.open_run("public", "run-1").append("lines", "one")
    before = sorted(root.rglob("*"))

    assert namespace.sweep(NONE) == []
    assert sorted(root.rglob("*")) == before
    assert namespace.find(version.key, "input") == version


def test_what_a_dead_process_left_goes_at_once(namespace, write, root) -> None:
    version = write().version
    gone = this_process().model_copy(update={"pid": 2**22 + 1})
    staging = staging_of(root, gone)
    for name in (".writing", ".recording"):
        (version.path.parent / name).mkdir()
        (version.path.parent / name / "token").write_text(gone.model_dump_json())
    waiting = version.path.parent / ".writing-beef"
    waiting.mkdir()
    (waiting / "beef").write_text(gone.model_dump_json())

    removed = namespace.sweep(HOUR)

    assert removed == sorted([*(version.path.parent / n for n in (".recording", ".writing")),
                              staging, waiting])  # fmt: skip
    assert {path.name for path in version.path.parent.iterdir()} == {version.id, ".inputs"}
    assert namespace.verify(version) == []


@pytest.mark.parametrize("owner", ["elsewhere", "unreadable", "none"])
def test_what_cannot_be_judged_goes_when_it_is_old(namespace, root, owner) -> None:
    stranger = this_process().model_copy(update={"boot_id": "another machine"})
    staging = staging_of(root, stranger if owner == "elsewhere" else None)
    if owner == "unreadable":
        (staging / "owner.json").write_text('{"host": ')

    assert namespace.sweep(HOUR) == []
    long_ago = time.time() - 7200
    os.utime(staging, (long_ago, long_ago))
    assert namespace.sweep(HOUR) == [staging]
    assert not (root / "public/text/plos/raw.versions").exists(), "no version was ever there"


def test_a_writer_at_work_is_left_alone(namespace, begin, write, root) -> None:
    write(key=private("text/x"), source="private")
    with begin() as staging:
        (staging.path / "a").write_text("a")
        assert namespace.sweep(NONE) == []
        assert staging.path.is_dir()
        staging.describe(content_id="c")
    assert namespace.verify(staging.version) == []


def test_links_and_files_half_way(namespace, write) -> None:
    version = write().version
    versions = version.path.parent
    (versions / ".link-1").symlink_to(f"raw.versions/{version.id}")
    (versions / ".index-1").symlink_to(f"../{version.id}")
    (versions / ".checks-1").write_text("{")
    entry = versions / ".inputs" / ("0" * 40)
    entry.symlink_to("../" + "0" * 20)

    assert namespace.sweep(HOUR) == [entry]
    assert [path.name for path in namespace.sweep(NONE)] == [".checks-1", ".index-1", ".link-1"]
    assert version.path.is_dir()
    assert namespace.find(version.key, "input") == version


def test_files_of_runs_half_way(namespace) -> None:
    run = namespace.open_run("public", "run-1")
    half = run.path / ".creating-1"
    half.write_text("half")
    opened_at = run.opened_at

    assert namespace.sweep(HOUR) == []
    assert namespace.sweep(NONE) == [half]
    assert run.opened_at == opened_at


def test_a_key_is_free_again_after_a_dead_write_of_another(namespace, root, write) -> None:
    gone = this_process().model_copy(update={"pid": 2**22 + 1})
    versions = root / "public/text.versions"
    (versions / ".writing").mkdir(parents=True)
    (versions / ".writing" / "token").write_text(gone.model_dump_json())

    with pytest.raises(Exception, match="public/text/x lies below public/text"):
        write(key=public("text/x"))
    namespace.sweep(HOUR)
    assert not versions.exists()
    write(key=public("text/x"))
