"""PubMedQA, the labelled test half: 500 questions on abstracts, answered yes, no or maybe."""

from definitions.datasets.public.instructions.pubmedqa import clean_any
from factory.data import Dataset, Git, Rows, checks
from factory.keys import public

pubmedqa = Dataset(
    key=public("benchmarks/pubmedqa"),
    role="benchmark",
    license="MIT",
    source=Git(
        url="https://github.com/Teddy-XiongGZ/MIRAGE",
        revision="392943af99cd94cafd50a0de2e7fca24bbf65494",
        rows=Rows("rawdata/pubmedqa/data/test_set.json", keyed="pmid"),
    ),
    clean=clean_any,
    checks=[checks.rows(500, 500)],
)
