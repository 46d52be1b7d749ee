"""The attempt that comes after one which has lost its place."""

from factory.namespace import RunDirectory
from factory.namespace.checkpoints import complete_checkpoints
from factory.spec import Launch


def next_attempt(launch: Launch, run: RunDirectory) -> Launch:
    """What to launch after that attempt.

    What was asked of it once, to begin the data again or to share them out anew, is done when it
    has saved; until then the next one begins where it did.
    """
    saved = any(one.marker.attempt == launch.attempt for one in complete_checkpoints(run))
    done = {"fresh_data": False, "redistribute": False} if saved else {}
    return launch.model_copy(update={**done, "attempt": launch.attempt + 1})
