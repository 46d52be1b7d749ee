"""Every public declaration of this repository through all of its steps, from real bytes.

Sources are read through mirrors, some of which hold a part of their source: then the bounds that a
declaration states are not judged. What must come out is pinned here instead.
"""

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from factory.data import layout, table
from factory.data.kinds import Message
from factory.data.parts import Text
from factory.data.steps import steps
from factory.discovery import datasets
from factory.namespace import Version

EXPECTED = {
    "benchmarks/gsm8k": (1_319, 1_319, 0),
    "benchmarks/gsm8k_socratic": (1_319, 1_319, 0),
    "benchmarks/humaneval": (164, 164, 0),
    "benchmarks/liveqa_medical": (2_479, 2_479, 0),
    "benchmarks/medmcqa": (4_183, 4_183, 0),
    "benchmarks/medqa": (1_273, 1_273, 0),
    "benchmarks/mmlu_medical": (1_089, 1_089, 0),
    "benchmarks/mt_bench": (80, 80, 0),
    "benchmarks/mts_dialog": (400, 400, 0),
    "benchmarks/mts_dialog_validation": (100, 100, 0),
    "benchmarks/pubmedqa": (500, 500, 0),
    "benchmarks/rephrased_gsm8k": (1_319, 1_315, 0),
    "benchmarks/rephrased_humaneval": (164, 147, 0),
    "benchmarks/rephrased_mmlu": (1_010, 990, 0),
    "dialogue/identity": (500, 500, 0),
    "dialogue/mts_dialog": (1_201, 1_201, 1),
    "dialogue/mts_dialog_translated": (2_402, 1_201, 1),
    "images/dicom_samples": (215, 93, 43),
    "images/pathology_slides": (109, 56, 0),
    "images/pathology_tiles": (20, 20, 0),
    "instructions/gsm8k": (7_473, 7_473, 0),
    "instructions/pubmedqa": (1_000, 500, 0),
    "instructions/self_instruct_seed": (175, 175, 0),
    "instructions/self_instruct_user": (252, 252, 0),
    "records/medagentbench_patients": (2_060, 1_212, 712),
    "text/c4_sample": (300, 300, 0),
    "text/medquad": (2_447, 2_221, 48),
    "text/plos": (101, 101, 0),
    "text/pmc": (6, 6, 0),
    "text/pubmed": (30_000, 14_832, 3),
    "text/wikidoc": (5_942, 5_942, 104),
    "text/wikipedia_sample": (1, 1, 0),
    "tools/glaive": (300, 300, 35),
    "tools/medagentbench": (100, 75, 4),
    "tools/reasoning": (50, 50, 0),
    "tools/tau_bench_airline": (200, 84, 0),
}
"""Rows read, samples after cleaning, samples removed as duplicates."""


def _said(message: Message) -> str:
    return "".join(part.text for part in message.parts if isinstance(part, Text))


def _visit(content: Any) -> str:
    return _said(content.messages[0]).rpartition("\n\nWrite the section")[0]


TEXTS: dict[str, dict[str, Callable[[Any], str]]] = {
    "benchmarks/medmcqa": {"MedMCQA dev question": lambda content: content.question},
    "benchmarks/medqa": {"MedQA test question": lambda content: content.question},
    "benchmarks/mmlu_medical": {"MMLU medical question": lambda content: content.question},
    "dialogue/mts_dialog": {
        "MTS-Dialog train dialogue": _visit,
        "MTS-Dialog train section_text": lambda content: _said(content.messages[1]),
    },
    "instructions/gsm8k": {"gsm8k train question": lambda content: content.question},
    "text/c4_sample": {"c4_demo text": lambda content: content.sections[0].text},
    "text/medquad": {"medquad staged answers (non-empty)": lambda content: content.answer},
    "text/pubmed": {
        "pubmed20n0014 abstracts": lambda content: " ".join(one.text for one in content.sections)
    },
    "text/wikidoc": {
        "medical_meadow_wikidoc output": lambda content: content.answer,
        "medical_meadow_wikidoc input": lambda content: content.question,
    },
    "tools/glaive": {
        "glaive_toolcall_en_demo conversations": lambda content: repr(content.messages)
    },
}
"""Where the texts, whose repetitions others have counted, lie in the cleaned samples."""

OTHER_ABSTRACTS = {"text/pubmed": 39}
"""Citations whose only abstract is in `OtherAbstract`, by another body: counted there, not read."""


def test_every_public_declaration_is_here():
    public = {path for path in datasets() if path.startswith("public/")}
    assert public == {f"public/{name}" for name in EXPECTED}


@pytest.mark.slow
@pytest.mark.parametrize("name", EXPECTED)
def test_a_declared_set_goes_through_all_of_its_steps(name, runner, shared_mirrors, shared_data):
    declared = datasets()[f"public/{name}"]
    runner.settings = runner.settings.model_copy(update={"mirrors": shared_mirrors})
    for step in steps(declared):
        version, records = runner.checked(step)
        assert all(one.passed for one in records.values()), (version, records)
        assert runner.namespace.current(step.key) == version
    cleaned = runner.namespace.current(declared.key / "clean").manifest
    kept = runner.namespace.current(declared.key / "deduplicated")
    removed = sum(kept.manifest.facts["duplicates"].values()) if kept else 0
    assert (cleaned.facts["rows_read"], cleaned.rows, removed) == EXPECTED[name]
    assert cleaned.rows + sum(cleaned.facts["rejected"].values()) == cleaned.facts["rows_read"]
    _compare(runner.namespace.current(declared.key / "clean"), name, shared_data)


def _compare(cleaned: Version, name: str, shared: Path) -> None:
    """The cleaned texts repeat as often as others have counted in the files, by their rule."""
    truth = json.loads((shared / "ground_truth" / "overlaps.json").read_text())
    for counted, text_of in TEXTS.get(name, {}).items():
        expected = truth["internal_duplicates"][counted]
        samples = table.samples(cleaned.path / layout.SAMPLES)
        texts = [tuple(re.findall("[a-z0-9]+", text_of(one.content).lower())) for one in samples]
        assert len(texts) == expected["rows"] - OTHER_ABSTRACTS.get(name, 0), counted
        assert len(texts) - len(set(texts)) == expected["rows_beyond_first_of_equal_text"], counted


def test_every_set_whose_repetitions_were_counted_is_compared(shared_data):
    truth = json.loads((shared_data / "ground_truth" / "overlaps.json").read_text())
    compared = {counted for texts in TEXTS.values() for counted in texts}
    assert compared == set(truth["internal_duplicates"])
