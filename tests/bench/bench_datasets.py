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
from tests.data.test_declared_sets import EXPECTED
from tests.mirrors import write_mirrors

SHARED = Path(
    os.environ.get("FACTORY_SHARED_DATA", Path(__file__).resolve().parents[3] / "shared" / "data")
)


HEAD = (
    "| dataset | rows read | rejected | duplicates | kept | seconds | peak MiB | largest child |",
    "|---|---:|---|---:|---:|---:|---:|---:|",
)


def run() -> str:
    """The section of the page.

    Raises:
        SystemExit: a dataset failed, or gave other rows than its test pins: no table of that.
    """
    with tempfile.TemporaryDirectory() as folder:
        mirrors = write_mirrors(Path(folder) / "mirrors", SHARED)
        keys = [path for path in datasets() if path.startswith("public/")]
        made = [_made(key, Path(folder), mirrors) for key in keys]
    if wrong := [str(one) for one in made if _is_wrong(one)]:
        sys.exit("\n".join(wrong))
    ended = [one for one in made if one["kept"] is None]
    trained = [one for one in made if one["kept"] is not None]
    return "\n".join(
        [
            "## Every declared dataset",
            "",
            f"The {len(made)} public ones, from the files to what is trained on, with all checks;",
            "each in a process of its own and an empty namespace. An asterisk marks a mirror that",
            "holds a part of the source. rows read = rejected + duplicates + kept, for each.",
            "Seconds are wall time. Peak memory is that of the process; Energon's import and its",
            "index are most of it, and the index is made in a child. The private dataset has no",
            "mirror: tests deliver to it.",
            "",
            "### For training",
            "",
            *HEAD,
            *map(_row, trained),
            _row(_together(trained)),
            "",
            "### Benchmarks",
            "",
            "They end with cleaning, so that no item goes.",
            "",
            *HEAD,
            *map(_row, ended),
            _row(_together(ended)),
        ]
    )


def _is_wrong(made: dict[str, Any]) -> bool:
    """Whether it failed, does not add up, or is not what the tests pin."""
    kept = made["cleaned"] if made["kept"] is None else made["kept"]
    accounted = sum(made["rejected"].values()) + made["duplicates"] + kept
    pinned = EXPECTED[made["key"].removeprefix("public/")]
    counted = (made["read"], made["cleaned"], made["duplicates"])
    return bool(made["failed"]) or made["read"] != accounted or counted != pinned


def _together(made: list[dict[str, Any]]) -> dict[str, Any]:
    """Sums of rows and seconds, the highest memory."""
    added = {
        name: sum(one[name] for one in made)
        for name in ("read", "cleaned", "duplicates", "seconds")
    }
    highest = {name: max(one[name] for one in made) for name in ("own_mb", "largest_child_mb")}
    kept = [one["kept"] for one in made if one["kept"] is not None]
    rejected = sum(sum(one["rejected"].values()) for one in made)
    return {
        "key": f"**{len(made)} together**",
        "partial": False,
        "rejected": {"": rejected},
        "kept": sum(kept) if kept else None,
        **added,
        **highest,
    }


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
        sys.exit(f"{key}: {done.stderr}")
    return json.loads(done.stdout.splitlines()[-1])


def _row(made: dict[str, Any]) -> str:
    reasons = ", ".join(f"{count:,} {why}".strip() for why, count in made["rejected"].items())
    cells = (
        made["key"].removeprefix("public/") + ("*" if made["partial"] else ""),
        f"{made['read']:,}",
        reasons or "0",
        f"{made['duplicates']:,}",
        f"{made['cleaned'] if made['kept'] is None else made['kept']:,}",
        f"{made['seconds']:.1f}",
        f"{made['own_mb']:,.0f}",
        f"{made['largest_child_mb']:,.0f}",
    )
    return f"| {' | '.join(cells)} |"
