"""Assets and checks for every declared dataset: one file under `datasets/` is all it takes."""

import dagster as dg

from factory.control.assets import catalog
from factory.discovery import datasets


@dg.definitions
def defs() -> dg.Definitions:
    """The whole catalogue."""
    return catalog(datasets().values())
