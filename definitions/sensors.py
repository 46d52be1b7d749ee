"""Sensors: what starts by itself. Off on a laptop and in dev until somebody turns it on."""

from factory.control.deliveries import deliveries_sensor
from factory.control.sweeping import orphans_sensor
from factory.discovery import datasets
from factory.settings import Settings

_settings = Settings.from_environment()

new_deliveries = deliveries_sensor(datasets().values(), _settings)
orphans = orphans_sensor(_settings)
