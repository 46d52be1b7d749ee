"""What every follower imports, imported once: the processes that are forked from here share it.

Dagster imports much of itself, and all of its databases, only when it first executes something.
"""

import importlib
import tempfile

import dagster as dg

from factory.control.instance import ensure
from factory.settings import Settings

FOLLOWERS = ("kubernetes.client", "tests.cluster.many_runs")


def _execute_something() -> None:
    @dg.op
    def nothing() -> None:
        pass

    @dg.job(executor_def=dg.in_process_executor)
    def job() -> None:
        nothing()

    with tempfile.TemporaryDirectory() as home:
        settings = Settings.from_environment({"DAGSTER_HOME": home, "FACTORY_STATE": home})
        with ensure(settings) as instance:
            job.execute_in_process(instance=instance)


for name in FOLLOWERS:
    importlib.import_module(name)
_execute_something()
