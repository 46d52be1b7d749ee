"""Mirrors file by file: what they may say, that every file is verified, and what partial means."""

import gzip
import hashlib
from collections.abc import Callable
from pathlib import Path

import pytest

from factory.data import Git, Http, PythonPackage, Rows
from factory.data.fetch import fetch, file_mirror
from factory.data.fetch.errand import Errand, Fetched
from factory.data.fetch.mirrors import mirror_of
from factory.data.progress import silent
from factory.data.sources import Pinned
from factory.errors import SourceError
from tests.mirrors import MIRRORED

PIN = "a" * 40
URL = "https://example.org/corpus"
ONE, TWO = b"<a/>\n", b"<b/>\n"

type Take = Callable[..., Fetched]
type Write = Callable[..., Path]


def blob(content: bytes) -> str:
    return hashlib.sha1(b"blob %d\0" % len(content) + content, usedforsecurity=False).hexdigest()


def source(rows: str | Rows = "**/*.xml", revision: str = PIN) -> Git:
    return Git(url=URL, revision=revision, rows=rows)


@pytest.fixture
def write(tmp_path: Path) -> Write:
    """A mirror of two files, one of them gzipped; its statement is the test's."""
    folder = tmp_path / "mirror"
    (folder / "copies").mkdir(parents=True)
    (folder / "copies" / "1.xml").write_bytes(ONE)
    (folder / "copies" / "2.xml.gz").write_bytes(gzip.compress(TWO))

    def statement(text: str | None = None, *, partial: bool = False, pin: str = PIN) -> Path:
        said = text if text is not None else files(blob(ONE), blob(TWO))
        head = f'pin = "{pin}"\npartial = {str(partial).lower()}\n'
        (folder / "mirror.toml").write_text(head + said, encoding="utf-8")
        return folder

    return statement


def files(one: str, two: str) -> str:
    return (
        "[files]\n"
        f'"a/one.xml" = {{ path = "copies/1.xml", git_blob = "{one}" }}\n'
        f'"b/two.xml" = {{ path = "copies/2.xml.gz", gunzip = true, git_blob = "{two}" }}\n'
    )


@pytest.fixture
def take(tmp_path: Path) -> Take:
    scratch = tmp_path / "scratch"
    scratch.mkdir()

    def run(mirror: Path, wanted: Pinned | None = None) -> Fetched:
        errand = Errand(
            scratch=scratch, mirror=mirror, drops=None, closed=(), inputs={}, say=silent
        )
        return fetch(wanted or source(), errand)

    return run


def test_files_get_the_paths_and_bytes_of_the_source(write: Write, take: Take) -> None:
    found = take(write())
    assert not found.partial
    assert (found.folder / "a" / "one.xml").read_bytes() == ONE
    assert (found.folder / "b" / "two.xml").read_bytes() == TWO


def test_only_what_is_asked_for_is_laid_out(write: Write, take: Take) -> None:
    folder = take(write(), source("b/*.xml")).folder
    assert [path.name for path in folder.rglob("*.xml")] == ["two.xml"]


def test_what_an_earlier_fetch_left_is_gone(write: Write, take: Take) -> None:
    mirror = write()
    take(mirror)
    folder = take(mirror, source("b/*.xml")).folder
    assert not (folder / "a").exists()


def test_many_files_of_a_folder_at_once(write: Write, take: Take) -> None:
    sha256 = hashlib.sha256(TWO).hexdigest()
    folder = take(
        write(
            '[[folders]]\nsource = "deep/er/"\npath = "copies/"\ngunzip = true\n'
            f'[folders.sha256s]\n"2.xml" = "{sha256}"\n'
            f'[[folders]]\nsource = ""\npath = "copies/"\n[folders.git_blobs]\n'
            f'"1.xml" = "{blob(ONE)}"\n'
        )
    ).folder
    assert (folder / "deep" / "er" / "2.xml").read_bytes() == TWO
    assert (folder / "1.xml").read_bytes() == ONE


@pytest.mark.parametrize("which", ["one", "two"])
def test_another_content_is_refused(write: Write, take: Take, which: str) -> None:
    one, two = (blob(b"other") if which == name else blob(ONE) for name in ("one", "two"))
    two = two if which == "two" else blob(TWO)
    with pytest.raises(SourceError, match=rf"has another ./{which}.xml than the source"):
        take(write(files(one, two)))


def test_the_hash_is_of_the_original_not_of_the_gzipped_copy(write: Write, take: Take) -> None:
    gzipped = gzip.compress(TWO)
    with pytest.raises(SourceError, match=r"has another b/two\.xml than the source"):
        take(write(files(blob(ONE), blob(gzipped))))


def test_a_file_that_is_not_there_is_told(write: Write, take: Take) -> None:
    mirror = write()
    (mirror / "copies" / "1.xml").unlink()
    with pytest.raises(SourceError, match=r"names 'copies/1.xml' for a/one.xml, which is not the"):
        take(mirror)


@pytest.mark.parametrize("cut", [3, 20])
def test_a_copy_that_does_not_unpack_is_told(write: Write, take: Take, cut: int) -> None:
    mirror = write()
    copy = mirror / "copies" / "2.xml.gz"
    copy.write_bytes(copy.read_bytes()[:cut])
    with pytest.raises(SourceError, match=r"2\.xml\.gz cannot be gunzipped"):
        take(mirror)


def test_a_copy_that_is_no_gzip_is_told(write: Write, take: Take) -> None:
    mirror = write()
    (mirror / "copies" / "2.xml.gz").write_bytes(TWO)
    with pytest.raises(SourceError, match=r"cannot be gunzipped \(Not a gzipped file"):
        take(mirror)


@pytest.mark.parametrize("path", ["../outside.xml", "/etc/hostname", "link.xml"])
def test_a_path_that_leaves_the_mirror_is_refused(write: Write, take: Take, path: str) -> None:
    mirror = write(f'[files]\n"a.xml" = {{ path = "{path}", git_blob = "{blob(ONE)}" }}\n')
    (mirror.parent / "outside.xml").write_bytes(ONE)
    (mirror / "link.xml").symlink_to("../outside.xml")
    with pytest.raises(SourceError, match="which leaves"):
        take(mirror)


@pytest.mark.parametrize(
    ("said", "problem"),
    [
        ("[files", "cannot be used"),
        ("part = true", "part: Extra inputs are not permitted"),
        ('[files]\n"a.xml" = { path = "1.xml" }', "give git_blob or sha256"),
        (
            f'[files]\n"a.xml" = {{ path = "1", git_blob = "{PIN}", sha256 = "{"b" * 64}" }}',
            "one of the two",
        ),
        ('[files]\n"a.xml" = { path = "1", git_blob = "abc" }', "git_blob"),
        (f'[files]\n"a.xml" = {{ paht = "1", git_blob = "{PIN}" }}', "a.xml.path: Field required"),
        (f'[files]\n"../a.xml" = {{ path = "1", git_blob = "{PIN}" }}', "no path inside a source"),
        (f'[files]\n"/a.xml" = {{ path = "1", git_blob = "{PIN}" }}', "no path inside a source"),
        (f'[files]\n"a//b" = {{ path = "1", git_blob = "{PIN}" }}', "no path inside a source"),
        (
            f'[files]\n"a" = {{ path = "1", git_blob = "{PIN}" }}\n'
            f'"a/b" = {{ path = "2", git_blob = "{PIN}" }}',
            "a is a file, and a/b lies in it",
        ),
        (
            f'[files]\n"a" = {{ path = "1", git_blob = "{PIN}" }}\n[[folders]]\nsource = ""\n'
            f'path = ""\n[folders.git_blobs]\n"a" = "{PIN}"',
            "a is there twice",
        ),
    ],
)
def test_a_statement_that_cannot_be_used_is_told(
    write: Write, take: Take, said: str, problem: str
) -> None:
    with pytest.raises(SourceError, match=problem) as refused:
        take(write(said))
    assert "mirror.toml cannot be used" in str(refused.value)


def test_partial_must_be_said(tmp_path: Path, take: Take) -> None:
    (tmp_path / "mirror.toml").write_text(f'pin = "{PIN}"\n')
    with pytest.raises(SourceError, match="partial: Field required"):
        take(tmp_path)
    (tmp_path / "mirror.toml").write_text(f'pin = "{PIN}"\npartial = "no"\n')
    with pytest.raises(SourceError, match="partial: Input should be a valid boolean"):
        take(tmp_path)


def test_a_mirror_of_another_revision_is_refused(write: Write, take: Take) -> None:
    with pytest.raises(SourceError, match=f"is of {PIN}, but declared is {'b' * 40}"):
        take(write(), source(revision="b" * 40))


def test_a_mirror_that_names_no_revision_is_refused(tmp_path: Path, take: Take) -> None:
    (tmp_path / "mirror.toml").write_text("partial = false\n")
    with pytest.raises(SourceError, match="is of no state that it names"):
        take(tmp_path)


def test_rows_that_the_mirror_does_not_hold_are_told(write: Write, take: Take) -> None:
    with pytest.raises(SourceError, match=r"No file .* fits the row pattern '\*\.csv'"):
        take(write(partial=True), source("*.csv"))


def test_a_wheel_by_its_paths(write: Write, take: Take) -> None:
    package = PythonPackage(name="corpus", version="1", sha256="c" * 64, rows="a/*.xml")
    assert (take(write(pin="c" * 64), package).folder / "a" / "one.xml").read_bytes() == ONE


def test_a_download_is_held_to_its_declared_hash_too(tmp_path: Path, take: Take) -> None:
    def said(content: bytes) -> str:
        (tmp_path / "x").write_bytes(content)
        one = hashlib.sha256(content).hexdigest()
        return f'partial = false\n[files]\n"a.xml" = {{ path = "x", sha256 = "{one}" }}\n'

    sha256 = hashlib.sha256(ONE).hexdigest()
    http = Http(url="https://example.org/x/a.xml", sha256=sha256, rows="*.xml")
    (tmp_path / "mirror.toml").write_text(said(ONE))
    assert (take(tmp_path, http).folder / "a.xml").read_bytes() == ONE
    (tmp_path / "mirror.toml").write_text(said(TWO))
    with pytest.raises(SourceError, match=f"the original's is {sha256}"):
        take(tmp_path, http)
    (tmp_path / "mirror.toml").write_text("partial = false\n")
    with pytest.raises(SourceError, match=r"lacks 1 of the declared files, the first is a\.xml"):
        take(tmp_path, http)


@pytest.mark.parametrize(
    ("rows", "partial"),
    [
        ("**/*.xml", True),
        ("a/one.xml", False),
        ("a/one.xml//a", False),
        ("a/one.xm?", True),
        (Rows("a/one.xml", beside=("b/two.xml",)), False),
        (Rows("a/one.xml", beside=("b/*.xml",)), True),
        (Rows("a/one.xml", beside=("b/three.xml",)), True),
    ],
)
def test_a_partial_mirror_is_whole_for_a_pattern_that_spells_out_what_it_holds(
    write: Write, take: Take, rows: str | Rows, partial: bool
) -> None:
    assert take(write(partial=True), source(rows)).partial is partial


def test_the_identity_is_of_what_is_asked_for(write: Write, tmp_path: Path) -> None:
    file = tmp_path / "mirrors.toml"
    file.write_text(f'[mirrors]\n"{URL}" = "mirror"\n')
    mirror = write(partial=True)
    whole, one = (file_mirror.state(source(rows), file) for rows in ("**/*.xml", "a/*.xml"))
    assert len({whole, one, ""}) == 3
    write(files(blob(ONE), blob(b"other")), partial=True)
    assert file_mirror.state(source(), file) != whole
    assert file_mirror.state(source("a/*.xml"), file) == one
    write(partial=False)
    assert file_mirror.state(source(), file) == ""
    (mirror / "mirror.toml").unlink()
    assert file_mirror.state(source(), file) == ""
    assert file_mirror.state(source(), None) == ""


@pytest.mark.parametrize("address", MIRRORED)
def test_every_real_input_is_the_original(
    shared_mirrors: Path, tmp_path: Path, address: str
) -> None:
    mirror = file_mirror.read(mirror_of(address, shared_mirrors))
    assert mirror is not None
    assert mirror.partial
    assert mirror.pin
    name, _, version = address.partition("==")
    wanted: Pinned = (
        PythonPackage(name=name, version=version, sha256=mirror.pin, rows="**")
        if version
        else Git(url=address, revision=mirror.pin, rows="**")
    )
    errand = Errand(scratch=tmp_path, mirror=None, drops=None, closed=(), inputs={}, say=silent)
    laid_out = mirror.lay_out(wanted, errand)
    found = {path for path in laid_out.folder.rglob("*") if path.is_file()}
    assert len(found) == len(mirror.files)
