"""Kills a step, again and again, and lets it go on. Prints a JSON report.

A process of its own, because it forks: each child runs the steps after `raw` and is killed before
one of its file operations, a later one each time, until a child comes to the end.

    resuming.py ROOT FIRST MORE     SIGKILL before operation FIRST, then MORE later, ...
"""

import json
import os
import signal
import sys
import time
from collections.abc import Callable
from datetime import timedelta
from functools import partial
from pathlib import Path

from factory.data import Dataset, LocalFiles, Rejected, Row, Sample, shards
from factory.data.free_checks import run_checks
from factory.data.statistics import Statistics
from factory.data.steps import run_step, steps
from factory.keys import private
from factory.namespace import Namespace, Provenance
from factory.settings import Settings
from tests.forking import forked

NAMES = ("raw", "clean", "deduplicated", "split")
EVENTS = ("open", "os.rename", "os.link", "os.mkdir", "os.remove", "os.rmdir", "shutil.rmtree")


SECONDS = "TEST_SECONDS_PER_ROW"
KILL = "TEST_KILL_ONCE"
"""Names a file: whoever finds it missing makes it and is killed."""


def clean(row: Row) -> Sample | Rejected:
    time.sleep(float(os.environ.get(SECONDS, "0")))
    if KILL in os.environ and row.id == "3.jsonl#5" and not Path(os.environ[KILL]).exists():
        Path(os.environ[KILL]).touch()
        os.kill(os.getpid(), signal.SIGKILL)
    if not row.text("text"):
        return Rejected("no text")
    return Sample.document(id=row.text("id"), title="Letter", sections=[("", row.text("text"))])


LETTERS = Dataset(
    key=private("text/letters"),
    license="LicenseRef-test",
    source=LocalFiles(folder="letters", rows="*.jsonl", classification="private"),
    clean=clean,
    split={"train": 0.8, "validation": 0.2},
)


def settings(folder: Path) -> Settings:
    """A namespace and a delivery of six files, each of which is a shard."""
    shards.SHARD_BYTES = 1
    for name in ("root", "state", "drops/letters"):
        (folder / name).mkdir(parents=True, exist_ok=True)
    for file in range(6):
        rows = [{"id": f"{file}-{n}", "text": f"text {n % 4}" if n else ""} for n in range(9)]
        lines = "".join(json.dumps(row) + "\n" for row in rows)
        (folder / "drops" / "letters" / f"{file}.jsonl").write_text(lines)
    return Settings.from_environment(
        {
            "FACTORY_ROOT": str(folder / "root"),
            "FACTORY_STATE": str(folder / "state"),
            "FACTORY_DROPS": str(folder / "drops"),
        }
    )


def run(settings: Settings, engine: str = "local") -> tuple[dict[str, list], list[str]]:
    """What the steps make, with what is said of it, and what is said meanwhile."""
    namespace = Namespace(settings.root)
    made: dict[str, list] = {}
    said: list[str] = []
    for step in steps(LETTERS):
        if step.name not in NAMES:
            continue
        inputs = {key: namespace.current(key) for key in step.inputs}
        version = run_step(
            step,
            namespace,
            {key: one for key, one in inputs.items() if one is not None},
            settings=settings,
            provenance=Provenance(run_id="run", identity="test"),
            engine=engine if step.name != "raw" else "local",
            progress=said.append,
        ).version
        records = run_checks(step, version, namespace)
        namespace.promote(version)
        passed = all(record.passed for record in records.values())
        files = {name: entry.sha256 for name, entry in version.manifest.files.items()}
        made[step.name] = [version.id, version.manifest.facts, files, passed]
    return made, said


def killed_at(point: int, chosen: Settings) -> None:
    seen = 0

    def hook(event: str, _arguments: object) -> None:
        nonlocal seen
        if event in EVENTS:
            seen += 1
            if seen == point:
                os.kill(os.getpid(), signal.SIGKILL)

    sys.addaudithook(hook)
    run(chosen)


def ended(body: Callable[[], object]) -> int:
    """Do something in a child; gives the status that it ends with."""
    return os.waitpid(forked(body), 0)[1]


def main() -> None:
    folder, first, more = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
    # What takes seconds is done once, before the forks; the rest starts threads, which end there.
    steps(LETTERS)
    Statistics(1).add(Sample.question(id="q", question="Why is it so?", answer="It is not so."))
    chosen = settings(folder)
    point, kills = first, 0
    while os.WIFSIGNALED(status := ended(partial(killed_at, point, chosen))):
        kills += 1
        point += more
    exit_code = os.WEXITSTATUS(status) or ended(lambda: run(settings(folder / "undisturbed")))
    made, said = run(chosen)
    Namespace(chosen.root).sweep(timedelta(0))
    undisturbed, _ = run(settings(folder / "undisturbed"))
    report = {
        "kills": kills,
        "exit": exit_code,
        "made": made,
        "undisturbed": undisturbed,
        "reused": sum("is there already" in line for line in said),
        "work": [str(path) for path in (folder / "root").rglob(".work-*")],
    }
    sys.stdout.write(json.dumps(report))


if __name__ == "__main__":
    main()
