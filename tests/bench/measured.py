"""CPU time and memory of one tool, in a process of its own, the same way for every tool.

`measured` is called in that process and times what the tool does; `in_process` starts it and counts
all that it took, the start of the interpreter, imports and every child that it waited for included.
"""

import json
import os
import re
import resource
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

CHECKOUT = Path(__file__).resolve().parents[2]


def measured[R](function: Callable[[], R]) -> tuple[R, dict[str, Any]]:
    """What the function returns, and its CPU-seconds, wall-seconds and peak memory in MiB."""
    _reset_peak()
    before, wall, memory = _cpu_seconds(), time.perf_counter(), _status("VmRSS")
    value = function()
    return value, {
        "cpu_seconds": _cpu_seconds() - before,
        "wall_seconds": time.perf_counter() - wall,
        "extra_mib": _status("VmHWM") - memory,
    }


def in_process(
    python: str | Path, script: Path, arguments: Sequence[str | Path], timeout: float
) -> dict[str, Any] | None:
    """Run a script, whose last argument is the JSON that it writes; nothing where it failed."""
    result = Path(arguments[-1])
    result.unlink(missing_ok=True)
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    try:
        subprocess.run(
            [python, script, *arguments],
            check=True,
            capture_output=True,
            timeout=timeout,
            env={**os.environ, "HF_HUB_OFFLINE": "1", "PYTHONPATH": str(CHECKOUT)},
        )
    except (subprocess.CalledProcessError, subprocess.TimeoutExpired) as error:
        print(f"{arguments[0]}: {error} {error.stderr!r:.2000}", file=sys.stderr)
        return None
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    found: dict[str, Any] = json.loads(result.read_text(encoding="utf-8"))
    return found | {"process_cpu_seconds": sum(after[:2]) - sum(before[:2])}


def _cpu_seconds() -> float:
    """Of all threads, and of children that were waited for."""
    who = (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
    return sum(sum(resource.getrusage(one)[:2]) for one in who)


def _status(field: str) -> float:
    text = Path("/proc/self/status").read_text(encoding="ascii")
    found = re.search(rf"{field}:\s+(\d+)", text)
    return int(found[1]) / 1024 if found else 0.0


def _reset_peak() -> None:
    """Linux forgets the highest memory use so far when told so."""
    Path("/proc/self/clear_refs").write_text("5", encoding="ascii")
