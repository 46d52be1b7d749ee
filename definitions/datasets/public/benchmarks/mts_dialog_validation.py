"""MTS-Dialog, the validation part: 100 visits, each with one section of the note (English)."""

from definitions.datasets.public.benchmarks.mts_dialog import clean
from factory.data import Dataset, Git, checks
from factory.keys import public

mts_dialog_validation = Dataset(
    key=public("benchmarks/mts_dialog_validation"),
    role="benchmark",
    license="CC-BY-4.0",
    source=Git(
        url="https://github.com/abachaa/MTS-Dialog",
        revision="3ff0801933608d6f570468c13125125fb5cabdea",
        rows="Main-Dataset/MTS-Dialog-ValidationSet.csv",
    ),
    clean=clean,
    checks=[checks.rows(100, 100)],
)
