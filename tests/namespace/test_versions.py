import json
import pickle
import time

import pytest

from factory.errors import ChecksNotPassed, DamagedVersion, NamespaceError
from factory.keys import public
from factory.namespace import Namespace, version_id


def promoted(namespace, write, passed, content="one", **given):
    version = write(content, **given).version
    namespace.record_checks(version, {"files": passed})
    namespace.promote(version)
    return version


def test_published_first_and_current_only_when_promoted(namespace, key, write, passed) -> None:
    version = write().version

    assert version.id == version_id("input", "one")
    assert str(version) == f"public/text/plos/raw@{version.id}"
    assert version.path == namespace.root / "public/text/plos/raw.versions" / version.id
    assert (version.path / "deep/b.txt").read_bytes() == b"b"
    assert namespace.current(key) is None

    namespace.record_checks(version, {"files": passed})
    namespace.promote(version)

    assert namespace.current(key) == version
    link = namespace.root / "public/text/plos/raw"
    assert str(link.readlink()) == f"raw.versions/{version.id}"
    assert (link / "a.txt").read_text() == "one"


def test_a_manifest_says_what_the_version_is(namespace, write) -> None:
    source = write().version
    version = write("two", key=public("text/plos/clean"), inputs=[source]).version

    manifest = version.manifest
    assert manifest.key == "public/text/plos/clean"
    assert manifest.inputs == {"public/text/plos/raw": source.id}
    assert manifest.classification == "public"
    assert manifest.licenses == ["CC BY 4.0"]
    assert manifest.rows == 2
    assert manifest.columns == {"id": "string"}
    assert manifest.facts == {"n": 1}
    assert manifest.run_id == "run-1"
    assert set(manifest.files) == {"a.txt", "deep/b.txt"}
    assert manifest.files["a.txt"].size == 3
    on_disk = json.loads((version.path / "_manifest.json").read_bytes())
    assert on_disk["version"] == version.id


def test_a_version_travels_to_another_process(write) -> None:
    version = write().version
    assert version.manifest.rows == 2

    assert pickle.loads(pickle.dumps(version)) == version  # noqa: S301 - made in the line before


def test_promotion_names_the_checks_that_are_missing(namespace, key, write, passed, failed) -> None:
    version = write(checks=["files", "rows", "ids"]).version
    namespace.record_checks(version, {"files": passed, "rows": failed})

    with pytest.raises(ChecksNotPassed) as refusal:
        namespace.promote(version)

    assert str(refusal.value).startswith(
        f"{version} cannot become current: ids (not run), rows (failed). The current version stays."
    )
    assert namespace.not_passed(version) == ["ids (not run)", "rows (failed)"]
    assert namespace.current(key) is None


def test_a_failed_check_and_then_a_later_run_leave_the_old_one_current(
    namespace, key, write, passed, failed
) -> None:
    old = promoted(namespace, write, passed)
    new = write("two").version
    namespace.record_checks(new, {"files": failed})
    namespace.record_checks(old, {"files": passed})

    with pytest.raises(ChecksNotPassed, match=r"files \(failed\)"):
        namespace.promote(new)

    assert namespace.current(key) == old


def test_a_failed_blocking_check_that_the_manifest_does_not_name_still_blocks(
    namespace, write, passed, failed
) -> None:
    version = write().version
    namespace.record_checks(version, {"files": passed, "declared later": failed})

    with pytest.raises(ChecksNotPassed, match=r"declared later \(failed\)"):
        namespace.promote(version)


def test_a_failed_check_that_only_warns_does_not_block(
    namespace, key, write, passed, failed
) -> None:
    version = write().version
    warning = failed.model_copy(update={"blocking": False})
    namespace.record_checks(version, {"files": passed, "style": warning})

    namespace.promote(version)

    assert namespace.current(key) == version
    assert namespace.checks(version)["style"] == warning


def test_a_check_run_again_replaces_its_result_and_keeps_the_others(
    namespace, write, passed, failed
) -> None:
    version = write().version
    namespace.record_checks(version, {"files": failed, "rows": passed})
    namespace.record_checks(version, {"files": passed})

    assert namespace.checks(version) == {"files": passed, "rows": passed}
    assert namespace.verify(version) == []


def test_a_limited_version_never_becomes_current(namespace, key, write, passed) -> None:
    version = write(limit=100).version
    namespace.record_checks(version, {"files": passed})

    with pytest.raises(ChecksNotPassed, match="from the first 100 rows only"):
        namespace.promote(version)
    with pytest.raises(ChecksNotPassed, match="from the first 100 rows only"):
        namespace.rollback(key, version.id)

    assert namespace.current(key) is None


def test_what_is_made_of_a_limited_version_is_limited(write) -> None:
    limited = write(limit=100).version

    assert write(key=public("text/plos/clean"), inputs=[limited]).version.manifest.limit == 100
    narrower = write(key=public("text/plos/other"), inputs=[limited], limit=10)
    assert narrower.version.manifest.limit == 10


def test_the_same_content_is_kept_and_not_written_again(namespace, write, passed) -> None:
    first = write()
    namespace.record_checks(first.version, {"files": passed})
    before = (first.version.path / "_manifest.json").stat()

    second = write()

    assert not first.reused
    assert second.reused
    assert second.version == first.version
    assert (second.version.path / "_manifest.json").stat().st_ino == before.st_ino
    assert namespace.checks(second.version) == {"files": passed}


def test_the_id_does_not_come_from_file_bytes(write) -> None:
    first = write(files={"a.gz": b"time stamp 1"})
    second = write(files={"a.gz": b"time stamp 2"})

    assert second.version == first.version
    assert second.reused


def test_one_id_with_two_statements_is_refused(namespace, write) -> None:
    version = write().version

    with pytest.raises(NamespaceError, match="is there already with other checks, limit"):
        write(checks=["files", "rows"], limit=5)

    assert namespace.versions(version.key) == [version]
    assert version.manifest.checks == ["files"]


@pytest.mark.parametrize("kind", ["tmpfs", "ramfs"])
def test_a_damaged_version_is_replaced_also_where_directories_cannot_be_swapped(
    mount, key, write, passed, kind
) -> None:
    namespace = Namespace(mount(kind, "size=4m" if kind == "tmpfs" else "rw"))
    version = write(namespace=namespace).version
    namespace.record_checks(version, {"files": passed})
    namespace.promote(version)
    (version.path / "a.txt").write_text("damaged")

    healed = write(namespace=namespace)

    assert not healed.reused
    assert namespace.verify(healed.version) == []
    assert namespace.current(key) == version
    assert namespace.checks(version) == {}, "the results were about other files"
    assert [path.name for path in version.path.parent.glob(".staging*")] == []


@pytest.mark.parametrize("damage", ["manifest", "everything", "a file in its place"])
def test_worse_damage_is_replaced_too(namespace, write, damage) -> None:
    version = write().version
    (version.path / "_manifest.json").write_text('{"key": ')
    if damage != "manifest":
        for path in sorted(version.path.rglob("*"), reverse=True):
            path.rmdir() if path.is_dir() else path.unlink()
    if damage == "a file in its place":
        version.path.rmdir()
        version.path.write_text("not a directory")

    healed = write()

    assert not healed.reused
    assert namespace.verify(healed.version) == []


class Stopped(Exception):
    pass


@pytest.mark.parametrize("error", [Stopped, KeyboardInterrupt])
def test_an_error_in_the_body_changes_nothing(
    namespace, key, root, write, passed, begin, error
) -> None:
    version = promoted(namespace, write, passed)
    before = sorted(root.rglob("*"))

    with pytest.raises(error), begin() as staging:  # noqa: PT012 - the body is what is tested
        (staging.path / "a.txt").write_text("half")
        raise error

    assert sorted(root.rglob("*")) == before
    assert namespace.current(key) == version


def test_a_first_write_that_fails_leaves_no_directories(root, begin) -> None:
    with pytest.raises(NamespaceError, match="no file was written"), begin() as staging:
        staging.describe(content_id="nothing")
    assert list(root.iterdir()) == []


def test_find_by_input_id(namespace, key, write) -> None:
    assert namespace.find(key, "input") is None
    first = write().version
    assert namespace.find(key, "input") == first
    assert namespace.find(key, "another") is None
    newer = write("two").version
    assert namespace.find(key, "input") == newer

    (newer.path / "a.txt").unlink()
    assert namespace.find(key, "input") is None
    (first.path / "_manifest.json").unlink()
    assert namespace.find(key, "input") is None


def test_find_reads_one_manifest_however_many_versions_there_are(namespace, key, write) -> None:
    for number in range(60):
        write(f"content {number}", input_id=f"input {number}")

    def seconds(input_id: str) -> float:
        start = time.perf_counter()
        namespace.find(key, input_id)
        return time.perf_counter() - start

    assert min(seconds("input 30") for _ in range(20)) < 0.002
    assert min(seconds("unknown") for _ in range(20)) < 0.0005


def test_versions_newest_first_and_unknown_ones_named(namespace, key, write) -> None:
    with pytest.raises(NamespaceError, match="It has no version at all"):
        namespace.version(key, "0" * 20)

    versions = [write(content).version for content in ("one", "two", "three")]

    assert namespace.versions(key) == versions[::-1]
    assert namespace.version(key, versions[0].id) == versions[0]
    for unknown in ("0" * 20, "../raw", "", versions[0].id[:10]):
        with pytest.raises(NamespaceError, match=f"Newest: {versions[2].id}, {versions[1].id}"):
            namespace.version(key, unknown)

    (versions[1].path / "_manifest.json").unlink()
    assert namespace.versions(key) == [versions[2], versions[0], versions[1]]


def test_rollback_verifies_then_repoints(namespace, key, write, passed) -> None:
    old = promoted(namespace, write, passed)
    new = promoted(namespace, write, passed, "two")
    assert namespace.current(key) == new

    assert namespace.rollback(key, old.id) == old
    assert namespace.current(key) == old

    (new.path / "a.txt").write_bytes(b"Two")
    with pytest.raises(DamagedVersion, match=r"a\.txt: has other content than the manifest says"):
        namespace.rollback(key, new.id)
    assert namespace.current(key) == old


def test_rollback_needs_checks_too(namespace, key, write) -> None:
    version = write().version
    with pytest.raises(ChecksNotPassed, match=r"files \(not run\)"):
        namespace.rollback(key, version.id)


def test_promotion_refuses_a_version_that_lost_files(namespace, key, write, passed) -> None:
    version = write().version
    namespace.record_checks(version, {"files": passed})
    (version.path / "a.txt").unlink()

    with pytest.raises(DamagedVersion, match="has lost files"):
        namespace.promote(version)
    assert namespace.current(key) is None


def test_a_reader_keeps_the_version_that_it_resolved(namespace, key, write, passed) -> None:
    promoted(namespace, write, passed)
    resolved = namespace.current(key)
    promoted(namespace, write, passed, "two")

    assert (resolved.path / "a.txt").read_text() == "one"
    assert not resolved.path.is_symlink()


def test_a_current_version_that_is_gone_is_an_error_not_nothing(
    namespace, key, write, passed
) -> None:
    version = promoted(namespace, write, passed)
    version.path.rename(version.path.with_name("elsewhere"))

    with pytest.raises(DamagedVersion, match=f"the current version {version.id} is gone"):
        namespace.current(key)


def test_a_link_that_the_factory_did_not_make(namespace, key, root, write) -> None:
    write()
    (root / key.path).symlink_to("/tmp")  # noqa: S108

    with pytest.raises(NamespaceError, match="points to /tmp, which is not one of"):
        namespace.current(key)


def test_keys_are_those_with_versions(namespace, write) -> None:
    assert list(namespace.keys()) == []
    for name in ("b/raw", "a/energon/train", "a/raw", "a/runs/raw"):
        write(key=public(name))
    namespace.open_run("public", "run-1").directory("not_a_key.versions")
    (namespace.root / "public" / "Somebody Else's.versions").mkdir()

    assert [str(key) for key in list(namespace.keys())] == [
        "public/a/energon/train",
        "public/a/raw",
        "public/a/runs/raw",
        "public/b/raw",
    ]


def test_a_key_is_not_a_directory_of_another(namespace, root, write, passed) -> None:
    version = promoted(namespace, write, passed, key=public("a/b"))

    with pytest.raises(NamespaceError, match="public/a/b/c lies below public/a/b"):
        write(key=public("a/b/c"))
    with pytest.raises(NamespaceError, match="public/a/b/c/d lies below public/a/b"):
        write(key=public("a/b/c/d"))
    with pytest.raises(NamespaceError, match="public/a cannot be a version: other keys lie below"):
        write(key=public("a"))

    assert namespace.verify(version) == []
    assert {path.name for path in (root / "public/a").iterdir()} == {"b.versions", "b"}
    write(key=public("a/b_c"))


def test_below_a_key_that_is_published_but_not_current(namespace, write) -> None:
    write(key=public("a/b"))
    with pytest.raises(NamespaceError, match="lies below public/a/b"):
        write(key=public("a/b/c"))


def test_described_twice_or_not_at_all(namespace, key, begin) -> None:
    with begin() as staging:
        (staging.path / "a").write_text("a")
        staging.describe(content_id="c")
        with pytest.raises(NamespaceError, match="was described twice"):
            staging.describe(content_id="c")
    with pytest.raises(NamespaceError, match="written but not described"), begin() as staging:
        (staging.path / "a").write_text("a")
    assert [version.manifest.content_id for version in namespace.versions(key)] == ["c"]


def test_a_version_is_there_when_the_block_has_ended(begin) -> None:
    with begin() as staging:
        (staging.path / "a").write_text("a")
        staging.describe(content_id="c")
        with pytest.raises(NamespaceError, match="is published when its `write` block ends"):
            _ = staging.version
    assert staging.version.path.is_dir()


def test_values_that_json_cannot_hold_are_refused_without_being_quoted(write) -> None:
    for given in ({"parameters": {"x": [object(), "a secret"]}}, {"code": "a secret \ud800"}):
        with pytest.raises(NamespaceError, match="described with what JSON cannot hold") as refusal:
            write(**given)
        error = refusal.value
        assert error.__cause__ is None
        assert error.__context__ is None
        assert "secret" not in str(error)


def test_a_limit_starts_at_one(write, root) -> None:
    with pytest.raises(NamespaceError, match="a limit of 0 rows leaves none"):
        write(limit=0)
    assert list(root.iterdir()) == []
