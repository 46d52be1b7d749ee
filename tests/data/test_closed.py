"""No public source is read from the namespace or the drop zone, however its address gets there."""

import hashlib
from pathlib import Path

import pytest

from factory.data import Dataset, Fsspec, Git, LocalFiles, Row, Sample
from factory.data.steps import steps
from factory.errors import ClassificationError, SourceError
from factory.keys import public
from tests.data.test_declared import commit

TEXT = b'{"text": "private"}\n'


def clean(row: Row) -> Sample:
    return Sample.document(id=row.id, title="", sections=[("", row.text("text"))])


def dataset(source) -> Dataset:
    return Dataset(key=public("text/copy"), license="CC0-1.0", source=source, clean=clean)


def store(folder: Path | str, **changes) -> Dataset:
    files = {"a.jsonl": hashlib.sha256(TEXT).hexdigest()}
    declared = {"url": f"file://{folder}", "files": files, "rows": "*.jsonl"}
    return dataset(Fsspec(**(declared | {"classification": "public"} | changes)))


@pytest.fixture(params=["namespace", "drops"])
def closed(request, runner) -> Path:
    """A folder with a file in one of the two closed directories."""
    base = runner.settings.root / "private" if request.param == "namespace" else drops(runner)
    folder = base / "letters"
    folder.mkdir(parents=True)
    (folder / "a.jsonl").write_bytes(TEXT)
    return folder


def drops(runner) -> Path:
    assert runner.settings.drops is not None
    return runner.settings.drops


def refuse(runner, declared: Dataset) -> None:
    with pytest.raises(ClassificationError, match="where private data may lie"):
        runner.step(steps(declared)[0])
    assert not list(runner.namespace.versions(declared.key / "raw"))
    assert not any(TEXT in one.read_bytes() for one in public_files(runner))


def public_files(runner) -> list[Path]:
    return [one for one in (runner.settings.root / "public").rglob("*") if one.is_file()]


def test_a_store_whose_address_is_a_path_there(runner, closed) -> None:
    refuse(runner, store(closed))


def test_a_store_with_a_link_there(runner, closed, tmp_path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "a.jsonl").symlink_to(closed / "a.jsonl")
    refuse(runner, store(outside))
    (tmp_path / "link").symlink_to(closed)
    refuse(runner, store(tmp_path / "link"))


def test_an_address_that_climbs_or_is_escaped(runner, closed) -> None:
    refuse(runner, store(f"{closed.parent}/elsewhere/../letters"))
    refuse(runner, store(str(closed).replace("letters", "%6cetters"), url=f"local://{closed}"))


def test_a_repository_there(runner, closed) -> None:
    revision = commit(closed)
    source = Git(url=closed.as_uri(), revision=revision, rows="*.jsonl")
    refuse(runner, dataset(source))


def test_a_mirror_there(runner, closed, tmp_path) -> None:
    file = tmp_path / "mirrors.toml"
    file.write_text(f'[mirrors]\n"s3://open/letters" = "{closed}"\n')
    runner.settings = runner.settings.model_copy(update={"mirrors": file})
    refuse(runner, store("", url="s3://open/letters"))
    mirror = tmp_path / "mirror"
    mirror.mkdir()
    digest = hashlib.sha256(TEXT).hexdigest()
    (mirror / "mirror.toml").write_text(
        f'partial = false\nroot = "{closed}"\n[files]\n'
        f'"a.jsonl" = {{ path = "a.jsonl", sha256 = "{digest}" }}\n'
    )
    file.write_text(f'[mirrors]\n"s3://open/letters" = "{mirror}"\n')
    refuse(runner, store("", url="s3://open/letters"))


def test_what_lies_elsewhere_on_this_machine_is_read(runner, tmp_path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "a.jsonl").write_bytes(TEXT)
    assert runner.step(steps(store(outside))[0]).version.manifest.facts["files"] == 1


def test_a_drop_folder_that_is_another_name_of_one(runner) -> None:
    letters = drops(runner) / "letters"
    letters.mkdir(parents=True)
    (letters / "a.jsonl").write_bytes(TEXT)
    (drops(runner) / "open").symlink_to("letters")
    source = LocalFiles(folder="open", rows="*.jsonl", classification="public")
    with pytest.raises(SourceError, match="Declare the folder itself"):
        runner.step(steps(dataset(source))[0])
