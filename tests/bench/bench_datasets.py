"""Every declared public dataset from its mirror through all of its steps: what came of it.

Not a comparison: it says how many rows a declaration reads, keeps and loses, for which reasons, and
what that takes. Each dataset runs in a process of its own, with an empty namespace.
"""

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from factory.discovery import datasets
from tests.mirrors import write_mirrors

SHARED = Path(
    os.environ.get("FACTORY_SHARED_DATA", Path(__file__).resolve().parents[3] / "shared" / "data")
)


def run() -> str:
    """The section of the page."""
    with tempfile.TemporaryDirectory() as folder:
        mirrors = write_mirrors(Path(folder) / "mirrors", SHARED)
        keys = [path for path in datasets() if path.startswith("public/")]
        rows = [_row(_made(key, Path(folder), mirrors)) for key in keys]
    head = (
        "| dataset | rows read | rejected | cleaned | duplicates | kept | seconds | peak MB |",
        "|---|---|---|---|---|---|---|---|",
    )
    return "\n".join(
        [
            "## Every declared dataset",
            "",
            "Raw to Energon with all checks, each in a process of its own. An asterisk marks a "
            "mirror that holds a part of the source. Seconds include the import of Energon for "
            "each split; peak is of the step's own process (Energon's index takes 700 MB more "
            "in one of its own). Benchmarks end with cleaning.",
            "",
            *head,
            *rows,
        ]
    )


def _made(key: str, folder: Path, mirrors: Path) -> dict[str, Any]:
    print(f"  {key}", file=sys.stderr)
    place = folder / key.replace("/", "_")
    (place / "namespace").mkdir(parents=True)
    environment = os.environ | {
        "FACTORY_ROOT": str(place / "namespace"),
        "FACTORY_STATE": str(place / "state"),
        "FACTORY_MIRRORS": str(mirrors),
    }
    done = subprocess.run(
        [sys.executable, "-m", "tests.bench.declared", key],
        capture_output=True,
        text=True,
        env=environment,
        check=False,
    )
    if done.returncode:
        return {"key": key, "failed": done.stderr.strip().splitlines()[-1:]}
    return json.loads(done.stdout.splitlines()[-1])


def _row(made: dict[str, Any]) -> str:
    if made["failed"]:
        return f"| {made['key']} | failed: {made['failed'][0]} |"
    reasons = ", ".join(f"{count:,} {why}" for why, count in made["rejected"].items()) or "0"
    kept = f"{made['kept']:,}" if made["kept"] is not None else "-"
    cells = (
        made["key"].removeprefix("public/") + ("*" if made["partial"] else ""),
        f"{made['read']:,}",
        reasons,
        f"{made['cleaned']:,}",
        f"{made['duplicates']:,}",
        kept,
        f"{made['seconds']:.1f}",
        f"{made['own_mb']:.0f}",
    )
    return f"| {' | '.join(cells)} |"
