"""FHIR: what is valid, whom it is about, and how it reads."""

import base64
import copy
import gzip
import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from factory.data import fhir
from factory.errors import BadRow

PATIENT: dict[str, Any] = {
    "resourceType": "Patient",
    "id": "p1",
    "meta": {"versionId": "1", "source": "#import"},
    "extension": [
        {
            "url": "http://hl7.org/fhir/us/core/StructureDefinition/us-core-race",
            "extension": [
                {"url": "ombCategory", "valueCoding": {"code": "2106-3", "display": "White"}},
                {"url": "text", "valueString": "White"},
            ],
        }
    ],
    "identifier": [{"type": {"text": "Record number"}, "system": "urn:x", "value": "S1"}],
    "active": True,
    "name": [{"use": "official", "family": "Lovelace", "given": ["Ada", "King"]}],
    "telecom": [{"system": "phone", "value": "555-0101", "use": "home"}],
    "gender": "female",
    "birthDate": "1815-12-10",
    "_birthDate": {"extension": [{"url": "http://x/birthTime", "valueDateTime": "1815-12-10"}]},
    "deceasedDateTime": "1852-11-27",
    "address": [{"line": ["12 St James"], "city": "London", "postalCode": "SW1", "country": "GB"}],
    "contact": [
        {"relationship": [{"text": "Mother"}], "name": {"text": "Anne"}, "gender": "female"}
    ],
}

OBSERVATION: dict[str, Any] = {
    "resourceType": "Observation",
    "status": "final",
    "code": {
        "coding": [{"system": "http://loinc.org", "code": "4548-4", "display": "Haemoglobin A1c"}]
    },
    "subject": {"reference": "Patient/p1"},
    "effectiveDateTime": "2020-01-02T10:00:00Z",
    "valueQuantity": {"value": 5.4, "comparator": "<", "unit": "%"},
    "referenceRange": [{"low": {"value": 4, "unit": "%"}, "high": {"value": 6, "unit": "%"}}],
    "component": [{"code": {"text": "Part"}, "valueBoolean": False}],
    "note": [{"text": "Fasting.\nTwice.", "authorString": "Dr. Who", "time": "2020-01-03"}],
}


def bundle(*resources: object, **fields: object) -> dict[str, Any]:
    entries = [{"resource": one} for one in resources]
    return {"resourceType": "Bundle", "type": "collection", "entry": entries} | fields


def test_a_patient():
    sample = fhir.document(bundle(PATIENT), id="b", license="MIT", meta={"page": "1"})
    assert (sample.id, sample.group, sample.license) == ("b", "Patient/p1", "MIT")
    content = sample.as_dict()["document"]
    assert content["title"] == content["sections"][0]["heading"] == "Patient"
    assert content["sections"][0]["text"].splitlines() == [
        "Race: White (2106-3); White",
        "Identifier: Record number S1",
        "Active: yes",
        "Name: Ada King Lovelace",
        "Telecom: 555-0101 (phone, home)",
        "Gender: female",
        "Birth date: 1815-12-10",
        "Birth date birth time: 1815-12-10",
        "Deceased: 1852-11-27",
        "Address: 12 St James, London, SW1, GB",
        "Contact:",
        "  Relationship: Mother",
        "  Name: Anne",
        "  Gender: female",
    ]


def test_a_finding():
    sample = fhir.document(OBSERVATION, id="o")
    assert sample.group == "Patient/p1"
    section = sample.as_dict()["document"]["sections"][0]
    assert section["heading"] == "Observation: Haemoglobin A1c (4548-4)"
    assert section["text"].splitlines() == [
        "Status: final",
        "Code: Haemoglobin A1c (4548-4)",
        "Subject: Patient/p1",
        "Effective: 2020-01-02T10:00:00Z",
        "Value: < 5.4 %",
        "Reference range: 4 % to 6 %",
        "Component:",
        "  Code: Part",
        "  Value: no",
        "Note: Fasting.",
        "Twice. (Dr. Who, 2020-01-03)",
    ]


def test_a_record_has_a_section_for_each_resource():
    sample = fhir.document(bundle(PATIENT, OBSERVATION), id="r")
    content = sample.as_dict()["document"]
    assert content["title"] == "Patient record"
    assert [one["heading"] for one in content["sections"]] == [
        "Patient",
        "Observation: Haemoglobin A1c (4548-4)",
    ]


def medication() -> dict[str, Any]:
    dose = {"doseQuantity": {"value": 500, "unit": "mg"}}
    repeat = {"frequency": 2, "period": 1, "periodUnit": "d"}
    return {
        "resourceType": "MedicationRequest",
        "status": "active",
        "intent": "order",
        "contained": [
            {"resourceType": "Medication", "id": "m", "code": {"text": "Metformin"}},
        ],
        "medicationReference": {"reference": "#m"},
        "subject": {"reference": "Patient/p1"},
        "dosageInstruction": [{"timing": {"repeat": repeat}, "doseAndRate": [dose]}],
        "dispenseRequest": {"validityPeriod": {"start": "2020-01-01"}},
    }


def test_what_is_contained_follows_and_a_reference_names_it():
    section = fhir.document(medication(), id="m").as_dict()["document"]["sections"][0]
    assert section["text"].splitlines() == [
        "Status: active",
        "Intent: order",
        "Medication: Medication: Metformin",
        "Subject: Patient/p1",
        "Dosage instruction:",
        "  Timing:",
        "    Repeat:",
        "      Frequency: 2",
        "      Period: 1",
        "      Period unit: d",
        "  Dose and rate:",
        "    Dose: 500 mg",
        "Dispense request:",
        "  Validity period: since 2020-01-01",
        "Medication: Metformin:",
        "  Code: Metformin",
    ]


def attached(kind: str, data: bytes) -> str:
    attachment = {"contentType": kind, "data": base64.b64encode(data).decode(), "title": "Letter"}
    found = fhir.document(
        {
            "resourceType": "DocumentReference",
            "status": "current",
            "content": [{"attachment": attachment}],
        },
        id="d",
    )
    return found.as_dict()["document"]["sections"][0]["text"]


def test_notes_that_are_attached_are_read():
    assert "  Attachment: Dear\nDr. Müller" in attached("text/plain", "Dear\nDr. Müller".encode())
    assert "  Attachment: a & b" in attached("text/html", b"<p>a &amp; b</p>")
    assert "  Attachment: Letter [application/pdf]" in attached("application/pdf", b"%PDF")
    assert "  Attachment: Letter [text/plain]" in attached("text/plain", b"\xff\xfe\xff")


def test_a_narrative_is_read_where_it_is_all_there_is():
    told = {
        "status": "generated",
        "div": '<div xmlns="http://www.w3.org/1999/xhtml">So &lt;3</div>',
    }
    bare = {"resourceType": "Patient", "id": "p1", "text": told}
    section = fhir.document(bare, id="p").as_dict()["document"]["sections"][0]
    assert section["text"] == "So <3"
    assert "So <3" not in str(fhir.document(PATIENT | {"text": told}, id="p").as_dict())
    more = told | {"status": "additional"}
    assert "So <3" in str(fhir.document(PATIENT | {"text": more}, id="p").as_dict())
    nothing = fhir.document({"resourceType": "Patient"}, id="p").as_dict()["document"]
    assert nothing["sections"] == [{"heading": "Patient", "text": "No details."}]


def test_the_group_is_the_patient_however_referred_to():
    def group(reference: str, **fields: object) -> str:
        subject = {"subject": {"reference": reference}}
        entries = [
            {"fullUrl": "urn:uuid:1", "resource": PATIENT},
            {"resource": OBSERVATION | subject},
        ]
        return fhir.document(bundle(entry=entries, **fields), id="b").group

    for reference in (
        "Patient/p1",
        "urn:uuid:1",
        "https://x.org/fhir/Patient/p1",
        "Patient/p1/_history/2",
        "Group/g1",
    ):
        assert group(reference) == "Patient/p1"
    with pytest.raises(BadRow, match="several patients in one FHIR bundle"):
        group("Patient/p2")
    unknown = {name: one for name, one in OBSERVATION.items() if name != "subject"}
    assert fhir.document(unknown, id="o").group == ""
    allergy = {"resourceType": "AllergyIntolerance", "patient": {"reference": "Patient/p3"}}
    assert fhir.document(allergy, id="a").group == "Patient/p3"


@pytest.mark.parametrize(
    ("reason", "value"),
    [
        ("empty FHIR bundle", {"resourceType": "Bundle", "type": "searchset", "total": 0}),
        ("empty FHIR bundle", bundle()),
        ("empty FHIR bundle", bundle(entry=[{"response": {"status": "204"}}])),
        ("not valid FHIR", None),
        ("not valid FHIR", []),
        ("not valid FHIR", {}),
        ("not valid FHIR", {"resourceType": 3}),
        ("not valid FHIR", {"resourceType": "Spell"}),
        ("not valid FHIR", bundle({"id": "no type"})),
        ("not valid FHIR", bundle({"resourceType": "Spell"})),
        ("not valid FHIR", bundle(None)),
        ("not valid FHIR", bundle(entry="resource")),
        ("not valid FHIR", bundle(entry=["resource"])),
        ("not valid FHIR", {"resourceType": "Bundle", "entry": []}),
        ("not valid FHIR", bundle(PATIENT | {"birthDate": "10.12.1815"})),
        ("not valid FHIR", bundle(PATIENT | {"name": {"family": "x"}})),
        ("not valid FHIR", bundle(PATIENT | {"nickname": "Ada"})),
        ("not valid FHIR", bundle(OBSERVATION | {"valueString": "twice"})),
        ("not valid FHIR", {"resourceType": "Observation", "code": {"text": "x"}}),
        ("a FHIR resource that R4B does not have", {"resourceType": "MedicinalProduct"}),
        ("a FHIR resource that R4B does not have", bundle({"resourceType": "SubstanceProtein"})),
        ("a FHIR resource that R4B does not have", {"resourceType": "RiskEvidenceSynthesis"}),
        (
            "several patients in one FHIR bundle",
            bundle(PATIENT, PATIENT | {"id": "p2"}),
        ),
    ],
)
def test_what_gives_no_document(reason: str, value: Any):
    with pytest.raises(BadRow) as caught:
        fhir.document(value, id="b")
    assert caught.value.reason == reason
    assert caught.value.__cause__ is None


def test_what_a_search_says_about_itself_is_not_read():
    outcome = {
        "resourceType": "OperationOutcome",
        "issue": [{"severity": "warning", "code": "informational"}],
    }
    entries = [{"resource": PATIENT}, {"resource": outcome, "search": {"mode": "outcome"}}]
    sample = fhir.document(bundle(entry=entries), id="b")
    assert len(sample.as_dict()["document"]["sections"]) == 1


PATHS = ["identifier", "name", "telecom", "address", "contact", "extension", "_birthDate"]
VALUES = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.text(max_size=4)),
    lambda inner: st.one_of(
        st.lists(inner, max_size=2),
        st.dictionaries(
            st.sampled_from(
                ["value", "system", "code", "coding", "text", "given", "family", "line", "start"]
            ),
            inner,
            max_size=3,
        ),
    ),
    max_leaves=6,
)


@settings(max_examples=200)
@given(name=st.sampled_from(PATHS), value=VALUES, inside=st.booleans())
def test_whatever_comes_is_read_or_rejected(name: str, value: Any, inside: bool):
    patient = copy.deepcopy(PATIENT)
    if inside and isinstance(patient[name], list):
        patient[name][0]["value"] = value
        patient[name].append(value)
    else:
        patient[name] = value
    try:
        sample = fhir.document(bundle(patient), id="b")
    except BadRow:
        return
    assert sample.characters


def test_bundles_of_a_server(shared_data: Path):
    path = shared_data / "fhir_medagentbench" / "fhir_snapshot.jsonl.gz"
    found = Counter[str]()
    patients: set[str] = set()
    for number, line in enumerate(gzip.decompress(path.read_bytes()).splitlines()):
        try:
            sample = fhir.document(json.loads(line)["data"], id=str(number))
        except BadRow as error:
            found[error.reason] += 1
        else:
            found["read"] += 1
            patients.add(sample.group)
            assert "Birth date: " in sample.as_dict()["document"]["sections"][0]["text"]
    assert found == {
        "empty FHIR bundle": 848,
        "several patients in one FHIR bundle": 2,
        "read": 212,
    }
    assert len(patients) == 106
