"""helm, as a person calls it: charts are linted, rendered, installed and taken away again."""

import os
import subprocess
from dataclasses import dataclass
from pathlib import Path

import yaml

from tests.cluster import builds
from tests.cluster.api import Object
from tests.conftest import CHECKOUT

COMPUTE_PLANE = CHECKOUT / "charts" / "compute-plane"
PLATFORM = CHECKOUT / "charts" / "platform"


class HelmFailed(Exception):
    """helm's own words."""


@dataclass(frozen=True)
class Helm:
    """helm with nothing of this machine's own settings; `kubeconfig` says where it installs."""

    program: Path
    home: Path
    kubeconfig: Path | None = None

    def __call__(self, *arguments: str | Path) -> str:
        """Run it.

        Raises:
            HelmFailed: it ended with an error.
        """
        homes = {f"HELM_{name}_HOME": str(self.home / name) for name in ("CACHE", "CONFIG", "DATA")}
        environment = {"PATH": os.environ["PATH"], "HOME": str(self.home), **homes}
        if self.kubeconfig is not None:
            environment["KUBECONFIG"] = str(self.kubeconfig)
        command = [self.program, *arguments]
        done = subprocess.run(command, env=environment, check=False, capture_output=True, text=True)
        if done.returncode:
            raise HelmFailed(done.stdout + done.stderr)
        return done.stdout

    def lint(self, chart: Path, *arguments: str | Path) -> str:
        """What helm says of a chart.

        Raises:
            HelmFailed: something is wrong with it, or with the values.
        """
        return self("lint", "--strict", "--kube-version", builds.KUBERNETES, chart, *arguments)

    def rendered(self, chart: Path, *arguments: str | Path) -> list[Object]:
        """The objects of a chart.

        Raises:
            HelmFailed: as `lint`.
        """
        version = ("--kube-version", builds.KUBERNETES)
        text = self("template", "west", chart, "--namespace", "ai-factory", *version, *arguments)
        return [one for one in yaml.safe_load_all(text) if one]


def one(objects: list[Object], kind: str, name: str) -> Object:
    """The object of that kind and name.

    Raises:
        ValueError: there is none, or there are two.
    """
    (found,) = (
        each for each in objects if (each["kind"], each["metadata"]["name"]) == (kind, name)
    )
    return found
