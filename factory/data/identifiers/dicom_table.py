"""The confidentiality profile of DICOM PS3.15, table E.1-1, as `dicom-anonymizer` carries it.

An attribute in the table is one that the basic profile removes, empties or replaces. What kind of
identifier it is follows from its name and from how its values are written (VR).
"""

from dataclasses import dataclass
from functools import cache

from factory.data.identifiers.kinds import Kind

EDITION = "dicomfields_2026c"

_REPLACED = ("D_TAGS", "Z_TAGS", "U_TAGS", "Z_D_TAGS", "X_Z_TAGS", "X_D_TAGS", "X_Z_D_TAGS")
"""Actions under which a value may stand there afterwards: empty, a dummy, another UID."""

_BY_KEYWORD: dict[str, Kind] = {
    "PatientBirthDate": Kind.BIRTH_DATE,
    "PatientBirthTime": Kind.BIRTH_DATE,
    "PatientBirthDateInAlternativeCalendar": Kind.BIRTH_DATE,
    "PatientAddress": Kind.ADDRESS,
    "RequestAttributesSequence": Kind.DESCRIPTION,
    "PersonAddress": Kind.ADDRESS,
    "PersonTelephoneNumbers": Kind.PHONE,
    "PersonTelecomInformation": Kind.PHONE,
    "PatientTelephoneNumbers": Kind.PHONE,
    "PatientTelecomInformation": Kind.PHONE,
    "OrderCallbackPhoneNumber": Kind.PHONE,
    "OrderCallbackTelecomInformation": Kind.PHONE,
    "ReferringPhysicianTelephoneNumbers": Kind.PHONE,
    "ReferringPhysicianAddress": Kind.ADDRESS,
    "InsurancePlanIdentification": Kind.ACCOUNT_NUMBER,
    "EncapsulatedDocument": Kind.UNREADABLE,
    "DeviceSerialNumber": Kind.DEVICE_NUMBER,
    "PatientID": Kind.RECORD_NUMBER,
    "OtherPatientIDs": Kind.RECORD_NUMBER,
    "AccessionNumber": Kind.RECORD_NUMBER,
    "AdmissionID": Kind.RECORD_NUMBER,
    "ServiceEpisodeID": Kind.RECORD_NUMBER,
    "MedicalRecordLocator": Kind.RECORD_NUMBER,
    "StudyID": Kind.RECORD_NUMBER,
    "FillerOrderNumberImagingServiceRequest": Kind.RECORD_NUMBER,
    "PlacerOrderNumberImagingServiceRequest": Kind.RECORD_NUMBER,
    "FillerOrderNumberProcedure": Kind.RECORD_NUMBER,
    "PlacerOrderNumberProcedure": Kind.RECORD_NUMBER,
    "SpecimenAccessionNumber": Kind.RECORD_NUMBER,
}

_BY_VR: dict[str, Kind | None] = {
    "PN": Kind.NAME,
    "DA": Kind.DATE,
    "DT": Kind.DATE,
    "TM": Kind.DATE,
    "UI": Kind.UID,
    "SQ": None,
    "LO": Kind.DESCRIPTION,
    "SH": Kind.DESCRIPTION,
    "ST": Kind.DESCRIPTION,
    "LT": Kind.DESCRIPTION,
    "UT": Kind.DESCRIPTION,
    "UC": Kind.DESCRIPTION,
}
"""What remains. Items of a sequence are judged one by one, so a sequence itself is no finding."""


@dataclass(frozen=True, slots=True)
class Profile:
    """The table, by tag."""

    removed: frozenset[tuple[int, int]]
    """Attributes that must be gone."""

    replaced: frozenset[tuple[int, int]]
    """Attributes that may stand with another value."""

    ranges: tuple[tuple[int, int, int, int], ...]
    """Repeating groups (curves, overlays), as value and mask of group and element; all removed."""

    def lists(self, group: int, element: int) -> bool:
        """Whether the basic profile touches this attribute."""
        tag = (group, element)
        return tag in self.removed or tag in self.replaced or self._in_range(group, element)

    def may_stand(self, group: int, element: int) -> bool:
        """Whether a value may stand there after the profile was applied."""
        return (group, element) in self.replaced

    def _in_range(self, group: int, element: int) -> bool:
        return any(
            group & group_mask == wanted_group & group_mask
            and element & element_mask == wanted_element & element_mask
            for wanted_group, wanted_element, group_mask, element_mask in self.ranges
        )


@cache
def profile() -> Profile:
    """The table of the newest edition that the package carries, read once."""
    from dicomanonymizer.dicomfields_selector import dicom_anonymization_database_selector

    table: dict[str, list[tuple[int, ...]]] = dicom_anonymization_database_selector(EDITION)
    replaced = {_pair(tag) for name in _REPLACED for tag in table[name] if len(tag) == 2}
    every = table["ALL_TAGS"]
    return Profile(
        removed=frozenset(_pair(tag) for tag in every if len(tag) == 2) - replaced,
        replaced=frozenset(replaced),
        ranges=tuple((tag[0], tag[1], tag[2], tag[3]) for tag in every if len(tag) == 4),
    )


def _pair(tag: tuple[int, ...]) -> tuple[int, int]:
    return tag[0], tag[1]


def kind(keyword: str, vr: str) -> Kind | None:
    """What an attribute of the table would tell; none where its items tell it."""
    if keyword in _BY_KEYWORD:
        return _BY_KEYWORD[keyword]
    if vr in ("PN", "DA", "DT", "TM", "UI", "SQ"):
        return _BY_VR[vr]
    if any(part in keyword for part in ("Institution", "Department", "Location", "Station")):
        return Kind.INSTITUTION
    if keyword.startswith("Patient"):
        return Kind.CHARACTERISTIC
    return _BY_VR.get(vr, Kind.CHARACTERISTIC)
