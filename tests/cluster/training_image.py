"""The factory's image, built from `images/` as a site builds it, on a Debian made on this machine.

The base is made once into the user's cache; the image anew each time, since it holds the sources.
"""

import hashlib
import io
import logging
import shutil
import subprocess
import tarfile
from pathlib import Path

from factory.settings import CHECKOUT
from tests.cluster.builds import Lock, cache
from tests.cluster.images import Image, pack
from tests.cluster.kubelets import NoContainers

NAME = "registry.test/factory/training"
NEEDED = ("buildah", "debootstrap")

_log = logging.getLogger(__name__)
_SUITE = "bookworm"
_OF_PYTHON = (
    *("libbz2-1.0", "libexpat1", "libffi8", "liblzma5", "libncursesw6", "libnsl2", "libreadline8"),
    *("libsqlite3-0", "libssl3", "libtirpc3", "libuuid1", "zlib1g"),
)
"""What an interpreter that was built on this machine is linked with."""

_PACKAGES = (*_OF_PYTHON, "wget")
_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
_LEFT_OUT = ("var/cache/apt", "var/lib/apt/lists", "dev", "proc", "sys")


def build_image(folder: Path, checkout: Path = CHECKOUT) -> Image:
    """The image of a checkout whose dependencies are mounted, in an archive in that folder.

    Raises:
        NoContainers: a program is missing, or there is no Debian to be had.
        CalledProcessError: the Containerfile cannot be built; its output is in the error.
    """
    base = base_archive()
    lock = hashlib.sha256((checkout / "requirements.lock").read_bytes()).hexdigest()
    commit = _run("git", "-C", str(CHECKOUT), "rev-parse", "HEAD").strip()
    arguments = {
        "BASE": f"oci-archive:{base}",
        "DEPENDENCIES": "mounted",
        "COMMIT": commit,
        "LOCK": lock,
    }
    storage = [f"--root={folder / 'storage'}", f"--runroot={folder / 'run'}"]
    buildah = ["buildah", *storage, "--storage-driver=vfs"]  # overlay leaves a mount behind
    archive, digest = folder / "training.tar", folder / "digest"
    _run(
        *buildah,
        "build",
        "--isolation=chroot",
        "--timestamp=0",
        f"--file={checkout / 'images' / 'Containerfile'}",
        *(f"--build-arg={name}={value}" for name, value in arguments.items()),
        f"--tag={NAME}:test",
        str(checkout),
    )
    _run(
        *buildah,
        "push",
        f"--digestfile={digest}",
        f"{NAME}:test",
        f"oci-archive:{archive}:test",
    )
    shutil.rmtree(folder / "storage")
    return Image(NAME, digest.read_text().strip(), archive)


def base_archive() -> Path:
    """A small Debian as an image.

    Raises:
        NoContainers: a program is missing, or there is no Debian to be had.
    """
    if missing := [name for name in NEEDED if shutil.which(name) is None]:
        raise NoContainers(f"Missing on this machine: {', '.join(missing)}")
    names = "\0".join([_SUITE, *_PACKAGES, *_LEFT_OUT, _PATH])
    folder = cache() / f"debian-{_SUITE}-{hashlib.sha256(names.encode()).hexdigest()[:12]}"
    archive = folder / "base.tar"
    if not archive.exists():
        with Lock(folder):
            if not archive.exists():
                _make_base(archive)
    return archive


def _make_base(archive: Path) -> None:
    root, scratch = archive.with_name("root"), archive.with_name(".base.tar")
    shutil.rmtree(root, ignore_errors=True)
    try:
        included = f"--include={','.join(_PACKAGES)}"
        _run("debootstrap", "--variant=minbase", included, _SUITE, str(root))
        data = io.BytesIO()
        with tarfile.open(fileobj=data, mode="w") as tar:
            tar.add(root, arcname=".", filter=_kept)
        pack(scratch, "debian.test/base", data.getvalue(), {"Env": [f"PATH={_PATH}"]})
        scratch.replace(archive)
    except subprocess.CalledProcessError as failed:
        raise NoContainers(f"debootstrap cannot make a Debian here: {failed.output}") from failed
    finally:
        shutil.rmtree(root, ignore_errors=True)


def _kept(entry: tarfile.TarInfo) -> tarfile.TarInfo | None:
    parts = entry.name.removeprefix("./")
    inside = any(parts.startswith(f"{folder}/") for folder in _LEFT_OUT)
    return None if inside or entry.isdev() else entry


def _run(*command: str) -> str:
    done = subprocess.run(
        ["nice", "-n", "10", *command],  # noqa: S607  wherever this system has it
        check=False,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    if done.returncode:
        _log.error("%s failed: %s", command[0], done.stdout)
    done.check_returncode()
    return done.stdout
