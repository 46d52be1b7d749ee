"""Stored images for Dagster's pages: thumbnails of some, a sheet of many, inside markdown.

For public datasets only, which the callers see to. They are JPEG, since the event log keeps them.
How images are stored is in `factory.data.table`, how a sheet is laid out in `images.montage`.
"""

import base64
import io
from collections.abc import Collection, Iterable
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from PIL import Image

ON_A_SHEET = 18
SHEET_BYTES = 75_000
"""Largest file of a sheet; 100 kB as text."""

THUMBNAIL = 144
"""Pixels of a thumbnail's longer side."""

QUALITIES = (80, 60, 40, 20)
"""Tried in turn until a sheet is small enough."""

WHITE = (255, 255, 255)


def sheet(directory: Path) -> str:
    """Some of a table's images side by side; empty where there are none."""
    from factory.data import table
    from factory.data.images.montage import montage, sample

    if not any(directory.glob("*.parquet")):
        return ""
    chosen = sample(table.column(directory, "sha256"), ON_A_SHEET)
    if not chosen:
        return ""
    found = stored(directory, chosen)
    text = f"{len(chosen)} images of the set"
    return _markdown(_opened(montage([found[name] for name in chosen])), text)


def thumbnails(directory: Path, names: Collection[str]) -> dict[str, str]:
    """Images of these hashes, small, by hash; those that are not in the table are left out."""
    small: dict[str, str] = {}
    for name, data in stored(directory, names).items():
        picture = _opened(data)
        picture.thumbnail((THUMBNAIL, THUMBNAIL))
        small[name] = _markdown(picture, f"image {name[:12]}")
    return small


def stored(directory: Path, names: Collection[str]) -> dict[str, bytes]:
    """The bytes of these images. Only the parts of the table are read that hold one of them."""
    import pyarrow as pa
    import pyarrow.compute as pc
    import pyarrow.parquet as pq

    wanted = pa.array(sorted(names), pa.string())
    found: dict[str, bytes] = {}
    for path in sorted(directory.glob("*.parquet")) if names else []:
        with pq.ParquetFile(path) as file:
            for group in range(file.num_row_groups):
                here = file.read_row_group(group, columns=["sha256"])["sha256"]
                chosen = pc.is_in(here, wanted)
                if pc.any(chosen).as_py():
                    rows = file.read_row_group(group, columns=["sha256", "data"]).filter(chosen)
                    found |= {row["sha256"]: row["data"] for row in rows.to_pylist()}
    return found


def _opened(data: bytes) -> "Image.Image":
    """An image on white, whatever its mode."""
    from PIL import Image

    from factory.data.images.mute import muted

    with muted(), Image.open(io.BytesIO(data)) as opened:
        picture = opened.convert("RGBA")
    ground = Image.new("RGB", picture.size, WHITE)
    ground.paste(picture, (0, 0), picture)
    return ground


def _markdown(picture: "Image.Image", text: str) -> str:
    encoded = base64.b64encode(_small(picture, QUALITIES)).decode("ascii")
    return f"![{text}](data:image/jpeg;base64,{encoded})"


def _small(picture: "Image.Image", qualities: Iterable[int]) -> bytes:
    """The first JPEG that is small enough, or else the smallest."""
    data = b""
    for quality in qualities:
        file = io.BytesIO()
        picture.save(file, "JPEG", quality=quality, optimize=True)
        data = file.getvalue()
        if len(data) <= SHEET_BYTES:
            break
    return data
