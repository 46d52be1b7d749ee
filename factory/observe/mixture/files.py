"""Files: what a run leaves of its ledger, and how it is read again.

```text
<run>/mix.lock                the mix as it was read
<run>/mixture/reading.jsonl   a `Reading` where data begin, at first or anew
<run>/mixture/ledger.jsonl    one `MixtureLine` for each logging interval
<run>/mixture/ledger.parquet  the same as a table, when the run is over
<run>/mixture/realized.json   a `RealizedMix`
<run>/mixture/realized.svg    a picture of it
```

Where a later attempt ends the run, its files are `ledger.2.parquet` and so on.
"""

from pathlib import Path

from factory.data.mixing import of_runs
from factory.data.mixing.lock import MixLock
from factory.errors import RunFailed
from factory.namespace.run_files import lines
from factory.reports import MixtureLine, Reading

DIRECTORY = "mixture"
LEDGER, READING = f"{DIRECTORY}/ledger.jsonl", f"{DIRECTORY}/reading.jsonl"


def ended(name: str, suffix: str, attempt: int) -> str:
    """A file that is written when the run is over."""
    return (
        f"{DIRECTORY}/{name}.{suffix}" if attempt == 1 else f"{DIRECTORY}/{name}.{attempt}.{suffix}"
    )


def lock_of(run: Path) -> MixLock:
    """The lock of a run's mix.

    Raises:
        RunFailed: the run has none.
        SpecError: it cannot be read.
    """
    lock = of_runs.lock_of(run)
    if lock is None:
        raise RunFailed(
            f"{run} has no {of_runs.FILE}, so it never came as far as reading its mix, or was made "
            "by an older factory."
        )
    return lock


def ledger_of(run: Path) -> list[MixtureLine]:
    """The lines of a run's ledger in order of their steps, of the last beginning of its data.

    A later attempt repeats steps after its checkpoint; its lines count. A resumption with fresh
    data begins to count anew, and what was counted before is left out.

    Raises:
        RunFailed: a whole line is not a line of a ledger.
        NamespaceError: it is no file of the run's.
    """
    found = lines(run, LEDGER, MixtureLine)
    if not found:
        return []
    begun = found[-1].begun
    by_step = {line.step: line for line in found if line.begun == begun}
    return [by_step[step] for step in sorted(by_step)]


def reading_of(run: Path) -> Reading:
    """How a run reads its mix since its data last began.

    Later attempts go on with the same number of readers, each where it was, so what the first one
    read says what all do.

    Raises:
        RunFailed: nothing says so, or a whole line is not a reading.
    """
    ledger = ledger_of(run)
    begun = ledger[-1].begun if ledger else 1
    found = [one for one in lines(run, READING, Reading) if one.begun == begun]
    if not found:
        raise RunFailed(f"{run / READING} does not say how attempt {begun} began to read.")
    return found[-1]
