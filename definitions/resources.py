"""Resources and executor for the deployment in `settings`."""

import dagster as dg

from factory.control.resources import executor, resources
from factory.settings import Settings

settings = Settings.from_environment()
defs = dg.Definitions(resources=resources(settings), executor=executor(settings))
