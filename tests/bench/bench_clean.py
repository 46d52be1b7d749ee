"""Cleaning a PubMed file, gz to Parquet, beside Hugging Face `datasets` and datatrove.

What each tool does: `clean_tools.py`. The file is one of the 2020 baseline; larger ones repeat its
records. Peers' environment: see `bench_dedup.py`.
"""

import gzip
import shutil
import statistics
import sys
import tempfile
from pathlib import Path
from typing import Any

from tests.bench.bench_dedup import environment
from tests.bench.clean_tools import PEERS_OWN, TOOLS
from tests.bench.corpora import SHARED
from tests.bench.measured import in_process

HERE = Path(__file__).resolve().parent
ROUNDS = 3
TIMEOUT_SECONDS = 1_200
TIMES = (1, 4, 16)
GROWING = ("factory, clean step", "datasets, generator only", "datatrove")
"""Tools that are measured on the larger files, too; peers up to 4 times, as they take so long."""

PEERS_UP_TO = 4


def run() -> str:
    """Measure every tool on the file, and memory on larger ones; returns the section."""
    with tempfile.TemporaryDirectory() as folder:
        files = repeated(Path(folder))
        measured = {tool: rounds(tool, files[1]) for tool in TOOLS}
        grown = {
            tool: {times: once(tool, files[times]) for times in TIMES if _wanted(tool, times)}
            for tool in GROWING
        }
    return report(measured, grown, files_bytes=_unpacked_bytes())


def _wanted(tool: str, times: int) -> bool:
    return tool.startswith("factory") or times <= PEERS_UP_TO


def repeated(folder: Path) -> dict[int, Path]:
    """The file, and ones with its records 4 and 16 times: members of a gzip file add up."""
    (original,) = (SHARED / "pubmed_baseline").glob("pubmed*.xml.gz")
    xml = gzip.decompress(original.read_bytes())
    start = xml.index(b"<PubmedArticle>")
    end = xml.rindex(b"</PubmedArticle>") + len(b"</PubmedArticle>")
    head, body, foot = (gzip.compress(part, 6) for part in (xml[:start], xml[start:end], xml[end:]))
    files: dict[int, Path] = {}
    for times in TIMES:
        files[times] = folder / f"{times}" / original.name
        files[times].parent.mkdir()
        with files[times].open("wb") as file:
            file.writelines([head, *[body] * times, foot])
    return files


def rounds(tool: str, path: Path) -> list[dict[str, Any]]:
    """Several measurements of one tool on one file."""
    return [found for _ in range(ROUNDS) if (found := once(tool, path)) is not None]


def once(tool: str, path: Path) -> dict[str, Any] | None:
    """One measurement, in an empty folder."""
    python = environment() if tool in PEERS_OWN else Path(sys.executable)
    with tempfile.TemporaryDirectory() as folder:
        result = Path(folder, "result.json")
        out = Path(folder, "out")
        out.mkdir()
        found = in_process(
            python, HERE / "clean_tools.py", [tool, path, out, result], TIMEOUT_SECONDS
        )
        shutil.rmtree(out)
    return found


def _unpacked_bytes() -> int:
    (original,) = (SHARED / "pubmed_baseline").glob("pubmed*.xml.gz")
    with gzip.open(original) as file:
        return sum(len(chunk) for chunk in iter(lambda: file.read(1 << 20), b""))


RECORDS = 30_000
GOAL = 2
FLOOR = "floor and the parser"


def report(
    measured: dict[str, list[dict[str, Any]]],
    grown: dict[str, dict[int, dict[str, Any] | None]],
    files_bytes: int,
) -> str:
    """The section."""
    spent = {
        tool: statistics.median(one["cpu_seconds"] for one in found)
        for tool, found in measured.items()
        if found
    }
    ours = spent["factory, clean step"]
    lines = [_HEAD.format(records=RECORDS, megabytes=files_bytes / 1e6), ""]
    lines += ["| tool | records per CPU-s | whole process | CPU-s to ours | wall s | rows |"]
    lines += ["|---|---|---|---|---|---|"]
    for tool, found in measured.items():
        if not found:
            lines.append(f"| {tool} | failed | | | | |")
            continue
        whole, wall = (
            statistics.median(one[field] for one in found)
            for field in ("process_cpu_seconds", "wall_seconds")
        )
        lines.append(
            f"| {tool} | {RECORDS / spent[tool]:,.0f} | {RECORDS / whole:,.0f} "
            f"| {spent[tool] / ours:.2f} | {wall:.1f} | {found[0]['rows']:,} |"
        )
    peers = {tool: cpu for tool, cpu in spent.items() if not tool.startswith(("factory", "floor"))}
    best = min(peers, key=peers.__getitem__)
    ratio = spent["datasets, map"] / ours
    lines += [
        "",
        f"Ours to `map` over the same split records, records per CPU-second: {ratio:.2f}; to the "
        f"fastest peer ({best}): {peers[best] / ours:.2f}. Goal: at least {GOAL:g}, "
        f"{'reached' if ratio >= GOAL else 'not reached'}. What splits by "
        f"lxml's iterparse and uses this parser on all can have at most "
        f"{spent['datasets, map'] / spent[FLOOR]:.2f}.",
        "",
        "Memory above that of the imports, in MiB, with the records repeated:",
        "",
        "| tool | " + " | ".join(f"{times}x" for times in TIMES) + " |",
        "|---|" + "---|" * len(TIMES),
    ]
    for tool, sizes in grown.items():
        cells = [f"{one['extra_mib']:.0f}" if (one := sizes.get(n)) else "" for n in TIMES]
        lines.append(f"| {tool} | {' | '.join(cells)} |")
    return "\n".join(lines)


_HEAD = f"""## Cleaning PubMed

One file of the baseline, {{records:,}} records, {{megabytes:.0f}} MB unpacked, gz to Parquet: split
into records, parsed with the same parser, citations without an abstract dropped, written. Ours is
the task of the clean step, which also hashes and counts every sample, checks it against the schema
and keeps the rejected rows. It cuts records out of the bytes where that is safe, verifies each, and
parses those that may have an abstract, as its declaration asks for one first, without the long
parts that its declaration says are not read (`Row.without`). `datasets` is given
records serialized again, or cut out of the bytes by their tags with nothing verified, all of them
or those with the tag of an abstract, as its `map` cannot take parsed ones; "generator only" parses
while splitting and maps nothing. datatrove has no reader of XML: it gets documents from the same
parser. CPU-seconds count threads and children; "whole process" adds start and imports. Medians of
{ROUNDS} rounds."""
