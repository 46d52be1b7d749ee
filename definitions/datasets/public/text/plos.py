"""PLOS articles: the 122 full texts that ship inside the Python package allofplos (English)."""

from factory.data import Dataset, PythonPackage, Rejected, Row, Sample, checks, jats, licence
from factory.keys import public


def clean(row: Row) -> Sample | Rejected:
    """The licence is the article's own; one that does not say it clearly is left out."""
    article = jats.article(row.element)
    if article.license is None or not licence.PERMISSIVE.fullmatch(article.license):
        return Rejected("licence unclear")
    return Sample.document(
        id=article.doi,
        title=article.title,
        sections=article.sections,
        license=article.license,
        meta={"doi": article.doi, "journal": article.journal, "article_type": article.kind},
    )


plos = Dataset(
    key=public("text/plos"),
    license="LicenseRef-CC-BY AND CC-BY-3.0 AND CC-BY-4.0 AND CC0-1.0 AND CC-PDDC",
    source=PythonPackage(
        name="allofplos",
        version="0.11.0",
        sha256="e81e663e07fc043b2f6d6b6cf94c9df7234b653364afa123b8c50af60bd204d1",
        rows="allofplos/starter_corpus/*.xml",
    ),
    clean=clean,
    split={"train": 0.80, "validation": 0.10, "test": 0.10},
    checks=[checks.rows(115, 122), checks.rejected("licence unclear", at_most=0.05)],
)
