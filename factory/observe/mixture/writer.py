"""Writer: a thread that writes the ledger of a run, so that training waits for no file system."""

from collections.abc import Callable, Mapping

from factory.data.mixing.lock import MixLock
from factory.data.stream.account import LOSS_TOKENS, SAMPLES, TOKENS
from factory.namespace import RunDirectory
from factory.observe.background import Background
from factory.observe.mixture import figure
from factory.observe.mixture.files import DIRECTORY, LEDGER, READING, ended, ledger_of, reading_of
from factory.observe.mixture.realized import epochs, realized, totals_of
from factory.observe.mixture.table import parquet
from factory.observe.mixture.totals import none, share
from factory.reports import MixtureLine, Reading

type Metrics = Callable[[Mapping[str, float], int], None]
"""Where numbers of a step go, by name."""

SHARES = (
    ("share_of_samples", SAMPLES),
    ("share_of_tokens", TOKENS),
    ("share_of_loss_tokens", LOSS_TOKENS),
)


class Writer:
    """Writes lines as they come, and the files of a run that is over."""

    def __init__(
        self,
        run: RunDirectory,
        lock: MixLock,
        *,
        attempt: int,
        after: int,
        begins: Reading | None,
        metrics: Metrics,
    ) -> None:
        """Start the thread.

        Args:
            run: the run.
            lock: of its mix.
            attempt: of the run.
            after: steps before the attempt.
            begins: how the data are read that begin with the attempt; none where they go on.
            metrics: where numbers of an interval go.
        """
        self._run = run
        self._lock = lock
        self._attempt = attempt
        self._after = after
        self._begins = begins
        self._metrics = metrics
        self._before: MixtureLine | None = None
        self._background = Background("mixture", self._write, first=self._begin)

    def put(self, line: MixtureLine) -> None:
        """Queue a line.

        Raises:
            Exception: an earlier one could not be written.
        """
        self._background.put(line)

    def close(self) -> None:
        """Wait until everything is on disk.

        Raises:
            Exception: something could not be written.
        """
        self._background.close()

    def _begin(self) -> None:
        self._run.directory(DIRECTORY)
        if self._begins is not None:
            self._run.append(READING, self._begins.model_dump_json())
        self._before = self._last()

    def _write(self, line: MixtureLine) -> None:
        self._run.append(LEDGER, line.model_dump_json())
        self._metrics(metrics_of(self._lock, self._before, line), line.step)
        self._before = line
        if line.step == line.of:
            self._finish()

    def _last(self) -> MixtureLine | None:
        """The line before this attempt."""
        lines = [line for line in ledger_of(self._run.path) if line.step <= self._after]
        return lines[-1] if lines else None

    def _finish(self) -> None:
        lines = ledger_of(self._run.path)
        mix = realized(self._lock, lines, reading_of(self._run.path).readers)
        for name, suffix, data in (
            ("ledger", "parquet", parquet(lines)),
            ("realized", "json", (mix.model_dump_json(indent=2) + "\n").encode()),
            ("realized", "svg", figure.svg(mix)),
        ):
            self._run.create(ended(name, suffix, self._attempt), data)


def metrics_of(lock: MixLock, before: MixtureLine | None, line: MixtureLine) -> dict[str, float]:
    """Numbers of an interval for the experiment tracker: shares in it, and epochs until now."""
    now = totals_of(line)
    continued = before is not None and before.begun == line.begun
    then = totals_of(before) if before and continued else none(len(line.sources))
    counts = now.counts - then.counts
    found: dict[str, float] = {}
    for name, column in SHARES:
        for source, value in zip(line.sources, share(counts[:, column].astype(float)), strict=True):
            found[f"{name}/{source.source}"] = float(value)
    for source, locked in zip(line.sources, lock.sources, strict=True):
        found[f"epochs/{source.source}"] = epochs(source, locked.samples)
    slots, ending, aligning = (now.positions - then.positions).tolist()
    found["mixture/padding"] = (ending + aligning) / slots if slots else 0.0
    return found
