"""An image whose driver is `light_driver`, made in a moment; all else of it is as in `images/`.

What a distribution has comes from this machine's `/usr`, which pods mount, as they mount Python and
the locked packages where the factory's own image expects them.
"""

from pathlib import Path

from factory.settings import CHECKOUT
from tests.cluster import light_driver
from tests.cluster.builds import program
from tests.cluster.images import Image, write_image

SYSTEM = "/usr"
VARIABLES = {"PATH": "/opt/env/bin:/usr/bin:/usr/sbin", "PYTHONPATH": "/opt/factory"}

_RAY = "#!/opt/env/bin/python\nfrom ray.scripts.scripts import main\nmain()\n"
_LINKS = {
    "bin": "usr/bin",
    "lib": "usr/lib",
    "lib64": "usr/lib64",
    "opt/env/bin/python": "/opt/python/bin/python3.12",
}


def light_image(folder: Path) -> Image:
    """The image, in an archive in that folder."""
    written = {
        "opt/env/pyvenv.cfg": "home = /opt/python/bin\n",
        "opt/env/bin/ray": _RAY,
    }
    files = {name: _write(folder / Path(name).name, text) for name, text in written.items()}
    sources = {f"opt/factory/{path.relative_to(CHECKOUT)}": path for path in _sources()}
    driver = {"opt/factory/factory/training/__main__.py": Path(light_driver.__file__)}
    return write_image(
        folder / "light.tar",
        "registry.test/factory/light",
        programs={"pause": program("pause"), **files, **sources, **driver},
        links=_LINKS,
        command=["/pause"],
    )


def _sources() -> list[Path]:
    """Of the factory."""
    every = (CHECKOUT / "factory").rglob("*")
    return sorted(one for one in every if one.is_file() and one.suffix != ".pyc")


def _write(path: Path, text: str) -> Path:
    path.write_text(text)
    return path
