"""Silence around pydicom and Pillow, whose warnings and log records quote what they read."""

import logging
import warnings
from collections.abc import Generator
from contextlib import contextmanager
from threading import RLock

_LOGGERS = ("pydicom", "PIL")
_LOCK = RLock()


@contextmanager
def quiet() -> Generator[None]:
    """No warning and no log record of theirs leaves this block."""
    with _LOCK, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        loggers = [logging.getLogger(name) for name in _LOGGERS]
        before = [logger.disabled for logger in loggers]
        levels = [logger.level for logger in loggers]
        for logger in loggers:
            logger.disabled = True
            logger.setLevel(logging.CRITICAL + 1)
        try:
            yield
        finally:
            for logger, disabled, level in zip(loggers, before, levels, strict=True):
                logger.disabled = disabled
                logger.setLevel(level)
