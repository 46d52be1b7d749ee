"""A wheel as a source: through the real uv, from a folder that stands in for the index."""

import hashlib
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from factory.data import PythonPackage
from factory.data.fetch import package
from factory.data.fetch.errand import Errand
from factory.data.progress import silent
from factory.errors import SourceError

METADATA = "Metadata-Version: 2.1\nName: some-corpus\nVersion: 1.2\n"
WHEEL = "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n"


@pytest.fixture
def wheel(tmp_path: Path) -> Path:
    folder = tmp_path / "wheels"
    folder.mkdir()
    path = folder / "some_corpus-1.2-py3-none-any.whl"
    files = {
        "corpus/a.xml": "<a/>",
        "some_corpus-1.2.dist-info/METADATA": METADATA,
        "some_corpus-1.2.dist-info/WHEEL": WHEEL,
    }
    record = "".join(f"{name},,\n" for name in files)
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in files.items():
            archive.writestr(name, content)
        archive.writestr("some_corpus-1.2.dist-info/RECORD", record)
    return path


@pytest.fixture
def fetch(tmp_path: Path, wheel: Path) -> Callable[..., Path]:
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    sha256 = hashlib.sha256(wheel.read_bytes()).hexdigest()

    def run(*, version: str = "1.2", name: str = "some-corpus", digest: str = sha256) -> Path:
        source = PythonPackage(name=name, version=version, sha256=digest, rows="corpus/*.xml")
        errand = Errand(scratch=scratch, mirror=wheel, drops=None, closed=(), inputs={}, say=silent)
        return package.fetch(source, errand)

    return run


def test_the_wheel_is_unpacked_beside_every_environment(fetch):
    assert (fetch() / "corpus" / "a.xml").read_text() == "<a/>"


def test_another_hash_is_refused(fetch):
    with pytest.raises(SourceError, match=r"another sha256 than the declared(.|\n)*Computed"):
        fetch(digest="0" * 64)


def test_an_unknown_version_is_told(fetch):
    with pytest.raises(SourceError, match="has no wheel of some-corpus==9"):
        fetch(version="9")


def test_an_unknown_package_is_told(fetch):
    with pytest.raises(SourceError, match="has no wheel of nothing-like-it==1"):
        fetch(name="nothing-like-it", version="1")


def test_no_way_to_the_index_is_told(monkeypatch, tmp_path):
    monkeypatch.setenv("UV_INDEX_URL", "http://127.0.0.1:9/simple")
    monkeypatch.setenv("UV_HTTP_RETRIES", "0")
    monkeypatch.setenv("UV_CACHE_DIR", str(tmp_path / "cache"))
    source = PythonPackage(name="some-corpus", version="1.2", sha256="0" * 64, rows="*.xml")
    errand = Errand(scratch=tmp_path, mirror=None, drops=None, closed=(), inputs={}, say=silent)
    with pytest.raises(SourceError, match=r"could not be fetched from the package index(.|\n)*127"):
        package.fetch(source, errand)
