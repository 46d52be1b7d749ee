"""Container images made of a few files, without a registry and without a tool to build them.

The factory's own images are built from `images/` with a real builder; these are for the harness.
"""

import hashlib
import io
import json
import tarfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.cluster.api import Object

_OCI = "application/vnd.oci.image"


@dataclass(frozen=True)
class Image:
    """An image in an archive."""

    name: str
    digest: str
    archive: Path

    @property
    def reference(self) -> str:
        """How a pod names it: by its digest."""
        return f"{self.name}@{self.digest}"


def write_image(
    archive: Path,
    name: str,
    *,
    programs: Mapping[str, Path],
    links: Mapping[str, str] | None = None,
    command: Sequence[str],
) -> Image:
    """An image with these programs and symbolic links in it, that runs `command`."""
    return pack(archive, name, _layer(programs, links or {}), {"Entrypoint": list(command)})


def pack(archive: Path, name: str, layer: bytes, settings: Object) -> Image:
    """An image with the files of one tar in it."""
    config = {
        "architecture": "amd64",
        "os": "linux",
        "config": settings,
        "rootfs": {"type": "layers", "diff_ids": [_digest(layer)]},
    }
    blobs = [layer, _json(config)]
    manifest = {
        "schemaVersion": 2,
        "mediaType": f"{_OCI}.manifest.v1+json",
        "config": _described(blobs[1], "config.v1+json"),
        "layers": [_described(layer, "layer.v1.tar")],
    }
    blobs.append(_json(manifest))
    entry = _described(blobs[2], "manifest.v1+json")
    entry["annotations"] = {"io.containerd.image.name": f"{name}:test"}
    index = _json({"schemaVersion": 2, "manifests": [entry]})
    with tarfile.open(archive, "w") as tar:
        _add(tar, "oci-layout", _json({"imageLayoutVersion": "1.0.0"}))
        _add(tar, "index.json", index)
        for blob in blobs:
            _add(tar, f"blobs/sha256/{_digest(blob).partition(':')[2]}", blob)
    return Image(name, _digest(blobs[2]), archive)


def _layer(programs: Mapping[str, Path], links: Mapping[str, str]) -> bytes:
    data = io.BytesIO()
    with tarfile.open(fileobj=data, mode="w") as tar:
        for path, source in sorted(programs.items()):
            _add(tar, path, source.read_bytes(), mode=0o755)
        for path, target in sorted(links.items()):
            link = tarfile.TarInfo(path)
            link.type, link.linkname = tarfile.SYMTYPE, target
            tar.addfile(link)
    return data.getvalue()


def _add(tar: tarfile.TarFile, path: str, content: bytes, mode: int = 0o644) -> None:
    entry = tarfile.TarInfo(path)
    entry.size, entry.mode = len(content), mode
    tar.addfile(entry, io.BytesIO(content))


def _described(blob: bytes, kind: str) -> Object:
    return {"mediaType": f"{_OCI}.{kind}", "digest": _digest(blob), "size": len(blob)}


def _digest(data: bytes) -> str:
    return f"sha256:{hashlib.sha256(data).hexdigest()}"


def _json(content: Object) -> bytes:
    return json.dumps(content, sort_keys=True).encode()
