"""How many planted identifiers the scan finds, how much it finds in clean text, and how fast.

Real inputs: patients of a FHIR server (de-identified, jittered) and notes of MTS-Dialog. Sentences
are planted with the patients' values and with made-up ones, in wordings with a label or a telling
form ("told") and in wordings without ("bare"), which a scan without a model is expected to miss.
"""

import csv
import gzip
import json
import os
import random
import time
from calendar import month_abbr
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from factory.data.identifiers.flatten import object_text
from factory.data.identifiers.kinds import Finding, Kind
from factory.data.identifiers.text import scan_text

SHARED = Path(
    os.environ.get("FACTORY_SHARED_DATA", Path(__file__).resolve().parents[3] / "shared" / "data")
)
NOTES = 500

TOLD: dict[Kind, list[str]] = {
    Kind.RECORD_NUMBER: ["MRN: {}.", "MRN {} reviewed.", "Medical record number {}.", "(MR# {})"],
    Kind.PHONE: [
        "Call back at {}.",
        "Home phone {}.",
        "Contact: {} (daughter).",
        "{} is his cell.",
    ],
    Kind.BIRTH_DATE: ["DOB: {}.", "Born on {}.", "D.O.B. {}", "Date of birth is {}."],
    Kind.ADDRESS: ["Lives at {}.", "Discharged to {}, with aide.", "Address: {}."],
    Kind.EMAIL: ["Email: {}.", "Results were sent to {}.", "<{}>"],
    Kind.NATIONAL_ID: ["SSN {}.", "Social security number: {}.", "Insured under {}."],
    Kind.ACCOUNT_NUMBER: ["Account #{}.", "Member ID: {}.", "Policy number {}."],
    Kind.DEVICE_NUMBER: ["Pacemaker serial number {}.", "Device ID {}.", "S/N {}."],
    Kind.NETWORK_ADDRESS: ["Portal login from {}.", "IP {}."],
    Kind.NAME: ["Patient name: {}.", "Seen with Mr. {}.", "Dr. {} agrees."],
    Kind.DATE: ["Admitted {}.", "Surgery on {} went well."],
}
BARE: dict[Kind, list[str]] = {
    Kind.RECORD_NUMBER: ["{} came in today.", "Chart of {}."],
    Kind.BIRTH_DATE: ["Patient ({}) was seen.", "{}, female."],
    Kind.ADDRESS: ["His place on {} is on the second floor."],
    Kind.NAME: ["{} came with her sister.", "I spoke to {} at length."],
}


def run() -> str:
    """The section of the page."""
    scan_text("the recognizers are loaded by the first call")
    patients = list(_patients())
    clean, host = _notes()
    rng = random.Random(4)
    lines = [_fhir(patients)]
    for title, wordings in (("told", TOLD), ("bare", BARE)):
        lines.append(_planted(title, wordings, host, patients, rng))
    lines.append(_clean(clean))
    return "\n\n".join(lines)


def _fhir(patients: list[dict[str, Any]]) -> str:
    wanted: Counter[str] = Counter()
    found: Counter[str] = Counter()
    characters, start = 0, time.process_time()
    for patient in patients:
        text = object_text(patient).text
        characters += len(text)
        hits = scan_text(text)
        for what, kind, value in _values(patient):
            wanted[what] += 1
            at = text.rindex(f": {value}") + 2
            found[what] += any(one.kind is kind and one.start <= at < one.end for one in hits)
    rate = characters / (time.process_time() - start) / 1e6
    rows = [f"| {what} | {count:,} | {found[what] / count:.3f} |" for what, count in wanted.items()]
    return "\n".join(
        [
            f"**{len(patients):,} FHIR patients**, as JSON rows ({rate:.2f} MB per CPU-second):",
            "",
            "| field | values | recall |",
            "|---|---:|---:|",
            *rows,
        ]
    )


def _values(patient: dict[str, Any]) -> Iterator[tuple[str, Kind, str]]:
    yield "record number", Kind.RECORD_NUMBER, patient["identifier"][0]["value"]
    yield "birth date", Kind.BIRTH_DATE, patient["birthDate"]
    for one in patient.get("telecom", []):
        if one.get("value"):
            yield str(one.get("system", "phone")), Kind.PHONE, one["value"]
    for one in patient.get("address", []):
        if one.get("line"):
            yield "address line", Kind.ADDRESS, one["line"][0]
        if one.get("postalCode"):
            yield "postal code", Kind.ADDRESS, one["postalCode"]
    for one in patient.get("name", []):
        if one.get("family"):
            yield "family name", Kind.NAME, one["family"]


def _planted(
    title: str,
    wordings: dict[Kind, list[str]],
    host: list[str],
    patients: list[dict[str, Any]],
    rng: random.Random,
) -> str:
    planted: Counter[Kind] = Counter()
    exact: Counter[Kind] = Counter()
    noticed: Counter[Kind] = Counter()
    notes = notes_caught = characters = 0
    start = time.process_time()
    for number in range(NOTES):
        text, spans = _plant(host[number % len(host)], wordings, patients[number], rng)
        characters += len(text)
        hits = scan_text(text)
        notes += 1
        notes_caught += any(one.direct for one in hits)
        for kind, first, last in spans:
            planted[kind] += 1
            over = [one for one in hits if one.start < last and one.end > first]
            exact[kind] += any(one.kind is kind for one in over)
            noticed[kind] += bool(over)
    rate = characters / (time.process_time() - start) / 1e6
    rows = [
        f"| {kind} | {count:,} | {exact[kind] / count:.3f} | {noticed[kind] / count:.3f} |"
        for kind, count in sorted(planted.items())
    ]
    return "\n".join(
        [
            f"**{notes} planted notes, {title}**: {notes_caught} hold a direct finding "
            f"({rate:.2f} MB per CPU-second).",
            "",
            "| kind | planted | recall | found as any kind |",
            "|---|---:|---:|---:|",
            *rows,
        ]
    )


def _plant(
    note: str, wordings: dict[Kind, list[str]], patient: dict[str, Any], rng: random.Random
) -> tuple[str, list[tuple[Kind, int, int]]]:
    """A note with up to three sentences added between its own."""
    parts = note.split(". ")
    spans: list[tuple[Kind, str, str]] = []
    for kind in rng.sample(sorted(wordings), k=min(3, len(wordings))):
        value = _value(kind, patient, rng)
        sentence = rng.choice(wordings[kind]).format(value)
        spans.append((kind, sentence, value))
        parts.insert(rng.randrange(len(parts) + 1), sentence.removesuffix("."))
    text = ". ".join(parts)
    placed: list[tuple[Kind, int, int]] = []
    for kind, sentence, value in spans:
        at = text.index(sentence.removesuffix(".")) + sentence.index(value)
        placed.append((kind, at, at + len(value)))
    return text, placed


def _value(kind: Kind, patient: dict[str, Any], rng: random.Random) -> str:
    year, month, day = patient["birthDate"].split("-")
    name = patient["name"][0]
    dates = [
        f"{int(month)}/{int(day)}/{year}",
        f"{year}-{month}-{day}",
        f"{day} {month_abbr[int(month)]} {year}",
        f"{int(month)}-{int(day)}-{year[2:]}",
    ]
    address = patient.get("address", [{}])[0].get("line", ["12 Elm Street"])[0]
    phone = patient.get("telecom", [{}])[0].get("value", "440-976-1128")
    digits = "".join(rng.choices("123456789", k=9))
    values = {
        Kind.RECORD_NUMBER: patient["identifier"][0]["value"],
        Kind.PHONE: phone,
        Kind.BIRTH_DATE: rng.choice(dates),
        Kind.DATE: rng.choice(dates),
        Kind.ADDRESS: address,
        Kind.EMAIL: f"{name['given'][0]}.{name['family']}@example.org".replace(" ", "").lower(),
        Kind.NATIONAL_ID: f"{rng.randint(100, 599)}-{digits[:2]}-{digits[2:6]}",
        Kind.ACCOUNT_NUMBER: f"{rng.choice(['', 'XGP', 'A-'])}{digits}",
        Kind.DEVICE_NUMBER: f"PJN{digits[:7]}",
        Kind.NETWORK_ADDRESS: f"10.{digits[0]}.{digits[1:3]}.{digits[3:5]}",
        Kind.NAME: rng.choice([name["family"], f"{name['given'][0]} {name['family']}"]),
    }
    return str(values[kind])


def _clean(notes: list[str]) -> str:
    hits: list[Finding] = []
    flagged = 0
    start = time.process_time()
    for note in notes:
        found = scan_text(note)
        flagged += any(one.direct for one in found)
        hits += found
    rate = sum(map(len, notes)) / (time.process_time() - start) / 1e6
    kinds = Counter(one.kind for one in hits)
    listed = ", ".join(f"{count} {kind}" for kind, count in sorted(kinds.items())) or "nothing"
    return (
        f"**{len(notes)} clean notes**: {flagged} hold a direct finding; found in all: {listed} "
        f"(dates and titled names are really there). {rate:.2f} MB per CPU-second."
    )


def _patients() -> Iterator[dict[str, Any]]:
    seen: set[str] = set()
    with gzip.open(SHARED / "fhir_medagentbench" / "fhir_snapshot.jsonl.gz", "rt") as file:
        for line in file:
            for entry in json.loads(line)["data"].get("entry", []):
                resource = entry["resource"]
                if resource["resourceType"] == "Patient" and resource["id"] not in seen:
                    if resource.get("birthDate") and resource.get("identifier"):
                        yield resource
                    seen.add(resource["id"])


def _notes() -> tuple[list[str], list[str]]:
    """The 1,000 longest notes, every other one left clean."""
    path = SHARED / "mts_dialog" / "MTS-Dialog-TrainingSet.csv"
    with path.open(encoding="utf-8", newline="") as file:
        texts = {row["section_text"] for row in csv.DictReader(file)}
    notes = sorted(texts, key=lambda one: (len(one), one))[-2 * NOTES :]
    return notes[::2], notes[1::2]
