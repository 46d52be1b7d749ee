"""The programs of a Kubernetes, built once from Go modules into the user's cache.

Each folder of `binaries` is a Go module that names tools or imports a library, and pins everything
below them, with checksums, in its `go.sum`. What was built lies in a folder named after the
recipe's hash, so another recipe never finds it. `python -m tests.cluster.builds` builds everything
and says so as it goes.
"""

import fcntl
import hashlib
import logging
import os
import shutil
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path

RECIPES = Path(__file__).parent / "binaries"
KUBERNETES = "1.34.2"

_log = logging.getLogger(__name__)
_GIB = 1024**3
_MEMORY_PER_COMPILER = 4 * _GIB
_GO_HOMES = ("/usr/local/go/bin", "/usr/lib/go/bin")
_FLAGS = [
    "-trimpath",
    "-ldflags=-s -w"
    f" -X k8s.io/component-base/version.gitVersion=v{KUBERNETES}"
    " -X k8s.io/component-base/version.gitMajor=1"
    " -X k8s.io/component-base/version.gitMinor=34",
]


class NoGo(Exception):
    """This machine has no Go."""


@dataclass(frozen=True)
class Recipe:
    """One module of `binaries`, the programs to build from it and the files to keep."""

    module: str
    version: str
    programs: dict[str, str]
    """Package by the name of the program."""
    crds: str = ""
    """Folder of custom resource definitions in the module of the program, if it has any."""

    def folder(self) -> Path:
        """Where what was built lies."""
        content = [self.module, self.version, *_FLAGS, *self.programs.values(), self.crds]
        digest = hashlib.sha256("\0".join(content).encode())
        for path in sorted((RECIPES / self.module).iterdir()):
            digest.update(path.read_bytes())
        return cache() / f"{self.module}-{self.version}-{digest.hexdigest()[:12]}"


ETCD = Recipe("etcd", "3.6.13", {"etcd": "go.etcd.io/etcd/server/v3"})
CONTROL_PLANE = Recipe(
    "kubernetes",
    KUBERNETES,
    {
        name: f"k8s.io/kubernetes/cmd/{name}"
        for name in ("kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubelet")
    },
)
KUBERAY = Recipe(
    "kuberay",
    "1.6.2",
    {"ray-operator": "github.com/ray-project/kuberay/ray-operator"},
    crds="config/crd/bases",
)
DNS = Recipe("coredns", "1.12.4", {"coredns": "."})
PAUSE = Recipe("pause", "1", {"pause": "."})
HELM = Recipe("helm", "3.19.5", {"helm": "helm.sh/helm/v3/cmd/helm"})
ALL = (ETCD, CONTROL_PLANE, KUBERAY, DNS, PAUSE, HELM)


def cache() -> Path:
    """The folder of this project in the user's cache."""
    home = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(home) / "ai-factory"


def program(name: str) -> Path:
    """The program of that name, built now if it never was.

    Raises:
        NoGo: it has to be built, and there is no Go.
        CalledProcessError: Go could not build it; its output is in the error.
    """
    recipe = next(recipe for recipe in ALL if name in recipe.programs)
    path = recipe.folder() / name
    if not path.exists():
        with Lock(recipe.folder()):
            if not path.exists():  # another process may have built it meanwhile
                _build(recipe, name)
    return path


def crds() -> list[Path]:
    """The files that define KubeRay's resources, copied from its module.

    Raises:
        NoGo: as `program`.
        CalledProcessError: as `program`.
    """
    folder = KUBERAY.folder() / "crds"
    if not folder.exists():
        with Lock(KUBERAY.folder()):
            if not folder.exists():
                _keep_crds(folder)
    return sorted(folder.glob("*.yaml"))


def go() -> str:
    """Where Go is.

    Raises:
        NoGo: it is nowhere.
    """
    path = os.pathsep.join([os.environ.get("PATH", ""), *_GO_HOMES])
    found = shutil.which("go", path=path)
    if found is None:
        raise NoGo(
            "There is no Go on this machine to build a Kubernetes with: see go.dev/doc/install"
        )
    return found


class Lock:
    """Two that build into the same folder: the second waits, then finds it done."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def __enter__(self) -> None:
        self._folder.mkdir(parents=True, exist_ok=True)
        self._file = (self._folder / ".lock").open("w")
        fcntl.flock(self._file, fcntl.LOCK_EX)

    def __exit__(self, *_: object) -> None:
        self._file.close()


def _build(recipe: Recipe, name: str) -> None:
    _log.info("building %s (%s %s)", name, recipe.module, recipe.version)
    start = time.monotonic()
    target = recipe.folder() / name
    scratch = target.with_name(f".{name}")
    package = recipe.programs[name]
    _run_go(recipe, "build", f"-p={_compilers()}", *_FLAGS, "-o", str(scratch), package)
    scratch.replace(target)
    _log.info("built %s in %.0f s", name, time.monotonic() - start)


def _keep_crds(folder: Path) -> None:
    (module,) = KUBERAY.programs.values()
    _run_go(KUBERAY, "mod", "download", module)
    source = Path(_run_go(KUBERAY, "list", "-m", "-f", "{{.Dir}}", module).strip()) / KUBERAY.crds
    scratch = folder.with_name(".crds")
    shutil.rmtree(scratch, ignore_errors=True)
    scratch.mkdir()
    for path in source.glob("*.yaml"):
        (scratch / path.name).write_bytes(path.read_bytes())
    scratch.replace(folder)


def _run_go(recipe: Recipe, *arguments: str) -> str:
    """Go's output, with nothing of this machine's settings that would change what is built."""
    environment = os.environ | {"CGO_ENABLED": "0", "GOFLAGS": "-mod=readonly", "GOWORK": "off"}
    done = subprocess.run(
        ["nice", "-n", "19", go(), *arguments],  # noqa: S607  nice is where the system keeps it
        cwd=RECIPES / recipe.module,
        env=environment,
        check=False,
        capture_output=True,
        text=True,
    )
    if done.returncode:
        _log.error("go %s failed: %s", arguments[0], done.stderr)
    done.check_returncode()
    return done.stdout


def _compilers() -> int:
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return max(1, min(os.cpu_count() or 1, memory // _MEMORY_PER_COMPILER))


def main() -> None:
    """Build what is not there yet. Without Go that is up to the tests, which say what they skip."""
    logging.basicConfig(level=logging.INFO, format="%(message)s")
    try:
        for recipe in ALL:
            for name in recipe.programs:
                program(name)
        crds()
    except NoGo as missing:
        _log.warning("%s", missing)


if __name__ == "__main__":
    main()
