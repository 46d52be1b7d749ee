import json
import os
import socket
import sqlite3

import pytest

from factory.errors import DamagedVersion, NamespaceError


def changes(namespace, version) -> list[tuple[str, str]]:
    return [(one.path, one.problem) for one in namespace.verify(version)]


def test_every_kind_of_damage_is_named(namespace, write) -> None:
    version = write(files={f"{name}.bin": b"content" for name in "abcdef"}).version
    assert namespace.verify(version) == []

    (version.path / "a.bin").unlink()
    (version.path / "b.bin").write_bytes(b"Content")
    (version.path / "c.bin").write_bytes(b"longer content")
    (version.path / "d.bin").rename(version.path / "elsewhere")
    (version.path / "d.bin").symlink_to("elsewhere")
    (version.path / "e.bin").unlink()
    (version.path / "e.bin").mkdir()
    (version.path / "e.bin" / "inside").write_bytes(b"")
    (version.path / "f.bin").unlink()
    with socket.socket(socket.AF_UNIX) as server:
        directory = os.open(version.path, os.O_RDONLY)  # the path is too long for a socket
        server.bind(f"/proc/self/fd/{directory}/f.bin")
        os.close(directory)
    (version.path / "link to a directory").symlink_to("/")

    assert changes(namespace, version) == [
        ("a.bin", "is missing"),
        ("b.bin", "has other content than the manifest says"),
        ("c.bin", "has 14 bytes, the manifest says 7"),
        ("d.bin", "is a symbolic link, not a file"),
        ("e.bin", "is missing"),
        ("e.bin/inside", "is not in the manifest"),
        ("elsewhere", "is not in the manifest"),
        ("f.bin", "is not a file"),
        ("link to a directory", "is not in the manifest"),
    ]


def test_only_the_two_files_at_the_top_are_outside_the_table(namespace, write, passed) -> None:
    version = write().version
    namespace.record_checks(version, {"files": passed})
    assert namespace.verify(version) == []

    (version.path / "deep" / "_checks.json").write_text("{}")
    (version.path / ".hidden").write_text("")
    assert changes(namespace, version) == [
        (".hidden", "is not in the manifest"),
        ("deep/_checks.json", "is not in the manifest"),
    ]


def test_a_manifest_that_is_gone_cut_off_or_of_another_version(namespace, write) -> None:
    version, other = write().version, write("two").version
    manifest = version.path / "_manifest.json"
    good = manifest.read_bytes()

    manifest.unlink()
    assert "_manifest.json is missing, so nothing says" in changes(namespace, version)[0][1]
    manifest.write_bytes(good[:100])
    assert "cannot be read (wrong: JSON)" in changes(namespace, version)[0][1]
    manifest.write_bytes((other.path / "_manifest.json").read_bytes())
    assert f"is of public/text/plos/raw@{other.id}, but" in changes(namespace, version)[0][1]
    manifest.write_text(json.dumps({**json.loads(good), "content_id": "changed"}))
    assert "do not give the version id" in changes(namespace, version)[0][1]
    manifest.write_text(json.dumps({**json.loads(good), "rows": "a private value"}))
    assert "cannot be read (wrong: rows)" in changes(namespace, version)[0][1]
    assert "a private value" not in changes(namespace, version)[0][1]


def test_a_manifest_that_was_changed_is_noticed(namespace, write) -> None:
    """Also where it still fits the files: what the step saw, who made it, the checks."""
    version = write().version
    path = version.path / "_manifest.json"
    said = json.loads(path.read_bytes())
    for change in ({"facts": {"rows_read": 1}}, {"identity": "somebody"}, {"checks": []}):
        path.write_text(json.dumps(said | change, indent=2) + "\n")
        ((name, problem),) = changes(namespace, version)
        assert (name, problem.partition(":")[0]) == ("_manifest.json", "is not what was published")
    path.write_text(json.dumps(said, indent=2) + "\n")
    (version.path / "_manifest.sha256").unlink()
    assert [name for name, _ in changes(namespace, version)] == ["_manifest.json"]


def test_a_changed_manifest_keeps_a_version_from_being_rolled_back_to(namespace, write) -> None:
    version = write().version
    path = version.path / "_manifest.json"
    path.write_bytes(path.read_bytes().replace(b'"checks": [', b'"checks":  ['))
    with pytest.raises(DamagedVersion, match="is not what was published"):
        namespace.rollback(version.key, version.id)


def test_results_of_checks_that_are_damaged(namespace, write, passed) -> None:
    version = write().version
    (version.path / "_checks.json").write_text('{"files": {"passed": "a private value"')

    with pytest.raises(NamespaceError, match="is not a table of check results") as refusal:
        namespace.promote(version)
    assert "private value" not in str(refusal.value)

    namespace.record_checks(version, {"files": passed})
    namespace.promote(version)


@pytest.mark.parametrize(
    ("name", "make", "problem"),
    [
        ("_manifest.json", lambda path: path.write_text("{}"), "writes a file of that name itself"),
        ("_checks.json", lambda path: path.write_text("{}"), "writes a file of that name itself"),
        ("link", lambda path: path.symlink_to("/etc/passwd"), "it is a symbolic link"),
        ("link", lambda path: path.symlink_to("."), "it is a symbolic link"),
        ("pipe", os.mkfifo, "neither a file nor a directory"),
        ("not utf-8 \udcff", lambda path: path.write_text("{}"), "its name is not UTF-8"),
    ],
)
def test_what_cannot_be_published(namespace, key, begin, name, make, problem) -> None:
    def attempt() -> None:
        with begin() as staging:
            make(staging.path / name)
            staging.describe(content_id="c")

    with pytest.raises(NamespaceError, match=problem):
        attempt()
    assert namespace.versions(key) == []


def test_a_file_linked_from_elsewhere_becomes_our_own(namespace, begin, tmp_path) -> None:
    cache = tmp_path / "cache.bin"
    cache.write_bytes(b"shared")
    with begin() as staging:
        os.link(cache, staging.path / "a.bin")
        os.link(cache, staging.path / "b.bin")
        staging.describe(content_id="c")

    cache.write_bytes(b"CHANGED")

    assert namespace.verify(staging.version) == []
    assert set(staging.version.manifest.files) == {"a.bin", "b.bin"}


@pytest.mark.parametrize(
    "name",
    [".nv-meta/index.sqlite", "with space", "ünïcode/é.txt", "a" * 255, "/".join(["d" * 40] * 12)],
)
def test_names_that_are_fine(namespace, write, name) -> None:
    version = write(files={name: b"x"}).version
    assert list(version.manifest.files) == [name]
    assert namespace.verify(version) == []


def test_an_empty_file_and_an_empty_directory(namespace, begin) -> None:
    with begin() as staging:
        (staging.path / "empty").write_bytes(b"")
        (staging.path / "directory").mkdir()
        staging.describe(content_id="c")
    assert staging.version.manifest.files["empty"].size == 0
    assert namespace.verify(staging.version) == []


def test_reading_a_database_read_only_is_no_damage(namespace, begin) -> None:
    with begin() as staging:
        with sqlite3.connect(staging.path / "index.sqlite") as database:
            database.execute("create table samples (id text)")
        database.close()
        staging.describe(content_id="c")

    path = staging.version.path / "index.sqlite"
    database = sqlite3.connect(f"file:{path}?mode=ro&immutable=1", uri=True)
    assert database.execute("select count(*) from samples").fetchone() == (0,)
    database.close()
    assert namespace.verify(staging.version) == []


@pytest.mark.slow
def test_a_big_file_is_streamed(namespace, begin) -> None:
    import resource

    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with begin() as staging:
        with (staging.path / "big").open("wb") as file:
            file.truncate(1 << 30)
        staging.describe(content_id="c")
    assert namespace.verify(staging.version) == []
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 100_000  # KiB
