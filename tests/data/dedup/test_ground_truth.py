"""Duplicates within real sets, against counts that others measured.

Their rule is ASCII: `[a-z0-9]+`, lower case. Ours keeps every script, so a text with characters
outside ASCII may be told apart where theirs is not; no set here differs for that.
"""

import csv
import gzip
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from lxml import etree

from factory.data.dedup import Dedup, local, reduce


def _read(path: Path) -> str:
    data = path.read_bytes()
    return (gzip.decompress(data) if path.suffix == ".gz" else data).decode()


def _json(path: Path) -> Any:
    return json.loads(_read(path))


def _lines(path: Path) -> Iterator[Any]:
    yield from map(json.loads, filter(str.strip, _read(path).split("\n")))


def _wikidoc(column: str) -> Callable[[Path], Iterator[str]]:
    path = "medical_meadow_wikidoc/medical_meadow_small.json.gz"
    return lambda data: (row[column] for row in _json(data / path))


def _mts(column: str) -> Callable[[Path], Iterator[str]]:
    def read(data: Path) -> Iterator[str]:
        path = data / "mts_dialog/MTS-Dialog-TrainingSet.csv"
        with path.open(encoding="utf-8", newline="") as file:
            yield from (row[column] for row in csv.DictReader(file))

    return read


def _medquad(data: Path) -> Iterator[str]:
    for path in sorted((data / "medquad").glob("*/*.xml")):
        for answer in etree.parse(path).iter("Answer"):
            if (answer.text or "").strip():
                yield answer.text or ""


def _glaive(data: Path) -> Iterator[str]:
    for row in _json(data / "tool_use_llamafactory/glaive_toolcall_en_demo.json"):
        yield json.dumps(row["conversations"], ensure_ascii=False)


def _medmcqa(data: Path) -> Iterator[str]:
    yield from (row["question"] for row in _lines(data / "bench_medmcqa/dev.json.gz"))


def _medqa(data: Path) -> Iterator[str]:
    path = data / "bench_medqa/phrases_no_exclude_test.jsonl"
    yield from (row["question"] for row in _lines(path))


def _mmlu(data: Path) -> Iterator[str]:
    for path in sorted((data / "bench_mmlu_med").glob("*.csv")):
        with path.open(encoding="utf-8", newline="") as file:
            yield from (row[0] for row in csv.reader(file))


def _c4(data: Path) -> Iterator[str]:
    yield from (row["text"] for row in _lines(data / "web_general/c4_demo.jsonl.gz"))


def _gsm8k(data: Path) -> Iterator[str]:
    yield from (row["question"] for row in _lines(data / "general_gsm8k_train/train.jsonl.gz"))


def _pubmed(data: Path) -> Iterator[str]:
    with gzip.open(next((data / "pubmed_baseline").glob("pubmed*.xml.gz"))) as file:
        for _, article in etree.iterparse(file, tag="MedlineCitation"):
            parts = ["".join(part.itertext()) for part in article.iter("AbstractText")]
            if any(parts):
                yield " ".join(parts)
            article.clear()


SETS: dict[str, Callable[[Path], Iterator[str]]] = {
    "medical_meadow_wikidoc output": _wikidoc("output"),
    "medical_meadow_wikidoc input": _wikidoc("input"),
    "medquad staged answers (non-empty)": _medquad,
    "MTS-Dialog train dialogue": _mts("dialogue"),
    "MTS-Dialog train section_text": _mts("section_text"),
    "glaive_toolcall_en_demo conversations": _glaive,
    "MedMCQA dev question": _medmcqa,
    "MMLU medical question": _mmlu,
    "MedQA test question": _medqa,
    "c4_demo text": _c4,
    "gsm8k train question": _gsm8k,
}


@pytest.mark.parametrize("name", SETS)
def test_exact_duplicates(shared_data: Path, name: str):
    _compare(shared_data, name, SETS[name])


@pytest.mark.slow
def test_exact_duplicates_in_pubmed(shared_data: Path):
    _compare(shared_data, "pubmed20n0014 abstracts", _pubmed)


def _compare(data: Path, name: str, read: Callable[[Path], Iterator[str]]) -> None:
    truth = _json(data / "ground_truth/overlaps.json")["internal_duplicates"][name]
    texts = list(read(data))
    batch = pa.RecordBatch.from_pydict(
        {
            "id": [str(number) for number in range(len(texts))],
            "text": texts,
            "priority": pa.array([0] * len(texts), pa.int64()),
            "tokens": pa.array([1] * len(texts), pa.int64()),
        }
    )
    # At a threshold of 1 with exact content first, only equal texts can go.
    policy = Dedup(threshold=1.0)
    removed = reduce([local(batch, policy)], policy).removed
    exact = sum(row["kind"] == "exact" for row in removed.to_pylist())
    assert (len(texts), exact) == (truth["rows"], truth["rows_beyond_first_of_equal_text"])
