"""Archives: members as rows, and every way in which an archive can lead astray."""

import bz2
import gzip
import io
import lzma
import stat
import tarfile
import zipfile
from collections.abc import Callable
from typing import Any

import pytest
import zstandard

from factory.data.formats import limits
from factory.data.pattern import Rows
from factory.errors import BadFile, BadRow

FILES = {"d/a.jsonl": '{"n": 1}\n{"n": 2}\n', "d/b.jsonl": '{"n": 3}\n', "x.txt": "text"}


def zipped(files: dict[str, Any]) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return buffer.getvalue()


def tarred(files: dict[str, Any], *odd: tarfile.TarInfo) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        for name, content in files.items():
            data = content.encode() if isinstance(content, str) else content
            info = tarfile.TarInfo(name)
            info.size = len(data)
            archive.addfile(info, io.BytesIO(data))
        for info in odd:
            archive.addfile(info)
    return buffer.getvalue()


PACKED: dict[str, Callable[[dict[str, Any]], bytes]] = {
    "a.zip": zipped,
    "a.tar": tarred,
    "a.tar.gz": lambda files: gzip.compress(tarred(files)),
    "a.tgz": lambda files: gzip.compress(tarred(files)),
    "a.tar.bz2": lambda files: bz2.compress(tarred(files)),
    "a.tar.xz": lambda files: lzma.compress(tarred(files)),
    "a.tar.zst": lambda files: zstandard.ZstdCompressor().compress(tarred(files)),
}


@pytest.fixture(params=list(PACKED))
def name(request: pytest.FixtureRequest) -> str:
    return request.param


def test_rows_of_members(make_source: Any, name: str) -> None:
    source = make_source({name: PACKED[name](FILES)})
    rows = source.rows(f"{name}!**/*.jsonl")
    assert [(row.id, row.record["n"]) for row in rows] == [
        (f"{name}!d/a.jsonl#1", 1),
        (f"{name}!d/a.jsonl#2", 2),
        (f"{name}!d/b.jsonl#1", 3),
    ]
    assert [row.string for row in source.rows(f"{name}!*.txt")] == ["text"]
    assert source.rows(f"{name}!*.csv") == []


def test_elements_of_members_and_compressed_members(make_source: Any, name: str) -> None:
    files = {"a.xml": "<r><q>1</q><q>2</q></r>", "b.xml.gz": gzip.compress(b"<r><q>3</q></r>")}
    source = make_source({name: PACKED[name](files)})
    assert [row.element.text for row in source.stream(f"{name}!*.xml//q")] == ["1", "2"]
    assert [row.element.text for row in source.stream(f"{name}!*.xml.gz//q")] == ["3"]


def test_a_row_reads_from_its_own_archive(make_source: Any, name: str) -> None:
    files = {"d/a.jsonl": '{"p": "../i/x.bin"}\n', "i/x.bin": b"\0pixels", "secret": "s"}
    source = make_source({name: PACKED[name](files), "outside.bin": b"no"})
    seen = [row.beside(row.record["p"]) for row in source.stream(f"{name}!d/*.jsonl")]
    assert seen == [b"\0pixels"]
    (row,) = list(source.stream(f"{name}!d/*.jsonl"))
    for path, reason in (("../../outside.bin", "leads out"), ("none.bin", "is missing")):
        with pytest.raises(BadRow, match=reason):
            row.beside(path)


def test_a_mac_s_twins_are_passed_over_and_counted(make_source: Any, name: str) -> None:
    files = FILES | {"__MACOSX/d/._a.jsonl": b"\0\5\x16\7", "d/._b.jsonl": b"\0\5\x16\7"}
    source = make_source({name: PACKED[name](files)})
    assert len(source.rows(f"{name}!**/*.jsonl")) == 3
    assert source.notes.facts()["passed_over"] == {"__MACOSX": 2}
    asked = Rows(f"{name}!__MACOSX/**", format="content")
    assert [row.content[:2] for row in source.rows(asked)] == [b"\0\5"]


@pytest.mark.parametrize("member", ["../a.jsonl", "/etc/a.jsonl", "d/../../a.jsonl", "C:\\a.jsonl"])
def test_names_that_lead_out_are_refused(make_source: Any, name: str, member: str) -> None:
    source = make_source({name: PACKED[name]({"b.jsonl": '{"n": 1}\n', member: "{}"})})
    with pytest.raises(BadFile, match=r"a\.\w.*has a name that leads out of the archive"):
        source.rows(f"{name}!**/*.jsonl")


@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_names_that_come_twice_are_refused(make_source: Any) -> None:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for _ in range(2):
            archive.writestr("a.txt", "x")
    tar = tarred({"a.txt": "x", "./a.txt": "y"})
    source = make_source({"a.zip": buffer.getvalue(), "b.tar": tar})
    for name in ("a.zip", "b.tar"):
        with pytest.raises(BadFile, match="is there twice"):
            source.rows(f"{name}!**")


@pytest.mark.parametrize("member", ["", "d//a.jsonl", "d/./a.jsonl", ".", "d/"])
def test_names_that_no_file_has_are_refused(make_source: Any, name: str, member: str) -> None:
    """Another name for a file that is there, or none; a pattern would miss it."""
    if member == "d/" and name != "a.zip":
        return  # a tar says of each member what it is
    source = make_source({name: PACKED[name]({"d/a.jsonl": '{"n": 1}\n', member: "{}"})})
    with pytest.raises(BadFile, match=r"has no plain name|is a folder with contents"):
        source.rows(f"{name}!**/*.jsonl")


def test_a_name_with_an_end_inside_is_refused(make_source: Any) -> None:
    """Python ends the name at the zero byte, others do not."""
    data = zipped({"a.txtQb": "x"}).replace(b"a.txtQb", b"a.txt\0b")
    with pytest.raises(BadFile, match="has no plain name"):
        make_source({"a.zip": data}).rows("a.zip!*.txt")


def test_a_name_that_is_not_utf8_is_refused(make_source: Any) -> None:
    data = tarred({"cafe.txt": "x"}).replace(b"cafe.txt", b"caf\xe9.txt")
    broken = data[:148] + b"        " + data[156:]
    total = sum(broken[:512])
    source = make_source({"a.tar": data[:148] + f"{total:06o}\0 ".encode() + data[156:]})
    with pytest.raises(BadFile, match="has a name that is not UTF-8"):
        source.rows("a.tar!*.txt")


def test_folders_of_an_archive_are_no_files(make_source: Any) -> None:
    tar = tarfile.TarInfo("./")
    tar.type = tarfile.DIRTYPE
    source = make_source({"a.zip": zipped({"d/": "", "d/a.txt": "x"}), "b.tar": tarred(FILES, tar)})
    assert len(source.rows("a.zip!**/*.txt")) == 1
    assert len(source.rows("b.tar!*.txt")) == 1


class Unseekable(io.BytesIO):
    """Makes `zipfile` write sizes behind each member."""

    def seekable(self) -> bool:
        return False

    def seek(self, *_: Any) -> int:
        raise OSError

    def tell(self) -> int:
        raise OSError


def test_zips_of_every_writer_are_whole(make_source: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    streamed = Unseekable()
    with zipfile.ZipFile(streamed, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("a.txt", "x" * 1000)
        with archive.open("b.txt", "w", force_zip64=True) as member:
            member.write(b"y")
    large = io.BytesIO()
    with zipfile.ZipFile(large, "w") as archive:
        with archive.open("a.txt", "w", force_zip64=True) as member:
            member.write(b"x")
        archive.comment = b"about"
    monkeypatch.setattr(zipfile, "ZIP_FILECOUNT_LIMIT", 2)  # as with more than 65,535 members
    many = zipped({f"{n}.txt": "x" for n in range(9)})
    assert b"PK\6\6" in many
    source = make_source({"a.zip": streamed.getvalue(), "b.zip": large.getvalue(), "c.zip": many})
    assert [len(source.rows(f"{one}.zip!*.txt")) for one in "abc"] == [2, 1, 9]


@pytest.mark.parametrize("where", ["before", "behind", "between", "second"])
def test_bytes_that_no_reader_of_a_zip_sees_are_refused(make_source: Any, where: str) -> None:
    whole = zipped(FILES)
    directory = whole.index(b"PK\1\2")
    hidden = b"MRN: 00423178"
    if where == "between":  # a member that was struck out of the directory
        other = zipped({"gone.txt": hidden})
        hidden = other[: other.index(b"PK\1\2")]
        end = whole.index(b"PK\5\6")
        moved = (directory + len(hidden)).to_bytes(4, "little")
        whole = whole[: end + 16] + moved + whole[end + 20 :]
        data = whole[:directory] + hidden + whole[directory:]
    else:
        data = {"before": hidden + whole, "behind": whole + hidden, "second": whole + whole}[where]
    assert zipfile.ZipFile(io.BytesIO(data)).namelist() == list(FILES)
    with pytest.raises(BadFile, match="that belong to none of its parts"):
        make_source({"a.zip": data}).rows("a.zip!*.txt")


@pytest.mark.parametrize(
    "kind", [tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.FIFOTYPE, tarfile.CHRTYPE, tarfile.BLKTYPE]
)
def test_links_and_devices_in_a_tar_are_refused(make_source: Any, kind: bytes) -> None:
    odd = tarfile.TarInfo("link.txt")
    odd.type, odd.linkname = kind, "x.txt"
    source = make_source({"a.tar": tarred(FILES, odd)})
    with pytest.raises(BadFile, match=r"'link.txt' is a link, a device or sparse"):
        source.rows("a.tar!*.txt")


def test_links_in_a_zip_are_refused(make_source: Any) -> None:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        info = zipfile.ZipInfo("link.txt")
        info.external_attr = (stat.S_IFLNK | 0o777) << 16
        archive.writestr(info, "/etc/passwd")
    source = make_source({"a.zip": buffer.getvalue()})
    with pytest.raises(BadFile, match=r"'link.txt' is a link"):
        source.rows("a.zip!*.txt")


def test_an_encrypted_zip_is_refused(make_source: Any) -> None:
    data = bytearray(zipped({"a.txt": "x"}))
    data[6] |= 1  # the flag in the member's header, and in the directory
    data[data.rindex(b"PK\x01\x02") + 8] |= 1
    source = make_source({"a.zip": bytes(data)})
    with pytest.raises(BadFile, match=r"'a.txt' is encrypted"):
        source.rows("a.zip!*.txt")


def test_cut_archives_are_found_wherever_they_are_cut(make_source: Any, name: str) -> None:
    files = {f"{n}.txt": bytes(range(256)) * 7 for n in range(8)}
    whole = PACKED[name](files)
    tail = 10_240 if name == "a.tar" else 8  # a tar ends in zeros, of which 512 are enough
    for length in (10, len(whole) // 3, len(whole) // 2, len(whole) - tail):
        source = make_source({name: whole[:length]})
        with pytest.raises(BadFile, match=r"a\.\w+"):
            source.rows(f"{name}!*.none")


def test_a_tar_cut_between_members_is_found(make_source: Any) -> None:
    whole = tarred({"a.txt": "x", "b.txt": "y"})
    source = make_source({"a.tar": whole[:1024]})
    with pytest.raises(BadFile, match="ends without an end mark"):
        source.rows("a.tar!*.txt")


def test_a_damaged_header_is_not_taken_for_the_end(make_source: Any) -> None:
    data = bytearray(tarred({"a.txt": "x", "b.txt": "y"}))
    data[1024] ^= 0x55
    source = make_source({"a.tar": bytes(data)})
    with pytest.raises(BadFile, match="bad header"):
        source.rows("a.tar!*.txt")


def test_two_tars_in_one_file_are_not_read_as_the_first(make_source: Any) -> None:
    source = make_source({"a.tar": tarred({"a.txt": "x"}) + tarred({"b.txt": "y"})})
    with pytest.raises(BadFile, match="data follow the end"):
        source.rows("a.tar!*.txt")


def test_a_changed_byte_in_a_zip_member_is_found(make_source: Any) -> None:
    data = bytearray(zipped({"a.txt": "some text " * 100}))
    data[50] ^= 0x55
    source = make_source({"a.zip": bytes(data)})
    with pytest.raises(BadFile, match=r"a\.zip!a\.txt, unpacked byte 0: damaged or cut"):
        source.rows("a.zip!*.txt")


def test_an_archive_bomb_is_refused(
    make_source: Any, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if name == "a.tar":
        return  # nothing is packed in it
    monkeypatch.setattr(limits, "RATIO_FROM", 2**18)
    files = {f"{n}.bin": b"\0" * 2**20 for n in range(3)}
    source = make_source({name: PACKED[name](files)})
    with pytest.raises(BadFile, match="as a decompression bomb does"):
        source.rows(f"{name}!*.bin")
    assert len(source.rows(Rows(f"{name}!*.bin", max_ratio=1e6))) == 3


def test_a_long_header_in_a_tar_is_refused(make_source: Any) -> None:
    info = tarfile.TarInfo("a.txt")
    info.pax_headers = {"comment": "x" * 2**21}
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.PAX_FORMAT) as archive:
        archive.addfile(info)
    source = make_source({"a.tar": buffer.getvalue()})
    with pytest.raises(BadFile, match="a header of"):
        source.rows("a.tar!*.txt")


@pytest.mark.parametrize("content", [b"", b"no archive at all", b"<html>404</html>"])
def test_what_is_no_archive_is_called_none(make_source: Any, name: str, content: bytes) -> None:
    source = make_source({name: content})
    with pytest.raises(BadFile, match=r"a\.\w+"):
        source.rows(f"{name}!**")
