"""Sensors: what starts by itself. Off on a laptop and in dev until somebody turns it on."""

from factory.control.deliveries import deliveries_sensor
from factory.discovery import datasets
from factory.settings import Settings

new_deliveries = deliveries_sensor(datasets().values(), Settings.from_environment())
