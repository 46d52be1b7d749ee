"""Quiet: what third parties say while they are imported or built is the same in every run."""

import logging
import warnings
from collections.abc import Generator
from contextlib import contextmanager


@contextmanager
def quiet() -> Generator[None]:
    """Within: no warning is shown, and no log record up to a warning."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        logging.disable(logging.WARNING)
        try:
            yield
        finally:
            logging.disable(logging.NOTSET)
