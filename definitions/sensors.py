"""Sensors: what starts by itself. Off on a laptop and in dev until somebody turns it on.

But for `left_alone`: a run that goes on is never left to itself.
"""

from factory.control.adoption import adoption_sensor
from factory.control.deliveries import deliveries_sensor
from factory.control.jobs import declared_jobs
from factory.control.sweeping import orphans_sensor
from factory.discovery import datasets
from factory.settings import Settings

_settings = Settings.from_environment()

new_deliveries = deliveries_sensor(datasets().values(), _settings)
orphans = orphans_sensor(_settings)
left_alone = adoption_sensor(declared_jobs())
