"""What is valid FHIR, and which resources and patients a row speaks of.

Checked against the R4B models of `fhir.resources`, which has no models of R4 itself. What differs
for data written as R4 (4.0.1):

- R4B (4.3.0) has no MedicinalProduct, MedicinalProductAuthorization and their other siblings,
  EffectEvidenceSynthesis, RiskEvidenceSynthesis, SubstanceSpecification and the Substance resources
  around it. They are refused with a reason of their own.
- Evidence, EvidenceVariable and DeviceDefinition have other elements; R4 instances of them are
  mostly not valid. All clinical resources (Patient, Observation, Condition, MedicationRequest and
  so on) are the same in both.

The models check structure, cardinality, formats of dates and ids, and that there is one value of a
choice. They do not check value sets (`gender: "weird"` passes), profiles, invariants, or whether
references lead anywhere; an empty list passes, which FHIR forbids.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from fhir.resources.R4B import get_fhir_model_class

from factory.errors import BadRow

type Json = Mapping[str, Any]

ONLY_R4 = frozenset({"EffectEvidenceSynthesis", "RiskEvidenceSynthesis", "SubstanceSpecification"})
ONLY_R4_PREFIXES = ("MedicinalProduct", "Substance")

SUBJECTS = ("subject", "patient", "beneficiary", "individual", "for")
"""Elements that say whom a resource is about."""


@dataclass(frozen=True, slots=True)
class Validated:
    """The resources of a row, and by which addresses they call each other."""

    resources: Sequence[Json]
    addresses: Mapping[str, str]
    """`fullUrl` of an entry to `Type/id`."""

    def patients(self) -> list[str]:
        """The patients, as `Patient/id`, in the order in which they are met."""
        return list(dict.fromkeys(one for found in self.resources for one in self._about(found)))

    def _about(self, resource: Json) -> Iterator[str]:
        if resource["resourceType"] == "Patient":
            if "id" in resource:
                yield f"Patient/{resource['id']}"
            return
        for name in SUBJECTS:
            subject = resource.get(name)
            if isinstance(subject, Mapping):
                yield from self._patient(cast("Json", subject).get("reference"))

    def _patient(self, reference: object) -> Iterator[str]:
        if not isinstance(reference, str):
            return
        known = self.addresses.get(reference, reference)
        _, found, rest = f"/{known}".rpartition("/Patient/")
        if found:
            yield f"Patient/{rest.partition('/')[0]}"


def validated(value: object) -> Validated:
    """The resources of a bundle, or the one resource that it is.

    What a search says about itself (`OperationOutcome` of mode `outcome`) is no resource of it.

    Raises:
        BadRow: it is not valid.
    """
    resource = _resource(value)
    _check(resource)
    if resource["resourceType"] != "Bundle":
        return Validated([resource], {})
    entries = [one for one in resource.get("entry") or () if one and "resource" in one]
    about = [one for one in entries if (one.get("search") or {}).get("mode") != "outcome"]
    addresses = {
        one["fullUrl"]: f"{one['resource']['resourceType']}/{one['resource'].get('id', '')}"
        for one in entries
        if "fullUrl" in one
    }
    return Validated([one["resource"] for one in about], addresses)


def _check(resource: Json) -> None:
    try:
        for one in _nested(resource):
            get_fhir_model_class(_resource(one)["resourceType"])
        get_fhir_model_class(resource["resourceType"]).model_validate(resource)
    except (ValueError, TypeError, LookupError, AttributeError, RecursionError):
        raise BadRow("not valid FHIR") from None  # the message quotes the row


def _nested(resource: Json) -> Iterator[object]:
    """The resource and those in its entries."""
    yield resource
    if resource["resourceType"] != "Bundle":
        return
    for entry in resource.get("entry") or ():
        if entry and "resource" in entry:
            yield entry["resource"]


def _resource(value: object) -> Json:
    if not isinstance(value, Mapping):
        raise BadRow("not valid FHIR")
    resource = cast("Json", value)
    kind = resource.get("resourceType")
    if not isinstance(kind, str):
        raise BadRow("not valid FHIR")
    if kind in ONLY_R4 or (kind.startswith(ONLY_R4_PREFIXES) and not _is_known(kind)):
        raise BadRow("a FHIR resource that R4B does not have")
    return resource


def _is_known(kind: str) -> bool:
    try:
        get_fhir_model_class(kind)
    except (ValueError, LookupError):
        return False
    return True
