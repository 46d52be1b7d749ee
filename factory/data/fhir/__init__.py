"""FHIR R4: a bundle or a resource as a document of its patient.

`document` here is what a declaration calls; `validation` says what is valid, `resources` and
`values` how it reads. Rows are bundles (`row.record`) or single resources, as a bulk export writes
them. Nothing here needs the FHIR models until a row is read.
"""

from collections.abc import Mapping
from typing import Any

from factory.data.fhir import resources
from factory.data.sample import Sample
from factory.errors import BadRow


def document(
    value: Mapping[str, Any],
    *,
    id: str,  # noqa: A002  as in `Sample`
    license: str = "",  # noqa: A002
    meta: Mapping[str, str] | None = None,
) -> Sample:
    """One section per resource, grouped by the patient that they are about.

    Raises:
        BadRow: it is not valid, holds no resource, or speaks of several patients, which could not
            be kept in one split.
    """
    from factory.data.fhir.validation import validated

    found = validated(value)
    if not found.resources:
        raise BadRow("empty FHIR bundle")
    patients = found.patients()
    if len(patients) > 1:
        raise BadRow("several patients in one FHIR bundle")
    sections = [resources.section(one) for one in found.resources]
    return Sample.document(
        id=id,
        title=sections[0][0] if len(sections) == 1 else "Patient record",
        sections=sections,
        group=next(iter(patients), ""),
        license=license,
        meta=meta,
    )
