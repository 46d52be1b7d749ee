"""Settings: what may differ between a laptop, dev and production.

The only module that reads the environment. Everything else takes a `Settings`.

- `FACTORY_DEPLOYMENT`: `laptop` (default), `dev` or `prod`.
- `FACTORY_ROOT`: the namespace, a directory that every node mounts (`.factory/namespace`).
- `FACTORY_STATE`: this machine's own files: MLflow, downloads, sessions (`.factory/state`).
- `DAGSTER_HOME`: Dagster's instance (`.factory/dagster`).
- `FACTORY_MIRRORS`: a TOML file that redirects sources to local copies (none).
- `FACTORY_DROPS`: where partners' deliveries land, outside the namespace (none).
- `FACTORY_ALLOW_PARTIAL`: for tests only, `1` on a laptop: training on partial versions (no).
- `FACTORY_IMAGE`: the image this process runs in, by digest (none: the working tree).
- `FACTORY_DEPENDENCIES`: said by an image of itself: `install` or `mounted` (none: no image).
"""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Literal, get_args

from pydantic import BaseModel

from factory.errors import SettingsError

type Deployment = Literal["laptop", "dev", "prod"]
type StepExecutor = Literal["in_process", "multiprocess"]
type Dependencies = Literal["install", "mounted"]
"""Whether the locked packages are in an image, or its containers have them mounted."""

STEP_EXECUTOR: Mapping[Deployment, StepExecutor] = {
    "laptop": "in_process",  # a process for each step costs more than a small dataset's steps
    "dev": "multiprocess",
    "prod": "multiprocess",
}
"""Where the steps of a dataset run, by deployment."""

SENSORS_ON: Mapping[Deployment, bool] = {
    "laptop": False,
    "dev": False,  # until somebody turns them on in the UI
    "prod": True,
}
"""Whether sensors and schedules run without being turned on, by deployment."""

CHECKOUT = Path(__file__).resolve().parent.parent
"""The directory that holds `factory/` and `definitions/`."""

DEFAULT_ROOT = CHECKOUT / ".factory" / "namespace"


class Settings(BaseModel, frozen=True, extra="forbid"):
    """One process's view of where things are."""

    deployment: Deployment
    root: Path
    state: Path
    dagster_home: Path
    mirrors: Path | None
    drops: Path | None
    image: str | None
    dependencies: Dependencies | None = None
    allow_partial: bool = False
    """For tests only: whether a run may read versions that were made from a partial mirror."""

    @classmethod
    def from_environment(cls, environment: Mapping[str, str] | None = None) -> "Settings":
        """Read the environment once.

        Raises:
            SettingsError: `FACTORY_DEPLOYMENT` is not one of the three deployments,
                `FACTORY_DEPENDENCIES` is neither of its two values, or `FACTORY_ALLOW_PARTIAL` is
                set where people train.
        """
        env = os.environ if environment is None else environment
        base = CHECKOUT / ".factory"
        deployment = _deployment(env.get("FACTORY_DEPLOYMENT", "laptop"))
        return cls(
            deployment=deployment,
            root=_path(env, "FACTORY_ROOT") or DEFAULT_ROOT,
            state=_path(env, "FACTORY_STATE") or base / "state",
            dagster_home=_path(env, "DAGSTER_HOME") or base / "dagster",
            mirrors=_path(env, "FACTORY_MIRRORS"),
            drops=_path(env, "FACTORY_DROPS"),
            image=env.get("FACTORY_IMAGE") or None,
            dependencies=_dependencies(env.get("FACTORY_DEPENDENCIES", "")),
            allow_partial=_allow_partial(env.get("FACTORY_ALLOW_PARTIAL", ""), deployment),
        )

    @property
    def own_image(self) -> str | None:
        """The image that this process runs in, which says so of itself; none outside of one."""
        return self.image if self.dependencies else None

    @property
    def step_executor(self) -> StepExecutor:
        """Where the steps of a dataset run."""
        return STEP_EXECUTOR[self.deployment]

    @property
    def sensors_on(self) -> bool:
        """Whether sensors and schedules run without being turned on."""
        return SENSORS_ON[self.deployment]

    def make_default_root(self) -> None:
        """Create the namespace's root where nobody chose one.

        A root that somebody did choose and that is missing is a mount that is not there: making a
        directory in its place would hide that.
        """
        if self.root == DEFAULT_ROOT:
            self.root.mkdir(parents=True, exist_ok=True)

    def environment(self) -> dict[str, str]:
        """The variables that give a child process the same settings."""
        values = {
            "FACTORY_DEPLOYMENT": self.deployment,
            "FACTORY_ROOT": self.root,
            "FACTORY_STATE": self.state,
            "DAGSTER_HOME": self.dagster_home,
            "FACTORY_MIRRORS": self.mirrors,
            "FACTORY_DROPS": self.drops,
            "FACTORY_ALLOW_PARTIAL": "1" if self.allow_partial else None,
            "FACTORY_IMAGE": self.image,
            "FACTORY_DEPENDENCIES": self.dependencies,
        }
        return {name: str(value) for name, value in values.items() if value is not None}


def ray_address() -> str:
    """The Ray cluster that the driver of a run was given.

    Raises:
        SettingsError: there is none.
    """
    address = ray_cluster()
    if address is None:
        raise SettingsError(
            "RAY_ADDRESS is not set, so there is no cluster to train on. "
            "`factory launch JOB` makes one for the run and sets it."
        )
    return address


def ray_cluster() -> str | None:
    """The Ray cluster that this process is to use; none where it may start one of its own."""
    return os.environ.get("RAY_ADDRESS") or None


def inherited_environment(remove: tuple[str, ...] = ()) -> dict[str, str]:
    """A copy of this process's environment for a child, without the variables named."""
    return {name: value for name, value in os.environ.items() if name not in remove}


def tokenize_on_one_thread() -> None:
    """Let `tokenizers` use no threads, here and in every process that is started from here.

    A fork has none of the threads that its parent has used, and waits for them for ever. Bridge
    asks for them in each process that imports it, unless this is said before or after.
    """
    os.environ["TOKENIZERS_PARALLELISM"] = "false"


def _deployment(name: str) -> Deployment:
    known: tuple[Deployment, ...] = get_args(Deployment.__value__)
    for deployment in known:
        if deployment == name:
            return deployment
    raise SettingsError(f"FACTORY_DEPLOYMENT is {name!r}; it must be one of {', '.join(known)}.")


def _dependencies(value: str) -> Dependencies | None:
    known: tuple[Dependencies, ...] = get_args(Dependencies.__value__)
    for dependencies in known:
        if dependencies == value:
            return dependencies
    if value:
        raise SettingsError(
            f"FACTORY_DEPENDENCIES is {value!r}; an image sets it to one of {', '.join(known)}."
        )
    return None


def _allow_partial(value: str, deployment: Deployment) -> bool:
    if value not in ("", "0", "1"):
        raise SettingsError(f"FACTORY_ALLOW_PARTIAL is {value!r}; it must be 1, or not set.")
    if value == "1" and deployment != "laptop":
        raise SettingsError(
            f"FACTORY_ALLOW_PARTIAL is set on {deployment}; it is for tests on a laptop "
            "only, since a model trained on part of a dataset looks like any other. Unset it."
        )
    return value == "1"


def _path(env: Mapping[str, str], name: str) -> Path | None:
    value = env.get(name)
    return Path(value).expanduser().absolute() if value else None
