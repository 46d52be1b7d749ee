"""HumanEval in other words: the same tasks with other names and texts (Python)."""

from definitions.datasets.public.benchmarks.humaneval import clean
from factory.data import Dataset, Git, checks
from factory.keys import public

rephrased_humaneval = Dataset(
    key=public("benchmarks/rephrased_humaneval"),
    role="benchmark",
    license="MIT",
    source=Git(
        url="https://github.com/lm-sys/llm-decontaminator",
        revision="931834aa0990d9558a06c5d34daf4ad3852a72ae",
        rows="data/rephrase/humaneval_python.jsonl",
    ),
    clean=clean,
    checks=[checks.rows(147, 164), checks.rejected("no text", at_most=0.11)],
)
