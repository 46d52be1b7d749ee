"""Work that is kept over a crash, and files that versions share."""

import os
from datetime import timedelta
from pathlib import Path

import pytest

from factory.errors import DamagedVersion, NamespaceError
from factory.keys import public
from factory.namespace import Namespace, Provenance, Version, integrity, sweep

KEY = public("text/plos/clean")


@pytest.fixture
def namespace(tmp_path: Path) -> Namespace:
    (tmp_path / "root").mkdir()
    return Namespace(tmp_path / "root")


def writing(namespace: Namespace, key=KEY, input_id: str = "input"):
    return namespace.write(
        key,
        inputs=[],
        input_id=input_id,
        provenance=Provenance(run_id="run", identity="test"),
        source="public",
        parameters={},
        code="",
        checks=[],
        licenses=[],
    )


def published(namespace: Namespace, key=KEY) -> Version:
    with writing(namespace, key) as staging:
        (staging.path / "images").mkdir()
        (staging.path / "images" / "0.bin").write_bytes(b"pixels")
        staging.describe(content_id="content")
    return staging.version


def interrupted(namespace: Namespace, input_id: str = "input") -> Path:
    """What a write leaves that fails after a part of the work was finished."""
    work: list[Path] = []

    def write() -> None:
        with writing(namespace, input_id=input_id) as staging:
            work.append(staging.work.open())
            (work[0] / "done").write_text("half of it")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write()
    return work[0]


def share(namespace: Namespace, first: Version, times: int = 1) -> Version:
    """Another version with the image of that one."""
    with writing(namespace, public("text/plos/split")) as staging:
        entry = first.manifest.files["images/0.bin"]
        for _ in range(times):
            staging.link(first.path / "images" / "0.bin", "images/0.bin", entry)
        staging.describe(content_id="content")
    return staging.version


def test_work_is_there_again_for_the_same_input_only(namespace):
    interrupted(namespace)
    with writing(namespace, input_id="other") as staging:
        assert list(staging.work.open().iterdir()) == []
        (staging.path / "a").write_text("a")
        staging.describe(content_id="content")
    with writing(namespace) as staging:
        assert (staging.work.open() / "done").read_text() == "half of it"
        (staging.path / "a").write_text("a")
        staging.describe(content_id="content")
    assert not staging.work.path.exists(), "published, so no longer needed"


def test_work_lies_in_the_tree_of_its_key(namespace):
    work = interrupted(namespace)
    assert work.is_relative_to(namespace.root / "public" / "text" / "plos" / "clean.versions")


def test_work_is_swept_when_it_is_old(namespace, monkeypatch):
    work = interrupted(namespace)
    namespace.sweep(timedelta(0))
    assert work.exists()
    long_ago = work.stat().st_mtime - sweep.WORK_AGE.total_seconds() - 60
    os.utime(work, (long_ago, long_ago))
    assert work in namespace.sweep(timedelta(minutes=10))
    assert not work.exists()


def test_work_of_a_published_version_is_swept_at_once(namespace):
    work = interrupted(namespace)
    held = work.with_name("held")
    work.rename(held)
    published(namespace)
    held.rename(work)
    assert work in namespace.sweep(timedelta(minutes=10))


def test_a_shared_file_is_one_file(namespace):
    first = published(namespace)
    second = share(namespace, first)
    assert second.manifest.files == first.manifest.files
    assert (second.path / "images/0.bin").samefile(first.path / "images/0.bin")
    assert second.verify() == []


def test_a_file_is_copied_where_there_are_no_links(namespace, monkeypatch):
    def refuse(*_: object) -> None:
        raise PermissionError(1, "no links here")

    first = published(namespace)
    monkeypatch.setattr(os, "link", refuse)
    copy = share(namespace, first).path / "images/0.bin"
    assert copy.read_bytes() == b"pixels"
    assert not copy.samefile(first.path / "images/0.bin")


def test_damage_is_not_shared(namespace):
    first = published(namespace)
    (first.path / "images/0.bin").write_bytes(b"pixelz")
    with pytest.raises(DamagedVersion, match=r"0\.bin was taken over .* Nothing was published"):
        share(namespace, first)
    assert namespace.versions(public("text/plos/split")) == []


def test_a_name_is_linked_once(namespace):
    with pytest.raises(FileExistsError):
        share(namespace, published(namespace), times=2)


def test_a_file_with_other_names_that_nobody_vouches_for_is_copied(namespace, tmp_path):
    (tmp_path / "cache").write_text("shared")
    with writing(namespace) as staging:
        os.link(tmp_path / "cache", staging.path / "file")
        staging.describe(content_id="content")
    (tmp_path / "cache").write_text("changed")
    assert integrity.verify(staging.version.path, "x", (KEY.path, staging.version.id)) == []


def test_nothing_is_left_where_no_work_was_begun(namespace):
    with pytest.raises(NamespaceError), writing(namespace) as staging:
        raise NamespaceError("no")
    assert not staging.work.path.parent.exists()
