"""A Dagster job whose one op follows a run on a cluster of the tests, as `factory launch` would."""

import json
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import dagster as dg

from factory.control.abandoned import owner_tags
from factory.control.adoption import acting_on_the_end
from factory.control.clusters import Kubernetes
from factory.control.instance import ensure
from factory.control.kube import pace
from factory.control.kube.api import Patience, connect
from factory.control.kube.backend import PATIENCE, KubernetesBackend
from factory.control.pipes import FactoryPipesClient
from factory.keys import Classification
from factory.namespace import Namespace, RunDirectory
from factory.settings import Settings
from factory.spec import CodeIdentity, Launch, RunSpec

STEP = "train"

OPEN = """
import os, signal, sys, time
from dagster_pipes import open_dagster_pipes
from factory.training.messages import NamespaceMessageWriter
opened = open_dagster_pipes(message_writer=NamespaceMessageWriter(interval_seconds=0.0))
def end(*_): raise SystemExit(75)
signal.signal(signal.SIGTERM, end)
step = {"kind": "step", "of": 9, "loss": 2.0, "grad_norm": 1.0, "learning_rate": 1e-4,
        "tokens": 100, "seconds": 0.1}
"""


@dataclass
class Outcome:
    """What came of a run."""

    result: dg.ExecuteInProcessResult
    instance: dg.DagsterInstance
    run: RunDirectory

    @property
    def lines(self) -> list[str]:
        """The lines of the run's page."""
        return [event.user_message for event in self.instance.all_logs(self.result.run_id)]

    @property
    def error(self) -> str:
        """What the failed step says."""
        [failed] = self.result.get_step_failure_events()
        error = failed.step_failure_data.error
        assert error is not None
        while error.cause is not None:
            error = error.cause
        return error.message

    @property
    def driver_log(self) -> str:
        """What the drivers of all attempts have printed."""
        logs = sorted((self.run.path / "logs").glob("driver*.log"))
        return "".join(path.read_text() for path in logs)


@dataclass
class Launcher:
    """Executes that job."""

    settings: Settings
    instance: dg.DagsterInstance
    cluster: Kubernetes
    image: str
    classification: Classification = "public"
    spec: Mapping[str, Any] = field(default_factory=dict[str, Any])
    patience: Patience = PATIENCE
    grace_seconds: float = 20.0
    poll_seconds: float = 0.05
    run: RunDirectory | None = None

    def as_argument(self) -> str:
        """All that another process takes to launch the same."""
        return json.dumps(
            {
                "settings": self.settings.model_dump(mode="json"),
                "cluster": self.cluster.model_dump(mode="json", exclude_unset=True),
                "image": self.image,
                "classification": self.classification,
                "spec": dict(self.spec),
            }
        )

    def command(self) -> list[str]:
        """Launches in a process of its own."""
        return [sys.executable, "-m", "tests.cluster.launching", self.as_argument()]

    def launch(self, tags: Mapping[str, str] | None = None) -> Outcome:
        """Run to the end."""
        result = self.job().execute_in_process(
            instance=self.instance, raise_on_error=False, tags=dict(tags or {})
        )
        assert self.run is not None
        return Outcome(result, self.instance, self.run)

    def job(self) -> dg.JobDefinition:
        """The job."""

        @dg.op(name=STEP)
        def train(context: dg.OpExecutionContext) -> None:
            self._train(context)

        @dg.job(executor_def=dg.in_process_executor)
        def job() -> None:
            train()

        return job

    def _train(self, context: dg.OpExecutionContext) -> None:
        context.instance.add_run_tags(context.run_id, owner_tags())
        backend = KubernetesBackend(
            self.settings,
            self.cluster,
            context.instance,
            context.run,
            STEP,
            connected=lambda cluster: connect(cluster, patience=self.patience),
        )
        fresh = self._launch_of(context.run_id)
        launch = backend.adopted(fresh.spec) or fresh.model_copy(
            update={"attempt": backend.next_attempt()}
        )
        self.run = Namespace(self.settings.root).open_run(launch.classification, launch.run_id)
        client = FactoryPipesClient(
            self.settings,
            backend,
            grace_seconds=self.grace_seconds,
            poll_seconds=self.poll_seconds,
        )
        with acting_on_the_end(context, self.settings.deployment):
            client.run(context=context, launch=launch, run_directory=self.run)

    def _launch_of(self, run_id: str) -> Launch:
        spec: dict[str, Any] = {
            "recipe": "debug.pretrain",
            "mix": "smoke",
            "cluster": self.cluster.name,
            "workers": 1,
            "gpus_per_worker": self.cluster.nodes.gpus,
            **self.spec,
        }
        return Launch(
            run_id=run_id,
            attempt=1,
            classification=self.classification,
            spec=RunSpec(**spec),
            profile=self.cluster.profile,
            datasets={},
            image=self.image,
            code=CodeIdentity(commit=None, tree="t", lock="l"),
        )


def until(look: Callable[[], Any], seconds: float = 60.0) -> Any:
    """What `look` gives once it gives something; fails the test if it never does."""
    deadline = time.monotonic() + seconds
    while not (seen := look()):
        assert time.monotonic() < deadline, "it did not come"
        time.sleep(0.05)
    return seen


def _main(argument: str) -> None:
    """Launch, with looks that follow each other as fast as in a test."""
    pace.LOOK_SECONDS, pace.HURRY_SECONDS = 0.5, 0.2
    given = json.loads(argument)
    settings = Settings.model_validate(given.pop("settings"))
    cluster = Kubernetes.model_validate(given.pop("cluster"))
    with ensure(settings) as instance:
        Launcher(settings, instance, cluster, **given).launch()


if __name__ == "__main__":
    _main(sys.argv[1])
