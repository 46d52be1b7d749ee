"""Once: each step of a run is saved once, and never into a checkpoint that is complete.

Bridge saves at the end of a run whatever was saved before, over the files that are there. A save
is the work of all ranks, so what leaves one out must be known to each of them alike.
"""

from factory.errors import RunFailed
from factory.namespace import RunDirectory
from factory.namespace.checkpoints import MARKER, checkpoint_path


class Once:
    """Which step an attempt saved last; at first the one that it goes on from, or 0."""

    def __init__(self, run: RunDirectory, step: int) -> None:
        self._run = run
        self._last = step

    def has(self, step: int) -> bool:
        """Whether that is the step, so that it needs no save."""
        return step == self._last

    def begin(self, step: int) -> None:
        """Note that this step is being saved.

        Raises:
            RunFailed: the directory that it would be saved into holds a complete checkpoint.
        """
        directory = checkpoint_path(self._run, step)
        if (directory / MARKER).exists():
            raise RunFailed(
                f"{directory} is complete already, and saving step {step} there again would "
                "destroy it, so the run ends before that. `factory resume` goes on from its "
                "newest checkpoint."
            )
        self._last = step
