"""Self-Instruct: 252 instructions as users of common applications would give them (English)."""

from definitions.datasets.public.instructions.self_instruct_seed import clean
from factory.data import Dataset, Git, checks
from factory.keys import public

self_instruct_user = Dataset(
    key=public("instructions/self_instruct_user"),
    license="Apache-2.0",
    source=Git(
        url="https://github.com/yizhongw/self-instruct",
        revision="0b26ccaa415992100fa32df62d41b994cf928e23",
        rows="human_eval/user_oriented_instructions.jsonl",
    ),
    clean=clean,
    split={"train": 0.90, "validation": 0.05, "test": 0.05},
    checks=[checks.rows(240, 252)],
)
