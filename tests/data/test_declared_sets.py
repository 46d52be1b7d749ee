"""Every public declaration of this repository through all of its steps, from real bytes.

Sources are read through mirrors, some of which hold a part of their source: then the bounds that a
declaration states are not judged. What must come out is pinned here instead.
"""

import pytest

from factory.data.steps import steps
from factory.discovery import datasets

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


def test_every_public_declaration_is_here():
    public = {path for path in datasets() if path.startswith("public/")}
    assert public == {f"public/{name}" for name in EXPECTED}


@pytest.mark.slow
@pytest.mark.parametrize("name", EXPECTED)
def test_a_declared_set_goes_through_all_of_its_steps(name, runner, shared_mirrors):
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
