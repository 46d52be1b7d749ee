"""GSM8K, the test part: 1,319 questions of school mathematics (English)."""

from definitions.datasets.public.instructions.gsm8k import clean
from factory.data import Dataset, Git, checks
from factory.keys import public

gsm8k = Dataset(
    key=public("benchmarks/gsm8k"),
    role="benchmark",
    license="MIT",
    source=Git(
        url="https://github.com/openai/grade-school-math",
        revision="3101c7d5072418e28b9008a6636bde82a006892c",
        rows="grade_school_math/data/test.jsonl",
    ),
    clean=clean,
    checks=[checks.rows(1_319, 1_319)],
)
