"""A million rows through `clean`, `deduplicated` and `split`: Ray Data beside one process.

Each side is a process of its own, in a namespace of its own; its memory is that of its whole tree
of processes. Pages that several processes map are counted for each, so that of Ray is an upper
bound. Both must end with the same version ids.
"""

import json
import os
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import psutil

from factory.data import Dataset, LocalFiles, Rejected, Row, Sample
from factory.data.free_checks import run_checks
from factory.data.steps import run_step, steps
from factory.keys import public
from factory.namespace import Namespace, Provenance
from factory.settings import CHECKOUT, Settings

ROWS = int(os.environ.get("BENCH_ROWS", "1000000"))
FILES = 20
ENGINES = ("local", "ray")
SAMPLE_SECONDS = 0.2
VOCABULARY = (
    "patient dose given twice daily aspirin onset trial survival risk group after before weeks "
    "months acute chronic renal hepatic pain fever cough lung heart liver report normal raised"
)


def clean(row: Row) -> Sample | Rejected:
    """A note per line; an empty one is rejected."""
    text = row.text("text")
    if not text:
        return Rejected("no text")
    return Sample.document(id=row.text("id"), title="Note", sections=[("", text)])


NOTES = Dataset(
    key=public("text/notes"),
    license="CC0-1.0",
    source=LocalFiles(folder="notes", rows="*.jsonl", classification="public"),
    clean=clean,
)


def run() -> str:
    """Run both sides in turn and return the section of the page."""
    with tempfile.TemporaryDirectory(dir=os.environ.get("BENCH_DIRECTORY")) as folder:
        drops = Path(folder) / "drops"
        size = _write(drops / "notes")
        found = {engine: _measured(engine, Path(folder) / engine, drops) for engine in ENGINES}
    local, ray = (found[engine] for engine in ENGINES)
    if local["versions"] != ray["versions"]:
        raise AssertionError(f"other versions: {local['versions']} and {ray['versions']}")
    names = ("clean", "deduplicated", "split")
    rows = [
        f"| {engine} | "
        + " | ".join(f"{found[engine]['seconds'][name]:.1f} s" for name in names)
        + f" | **{sum(found[engine]['seconds'].values()):.1f} s** "
        f"| {found[engine]['peak'] / 2**20:,.0f} MiB |"
        for engine in ENGINES
    ]
    return "\n".join(
        [
            "## Ray Data beside one process",
            "",
            f"{ROWS:,} generated rows of JSON lines ({size / 1e6:,.0f} MB in {FILES} files),",
            "through the steps that work over shards, without their checks. Peak memory is that of",
            "all processes together. Both made the same versions:",
            f"`{local['versions']['split']}` is that of `split`.",
            "",
            "| engine | clean | deduplicated | split | together | peak memory |",
            "|---|---:|---:|---:|---:|---:|",
            *rows,
            "",
            "Ray's time includes its start for each step, and its workers share the cores with the",
            "process that drives them.",
        ]
    )


def _write(folder: Path) -> int:
    """The same rows every time; one in fifty is empty, one in fifty like an earlier one."""
    folder.mkdir(parents=True)
    chance = random.Random(11)
    words = VOCABULARY.split()
    recent: list[str] = []
    total = 0
    for number in range(FILES):
        lines: list[str] = []
        for row in range(ROWS // FILES):
            text = " ".join(chance.choices(words, k=20))
            if row % 50 == 1:
                text = ""
            elif row % 50 == 2 and recent:
                text = chance.choice(recent)
            recent = [*recent[-99:], text] if text else recent
            lines.append(json.dumps({"id": f"{number}-{row}", "text": text}) + "\n")
        path = folder / f"{number:03d}.jsonl"
        path.write_text("".join(lines), encoding="utf-8")
        total += path.stat().st_size
    return total


def _measured(engine: str, folder: Path, drops: Path) -> dict:
    code = f"from tests.bench.bench_engines import side; side({engine!r}, {str(folder)!r})"
    process = subprocess.Popen(
        [sys.executable, "-c", code],
        cwd=CHECKOUT,
        env={**os.environ, "FACTORY_DROPS": str(drops), "RAYON_NUM_THREADS": "2"},
        stdout=subprocess.PIPE,
        text=True,
    )
    peak = 0
    while process.poll() is None:
        peak = max(peak, _memory(psutil.Process(process.pid)))
        time.sleep(SAMPLE_SECONDS)
    assert process.stdout is not None
    output = process.stdout.read()
    if process.returncode:
        raise RuntimeError(f"{engine} ended with {process.returncode}")
    return {**json.loads(output.splitlines()[-1]), "peak": peak}


def _memory(process: psutil.Process) -> int:
    total = 0
    for one in (process, *_children(process)):
        try:
            total += one.memory_info().rss
        except psutil.Error:
            continue
    return total


def _children(process: psutil.Process) -> list[psutil.Process]:
    try:
        return process.children(recursive=True)
    except psutil.Error:
        return []


def side(engine: str, folder: str) -> None:
    """One side, in a process of its own; prints its times and versions."""
    root = Path(folder)
    for name in ("root", "state"):
        (root / name).mkdir(parents=True)
    environment = {
        "FACTORY_ROOT": str(root / "root"),
        "FACTORY_STATE": str(root / "state"),
        "FACTORY_DROPS": os.environ["FACTORY_DROPS"],
    }
    settings = Settings.from_environment(environment)
    namespace = Namespace(settings.root)
    seconds: dict[str, float] = {}
    versions: dict[str, str] = {}
    inputs: dict = {}
    for step in steps(NOTES)[:4]:
        start = time.perf_counter()
        version = run_step(
            step,
            namespace,
            inputs,
            settings=settings,
            provenance=Provenance(run_id="bench", identity="bench"),
            engine=engine,
            progress=lambda line: print(f"{engine}: {line}", file=sys.stderr),
        ).version
        seconds[step.name] = time.perf_counter() - start
        versions[step.name] = version.id
        inputs = {version.key: version}
    failed = [name for name, one in run_checks(step, version, namespace).items() if not one.passed]
    if failed:
        raise AssertionError(f"checks failed: {failed}")
    del seconds["raw"]
    print(json.dumps({"seconds": seconds, "versions": versions}))
