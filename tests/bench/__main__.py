"""`make bench`: every benchmark beside a peer or a baseline in the same run.

A benchmark is a module `bench_*.py` beside this file with `run() -> str`, which returns its section
of `docs/benchmarks.md` as markdown, or nothing where this machine lacks what it takes; its section
then stays as it is. Name modules on the command line to renew only those.
"""

import importlib
import platform
import re
import sys
from datetime import UTC, datetime
from pathlib import Path

import psutil

PAGE = Path(__file__).resolve().parents[2] / "docs" / "benchmarks.md"
HEAD = """# Benchmarks

Made by `make bench`; each section says what it compares and on what machine it ran. Machines are
shared and noisy, so read the ratios: both sides ran in turn in the same call.
"""


def main(names: list[str]) -> None:
    """Run the benchmarks named, or all, and renew their sections of the page."""
    known = sorted(path.stem for path in Path(__file__).parent.glob("bench_*.py"))
    unknown = set(names) - set(known)
    if unknown:
        sys.exit(f"No benchmark {', '.join(sorted(unknown))}. Known: {', '.join(known)}.")
    for name in names or known:
        print(f"== {name}", file=sys.stderr)
        body = importlib.import_module(f"tests.bench.{name}").run().strip()
        if not body:
            continue
        # Read only now: another benchmark may have renewed its section meanwhile.
        sections = _sections(PAGE.read_text(encoding="utf-8")) if PAGE.exists() else {}
        sections[name] = f"{body}\n\n{_machine()}"
        print(body)
        text = [HEAD, *(f"<!-- {key} -->\n{sections[key]}\n" for key in known if key in sections)]
        PAGE.write_text("\n".join(text), encoding="utf-8")


def _sections(page: str) -> dict[str, str]:
    parts = re.split(r"^<!-- (bench_\w+) -->\n", page, flags=re.MULTILINE)
    return {name: body.strip() for name, body in zip(parts[1::2], parts[2::2], strict=True)}


def _machine() -> str:
    memory = psutil.virtual_memory().total / 2**30
    when = datetime.now(UTC).date().isoformat()
    return f"*{when}, {psutil.cpu_count()} cores, {memory:.0f} GiB, {platform.system()}, no GPU.*"


if __name__ == "__main__":
    main(sys.argv[1:])
