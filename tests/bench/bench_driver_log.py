"""The driver's log from a real Ray head: our reader beside dagster-ray's, whole and through faults.

Both read the finished log of the same Ray job in turn, each in a process of its own, and show every
line on their stdout. Something between them and the head can cut a connection.
"""

import statistics
import sys
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.bench.measured import in_process
from tests.cluster.api import eventually
from tests.control.kube.ray_heads import RayHead, cutting, ray_head

LINES = 1_000_000
FEW = 20_000
LONG_LINE = b"a" * 5_000_000 + b"\n"
ROUNDS = 3
SIDES = ("ours", "peer")
SCRIPT = Path(__file__).with_name("log_readers.py")

DRIVER = """
import sys
sys.path.insert(0, {checkout!r})
from tests.bench.bench_driver_log import driver_log
for block in driver_log(sys.argv[1]):
    sys.stdout.buffer.write(block)
"""


@dataclass(frozen=True)
class Case:
    """A log, and how the connection fares."""

    job: str
    name: str
    lines: int
    cuts: tuple[int, ...] = ()
    rounds: int = 1


CASES = (
    Case("plain", "a million lines", LINES, rounds=ROUNDS),
    Case("plain", "the same, the connection cut once, at 20 MB", LINES, (20_000_000,)),
    Case("long", "20,000 lines, a line of 5 MB in the middle", FEW + 1),
    Case("binary", "20,000 lines, one byte that is not UTF-8 in the middle", FEW),
)


def driver_log(job: str) -> Iterator[bytes]:
    """What the driver of that job writes."""
    if job == "plain":
        for first in range(0, LINES, 1000):
            yield _lines(range(first, first + 1000))
        return
    yield _lines(range(FEW // 2))
    yield b"\xff\n" if job == "binary" else LONG_LINE
    yield _lines(range(FEW // 2, FEW))


def run() -> str:
    """Alternate the two sides, case by case, and put them into a table."""
    rows: list[str] = []
    with ray_head() as head, tempfile.TemporaryDirectory(prefix="bench-log-") as folder:
        driver = head.folder / "driver.py"
        driver.write_text(DRIVER.format(checkout=str(Path(__file__).parents[2])))
        for job in dict.fromkeys(case.job for case in CASES):
            head.submit(job, f"{sys.executable} {driver} {job}")
            assert eventually(lambda job=job: _has_ended(head, job), 300)
        for case in CASES:
            rows += _compared(head, case, Path(folder))
    return "\n".join([_HEAD, *rows, "", _TAIL])


def _compared(head: RayHead, case: Case, folder: Path) -> list[str]:
    found: dict[str, list[dict[str, Any]]] = {side: [] for side in SIDES}
    for number in range(case.rounds):
        for side in SIDES if number % 2 == 0 else reversed(SIDES):
            measured = _read(head, case, side, folder)
            print(f"{case.name}: {side}: {measured}", file=sys.stderr)
            found[side].append(measured)
    return [_row(case, side, found[side]) for side in SIDES]


def _read(head: RayHead, case: Case, side: str, folder: Path) -> dict[str, Any]:
    shown, result = folder / "shown", folder / "result.json"
    with cutting(head.port, list(case.cuts)) as between:
        arguments = [side, str(between.port), head.token, case.job, str(case.lines), shown, result]
        found = in_process(sys.executable, SCRIPT, arguments, timeout=500)
        if found is None:
            raise RuntimeError(f"{side} failed on {case.name}")
        assert between.made == len(case.cuts)
    with shown.open("rb") as file:
        return found | _counted(file, case.lines)


def _counted(shown: Iterable[bytes], expected: int) -> dict[str, int]:
    """Lines that are there as they were written, by their numbers."""
    times: Counter[int] = Counter()
    for line in shown:
        word, _, rest = line.partition(b" ")
        number, _, text = rest.partition(b" ")
        if word == b"line" and number.isdigit() and text.rstrip(b"\n") == _filling(int(number)):
            times[int(number)] += 1
        elif line == LONG_LINE:
            times[-1] += 1
    return {
        "lost": expected - len(times),
        "doubled": sum(times.values()) - len(times),
    }


def _row(case: Case, side: str, found: list[dict[str, Any]]) -> str:
    name = "ours" if side == "ours" else "dagster-ray"
    seconds = statistics.median(one["wall_seconds"] for one in found)
    lost = max(one["lost"] for one in found)
    doubled = max(one["doubled"] for one in found)
    rate = f"{(case.lines - lost) / seconds:,.0f}"
    memory = statistics.median(one["extra_mib"] for one in found)
    cpu = statistics.median(one["cpu_seconds"] for one in found)
    return (
        f"| {case.name} | {name} | {seconds:.1f} | {cpu:.1f} | {rate} | {memory:.1f} | "
        f"{lost:,} | {doubled:,} |"
    )


def _has_ended(head: RayHead, job: str) -> bool:
    found = head.dashboard().job_status(job)
    if found is None or not found.ended:
        return False
    assert found.status == "SUCCEEDED", found
    return True


def _lines(numbers: range) -> bytes:
    return b"".join(b"line %d %s\n" % (number, _filling(number)) for number in numbers)


def _filling(number: int) -> bytes:
    return b"x" * (number % 97)


_HEAD = f"""## The driver's log

A Ray head with token authentication runs a driver to its end; then each side reads the log of that
job, in turn, in a process of its own, and shows every line on its stdout. Ours copies the log to
the run's directory (`DriverLog`), splits it into lines (`LineReader`), and fetches it once more to
prove that nothing is missing; the other side is `PipesRayJobMessageReader` of dagster-ray 0.4.8.
Seconds and CPU-seconds are from start to end, of ours with the second fetch; memory is what it
takes beyond imports, at its peak. The first case is the median of {ROUNDS} rounds. A line is lost
where it is not shown as it was written.

| log | reader | s | CPU-s | lines/s | MiB | lines lost | doubled |
|---|---|---|---|---|---|---|---|"""

_TAIL = """dagster-ray's reader follows Ray's own log tail and does not connect again. Ray reads the
file as text for it, so the tail ends for ever at the first byte that is not UTF-8."""
