"""Doing something in a child process that can be killed without harm to the test's own."""

import os
from collections.abc import Callable


def forked(body: Callable[[], object]) -> int:
    """Run `body` in a child that shares nothing but the files; gives its pid."""
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            body()
            code = 0
        finally:
            os._exit(code)
    return pid
