"""One tool cleaning one PubMed file, gz to Parquet, in a process of its own: see `bench_clean.py`.

Called as `python clean_tools.py TOOL FILE.xml.gz FOLDER RESULT.json`. What is timed is the file to
Parquet files in the folder, with splitting into records. Imports are outside, those on the way as
well, as every tool cleans another record first; they are counted for the whole process by who
starts it. Everyone parses with `factory.data.pubmed`, drops citations without an abstract and
writes the same fields.
"""

import gzip
import importlib
import json
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from lxml import etree

from factory.data import pubmed
from tests.bench.measured import measured

TAG = "PubmedArticle"
BATCH = 1_000

type Clean = Callable[[Path, Path], int]
"""A file and a folder to how many rows were written."""


def factory(path: Path, folder: Path) -> int:
    """The task of the clean step, as it runs in a shard: also hashes, counts and rejected rows."""
    shards, cleaning = map(
        importlib.import_module, ("factory.data.shards", "factory.data.cleaning")
    )
    declared = importlib.import_module("definitions.datasets.public.text.pubmed").pubmed_baseline
    sources = importlib.import_module("factory.data.sources")
    source = sources.LocalFiles(folder="x", rows=f"**/*.xml.gz//{TAG}", classification="public")
    task = cleaning.CleanShard(replace(declared, source=source, checks=[]), path.parent)
    facts = task(shards.Shard(0, (path.name,), path.stat().st_size), folder, lambda rows: None)
    return sum(facts["kinds"].values())


def floor(path: Path, folder: Path) -> int:
    """Unpacking and splitting into records, nothing else: what no tool that uses lxml can beat."""
    return sum(1 for _ in _elements(path))


def floor_and_parser(path: Path, folder: Path) -> int:
    """The floor with the parser that everyone uses, nothing written."""
    return sum(_fields(element) is not None for element in _elements(path))


def datasets_map(path: Path, folder: Path, *, records: Callable[[Path], Iterator[bytes]]) -> int:
    """Records as bytes through `map` in batches, then one Parquet file."""
    datasets = importlib.import_module("datasets")
    made = datasets.Dataset.from_generator(
        partial(_rows_of, records), gen_kwargs={"path": path}, cache_dir=str(folder / "cache")
    )
    cleaned = made.map(_parsed, batched=True, batch_size=BATCH, remove_columns=["xml"])
    cleaned.to_parquet(str(folder / "out.parquet"))
    return len(cleaned)


def datasets_generator(path: Path, folder: Path) -> int:
    """Without `map`: parsed where it is split, which saves parsing every record twice."""
    datasets = importlib.import_module("datasets")
    made = datasets.Dataset.from_generator(
        _fields_of, gen_kwargs={"path": path}, cache_dir=str(folder / "cache")
    )
    made.to_parquet(str(folder / "out.parquet"))
    return len(made)


def datatrove(path: Path, folder: Path) -> int:
    """Its documents from the same records, and its Parquet writer; it has no reader of XML."""
    document = importlib.import_module("datatrove.data").Document
    writer = importlib.import_module("datatrove.pipeline.writers").ParquetWriter(
        str(folder), compression="zstd"
    )
    documents = (
        document(
            text="\n\n".join(part["text"] for part in found["sections"]),
            id=found["id"],
            metadata=found,
        )
        for found in _fields_of(path)
    )
    return sum(1 for _ in writer.run(documents))


def serialized(path: Path) -> Iterator[bytes]:
    """The same records as everyone's, as bytes again."""
    return map(etree.tostring, _elements(path))


def cut(path: Path) -> Iterator[bytes]:
    """Records found by their tags in the bytes: cheaper, and right only for files like this."""
    begin, end, rest = f"<{TAG}>".encode(), f"</{TAG}>".encode(), b""
    with gzip.open(path) as file:
        while chunk := file.read(1 << 20):
            *records, rest = (rest + chunk).split(end)
            yield from (record[record.index(begin) :] + end for record in records)


def filtered(path: Path) -> Iterator[bytes]:
    """Those of them that may have an abstract: what ours asks of a row before it is parsed."""
    return (record for record in cut(path) if b"<AbstractText" in record)


def _elements(path: Path) -> Iterator[Any]:
    with gzip.open(path) as file:
        events = etree.iterparse(
            file, tag=TAG, remove_comments=True, remove_pis=True, resolve_entities=False
        )
        for _, element in events:
            yield element
            element.clear()
            parent = element.getparent()
            while parent is not None and element.getprevious() is not None:
                del parent[0]


def _fields(element: Any) -> dict[str, Any] | None:
    citation = pubmed.citation(element)
    if not citation.sections:
        return None
    return {
        "id": citation.pmid,
        "title": citation.title,
        "sections": [{"heading": head, "text": text} for head, text in citation.sections],
        "journal": citation.journal,
        "year": citation.year,
        "languages": " ".join(citation.languages),
    }


def _fields_of(path: Path) -> Iterator[dict[str, Any]]:
    return (found for element in _elements(path) if (found := _fields(element)) is not None)


def _rows_of(records: Callable[[Path], Iterator[bytes]], path: Path) -> Iterator[dict[str, bytes]]:
    return ({"xml": record} for record in records(path))


def _parsed(batch: dict[str, list[bytes]]) -> dict[str, list[Any]]:
    found = [fields for xml in batch["xml"] if (fields := _fields(etree.fromstring(xml)))]
    return {name: [fields[name] for fields in found] for name in _NAMES}


_NAMES = ("id", "title", "sections", "journal", "year", "languages")

TOOLS: dict[str, Clean] = {
    "factory, clean step": factory,
    "floor: gunzip and split": floor,
    "floor and the parser": floor_and_parser,
    "datasets, map": partial(datasets_map, records=serialized),
    "datasets, map, records cut as bytes": partial(datasets_map, records=cut),
    "datasets, map, records cut and chosen as bytes": partial(datasets_map, records=filtered),
    "datasets, generator only": datasets_generator,
    "datatrove": datatrove,
}
PEERS_OWN = ("datatrove",)
"""Those that run in the environment of the peers."""

FIRST = (
    f"<Set><{TAG}><MedlineCitation><PMID>1</PMID><Article><Abstract>"
    "<AbstractText>Some text.</AbstractText>"
    f"</Abstract></Article></MedlineCitation></{TAG}></Set>"
)


def warm(tool: str) -> None:
    """Clean one record, with all the imports that this takes."""
    with tempfile.TemporaryDirectory() as folder:
        path, out = Path(folder, "first.xml.gz"), Path(folder, "out")
        path.write_bytes(gzip.compress(FIRST.encode()))
        out.mkdir()
        TOOLS[tool](path, out)


def main(tool: str, path: str, folder: str, result: str) -> None:
    """Measure one tool and write what it took."""
    warm(tool)
    rows, took = measured(lambda: TOOLS[tool](Path(path), Path(folder)))
    Path(result).write_text(json.dumps(took | {"rows": rows}), encoding="utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])
