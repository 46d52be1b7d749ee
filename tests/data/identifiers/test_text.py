"""Text to findings: one case per kind, what must not be found, and texts of every odd form."""

import base64
import hashlib
import json
import logging
import random
import textwrap
import time
from itertools import pairwise
from urllib.parse import quote

import phonenumbers
import pytest

from factory.data.identifiers import recognizers
from factory.data.identifiers import text as text_module
from factory.data.identifiers.kinds import Kind
from factory.data.identifiers.text import scan_text
from factory.errors import ScanFailed

FOUND = [
    (Kind.EMAIL, "write to {} please", "jane.roe@example.org"),
    (Kind.EMAIL, "write to {} please", "jane@ward7.hospital.internal"),
    (Kind.EMAIL, "write to {} please", "jane.roe (at) example.org"),
    (Kind.PHONE, "She can be reached at {}.", "555-0142"),
    (Kind.PHONE, "home {} after six", "440-976-1128"),
    (Kind.PHONE, "home {} after six", "(440) 976-1128"),
    (Kind.PHONE, "home {} after six", "+1 440 976 1128"),
    (Kind.PHONE, "home {} after six", "+49 30 90182-0"),
    (Kind.PHONE, "office {} after six", "020 7946 0958"),
    (Kind.PHONE, "Tel.: {}", "06221/567890"),
    (Kind.RECORD_NUMBER, "MRN: {}", "00423178"),
    (Kind.RECORD_NUMBER, "MRN {} was seen", "S6426560"),
    (Kind.RECORD_NUMBER, "Medical Record Number is {}.", "42-3178-9"),
    (Kind.RECORD_NUMBER, "Patient ID={}", "AB123456"),
    (Kind.RECORD_NUMBER, "Accession #: {}", "A20231177"),
    (Kind.RECORD_NUMBER, "Patientennummer {}", "7788123"),
    (Kind.NATIONAL_ID, "her {} on file", "219-09-9998"),
    (Kind.NATIONAL_ID, "SSN: {}", "219099998"),
    (Kind.NATIONAL_ID, "NHS number {}", "9434765919"),
    (Kind.NATIONAL_ID, "seen {} yesterday", "943 476 5919"),
    (Kind.NATIONAL_ID, "NINO {}", "AB123456C"),
    (Kind.NATIONAL_ID, "née, {}", "2 55 08 14 168 025 38"),
    (Kind.NATIONAL_ID, "DNI {}", "12345678Z"),
    (Kind.NATIONAL_ID, "PESEL {}", "44051401359"),
    (Kind.NATIONAL_ID, "BSN {}", "111222333"),
    (Kind.NATIONAL_ID, "SIN {}", "046 454 286"),
    (Kind.CARD_NUMBER, "paid with {}", "4111 1111 1111 1111"),
    (Kind.ACCOUNT_NUMBER, "IBAN {}", "DE89370400440532013000"),
    (Kind.ACCOUNT_NUMBER, "Account number: {}", "77120034"),
    (Kind.ACCOUNT_NUMBER, "Member ID {}", "XGP900412377"),
    (Kind.ACCOUNT_NUMBER, "Policy no. {}", "881-220-19"),
    (Kind.LICENCE_NUMBER, "driver's license {}", "D1234567"),
    (Kind.LICENCE_NUMBER, "signed, DEA {}", "AB1234563"),
    (Kind.LICENCE_NUMBER, "NPI: {}", "1234567893"),
    (Kind.DEVICE_NUMBER, "pacemaker, serial no. {}", "PJN2231877"),
    (Kind.DEVICE_NUMBER, "VIN of the car {}", "1M8GDM9AXKP042788"),
    (Kind.DEVICE_NUMBER, "implant {}", "(01)00844588003288"),
    (Kind.NETWORK_ADDRESS, "from {} at night", "172.16.193.2"),
    (Kind.NETWORK_ADDRESS, "from {} at night", "00:1A:2B:3C:4D:5E"),
    (Kind.PERSONAL_URL, "see {}", "https://portal.example.org/patients/88123"),
    (Kind.PERSONAL_URL, "see {}", "www.facebook.com/jane.roe.77"),
    (Kind.URL, "see {}", "https://www.nih.gov/health"),
    (Kind.ADDRESS, "lives at {} with her son", "437 Coleman Plains"),
    (Kind.ADDRESS, "lives at {} with her son", "12 N. Main St"),
    (Kind.ADDRESS, "lives at {} with her son", "PO Box 4411"),
    (Kind.ADDRESS, "wohnt {} mit Sohn", "Lindenstraße 14a"),
    (Kind.ADDRESS, "habite {} avec son fils", "12 rue de la Paix"),
    (Kind.ADDRESS, "Columbus, OH {}", "43215"),
    (Kind.ADDRESS, "London {}", "SW1A 2AA"),
    (Kind.BIRTH_DATE, "DOB {}", "3/5/1940"),
    (Kind.BIRTH_DATE, "D.O.B.: {}", "05 Mar 1940"),
    (Kind.BIRTH_DATE, "born on {} in Ohio", "March 5, 1940"),
    (Kind.BIRTH_DATE, "geb. {}", "05.03.1940"),
    (Kind.BIRTH_DATE, "née le {}", "5 mars 1940"),
    (Kind.BIRTH_DATE, "date of birth = {}", "1940-03-05"),
    (Kind.NAME, "Seen by Dr. {} today", "Alvarez"),
    (Kind.NAME, "Patient name: {}", "Maria Alvarez"),
    (Kind.DATE, "admitted on {} with", "2019-03-04"),
    (Kind.DATE, "admitted on {} with", "4 March 2019"),
    (Kind.AGE, "a {}-year-old woman", "93"),
]

CLEAN = [
    "BP 120/80, HR 72, RR 16, SpO2 98% on 2 L, T 37.2. Glucose 5.6 mmol/L (100 mg/dL).",
    "Take 2 tablets 3 times a day for 10 days; repeat in 6-8 weeks. Dose 0.5-1.0 mg/kg.",
    "NCT01234567 enrolled 1,200 patients; p = 0.0001, 95% CI 1.2-3.4, OR 2.15 (1.10-4.20).",
    "doi:10.1371/journal.pone.0000217 PMID 17299597, pages 1123-1145, vol. 12(4).",
    "ICD-10 E11.9, CPT 99213, LOINC 2345-7, SNOMED 44054006, RxNorm 860975.",
    "A 45-year-old man, L4-L5, C5/C6, T2N1M0, Gleason 3+4=7, EF 55-60%, pH 7.35.",
    "No calls. He has no phone. Patient: No. Doctor: Any contact with 3 or 4 sick people?",
    "Case 12 of group 3; study 4, sample 7, unit 5 and file 9 were excluded.",
    "Call 911 or 112, or phone 999.",
    "Version 1.2.3 of the tool; ratio 1:2:3; time 12:30:15.",
    "LDH=405.25, glucose=401.3 mg/dl; dose=40mg.po daily, ptt=40 sec.in all, n=40 pts.It was.",
    "Echo=3D, view=4C, stage=3C\nLDH=405.25\nnote=\nage=400.5",
    "Temperature 38 38 39 39 37 36 37 39 36, 36 36 38 36 37 38 36 37 36 38 36 37 38 39 degrees",
    "/".join(["Cohort_A", "patient_0012", "series_003", "AXIAL_T2_FLAIR_image_0001"] * 5),
    "000-00-0000 and 999999999 and 0000000000 are fillers.",
    "",
    " \n\t\r\n",
]


@pytest.mark.parametrize(("kind", "text", "value"), FOUND)
def test_found(kind: Kind, text: str, value: str) -> None:
    whole = text.format(value)
    found = [one for one in scan_text(whole) if one.kind is kind]
    assert found, [one.kind for one in scan_text(whole)]
    start = whole.index(value)
    assert any(one.start < start + len(value) and one.end > start for one in found)
    assert all(one.direct == kind.direct for one in found)


@pytest.mark.parametrize("text", CLEAN)
def test_nothing_direct_in_clean_text(text: str) -> None:
    assert [(one.kind, text[one.start : one.end]) for one in scan_text(text) if one.direct] == []


@pytest.mark.parametrize(
    "text",
    [
        "MRN\uff1a\uff10\uff10\uff14\uff12\uff13\uff11\uff17\uff18",
        "MRN: 00\u200b42\u00ad31\ufeff78",
        "MRN:\u00a000423178",
        "MRN: \u0660\u0660\u0664\u0662\u0663\u0661\u0667\u0668",
        "MRN: \u202e00423178\u202c",
        "MRN\u2028: 00423178",
    ],
)
def test_disguised_digits(text: str) -> None:
    found = [one for one in scan_text(text) if one.kind is Kind.RECORD_NUMBER]
    assert len(found) == 1
    assert 3 < found[0].start < found[0].end <= len(text)


def test_positions_count_characters_as_delivered() -> None:
    text = "Größe \ufb01n \U0001f600 call 440\u2011976\u20111128 now"
    (found,) = [one for one in scan_text(text) if one.direct]
    assert text[found.start : found.end] == "440\u2011976\u20111128"


MAIL = "jane.roe@example.org"


def packed(text: str, times: int = 1) -> str:
    for _ in range(times):
        text = base64.b64encode(text.encode()).decode()
    return text


ENCODED = [
    (Kind.RECORD_NUMBER, "MRN: &#48;&#x30;4&#50;3178"),
    (Kind.RECORD_NUMBER, "MRN&amp;#58; 0042&amp;amp;#51;178"),
    (Kind.RECORD_NUMBER, "MRN&#65306; &#65296;0423178"),
    (Kind.RECORD_NUMBER, "<td>MRN:</td><td class='n'>00423178</td>"),
    (Kind.RECORD_NUMBER, json.dumps(json.dumps(json.dumps({"mrn": "00423178"})))),
    (Kind.RECORD_NUMBER, f"MRN: {packed('00423178')}"),
    (Kind.RECORD_NUMBER, b"MRN: 00423178".hex()),
    (Kind.RECORD_NUMBER, packed("MRN: 00423178", 4)),
    (Kind.NATIONAL_ID, f"SSN={packed('219-09-9998')}"),
    (Kind.PHONE, "%34%34%30%2D976%2D1128"),
    (Kind.PHONE, "home 440-976-\n1128 after six"),
    (Kind.EMAIL, "jane.roe&amp;#64;example.org"),
    (Kind.EMAIL, "jane.roe&commat;example.org"),
    (Kind.EMAIL, "q=jane.roe%2540example.org"),
    (Kind.EMAIL, "jane.roe\\\\u0040example.org"),
    (Kind.EMAIL, "jane.roe\\x40example.org"),
    (Kind.EMAIL, "<b>jane</b>.roe<wbr>@example.org"),
    (Kind.EMAIL, f"see {packed(MAIL)} there"),
    (Kind.EMAIL, f"https://h.example/r/{packed(MAIL).rstrip('=')}"),
    (Kind.EMAIL, base64.urlsafe_b64encode(f"??>> {MAIL} \u00fc".encode()).decode()),
    (Kind.EMAIL, base64.b64encode(MAIL.encode("utf-16")).decode()),
    (Kind.EMAIL, "\n".join(textwrap.wrap(packed(f"{'x ' * 26}{MAIL} and more"), 76)) + "\nThanks"),
    (Kind.EMAIL, " ".join(f"{one:02X}" for one in MAIL.encode())),
    (Kind.EMAIL, f"0x{MAIL.encode().hex()}"),
    (Kind.EMAIL, MAIL.encode().hex()),
    (Kind.EMAIL, packed(f"Zo\u00e9 Roe, {MAIL}")),
    (Kind.RECORD_NUMBER, packed("\u00c4rztin Jane, MRN: 00423178")),
    (Kind.EMAIL, quote(packed("mail &#106;ane.roe&#64;example.org"))),
    (Kind.EMAIL, "jane.roe@exam=\r\nple.org"),
    (Kind.EMAIL, "jane.roe=40example.org"),
    (Kind.EMAIL, "JANE=40WARD7.EXAMPLE.ORG"),
    (Kind.EMAIL, "jane=2Eroe=40example=2Eorg"),
    (Kind.EMAIL, "=?utf-8?q?J=C3=A9r=C3=B4me_=3Cjane=40example=2Eorg=3E?="),
    (Kind.EMAIL, "=?iso-8859-1?Q?Zo=E9_=3Cjane=40exa?=\r\n =?iso-8859-1?Q?mple=2Eorg=3E?="),
    (Kind.RECORD_NUMBER, 'class=3D"a" MRN=3A 00423178'),
    (Kind.EMAIL, "jane.roe&#0000000064;example.org"),
    (Kind.EMAIL, "jane.roe&#x00000040;example.org"),
    (Kind.EMAIL, "write to jane.roe@\nexample.org"),
    (Kind.EMAIL, "write to jane.roe\n> @example.org"),
    (Kind.EMAIL, "write to jane.roe@exam\nple.org"),
    (Kind.EMAIL, "write to jane.roe@example.\n  org"),
    (Kind.EMAIL, "write to jane.roe @ example.org"),
    (Kind.EMAIL, "jane dot roe at example dot org"),
]


@pytest.mark.parametrize(("kind", "text"), ENCODED)
def test_what_is_encoded_is_read(kind: Kind, text: str) -> None:
    for whole in (text, f"seen today. {'fine. ' * 400}{text}; {'fine. ' * 400}"):
        found = [one for one in scan_text(whole) if one.kind is kind]
        assert found
        begin = whole.index(text)
        assert all(begin <= one.start < one.end <= begin + len(text) for one in found)


def test_a_position_is_that_of_what_was_encoded() -> None:
    text = f"&lt;p&gt; see {packed(MAIL)}; MRN&#58; &#48;0423178."
    found = [(one.kind, text[one.start : one.end]) for one in scan_text(text) if one.direct]
    assert found == [(Kind.EMAIL, packed(MAIL)), (Kind.RECORD_NUMBER, "&#48;0423178")]


def test_text_encoded_too_often_and_packed_files_are_unread() -> None:
    noise = base64.b64encode(hashlib.shake_256(b"x").digest(300)).decode()
    for text in (packed("well, that is all", 10), f"data:image/png;base64,{noise} end"):
        assert [one.kind for one in scan_text(text)] == [Kind.UNREADABLE]


def test_digests_and_sequences_are_no_packed_files() -> None:
    digest = hashlib.sha512(b"x").hexdigest()
    text = f"{digest} {digest.upper()} {'ACGTTGCA' * 60} sha512-{packed('x' * 60)} {'a-b-' * 90}"
    assert scan_text(text) == []


def test_no_telephone_number_is_left_out_for_the_lack_of_a_sign() -> None:
    """Presidio's recognizer is slow, and only asked where a number may be."""
    rng = random.Random(4)
    recognizers.engine()
    for _ in range(80):
        region = rng.choice(recognizers._Phone.REGIONS)  # pyright: ignore[reportPrivateUsage]
        number = phonenumbers.example_number_for_type(region, rng.choice([0, 1, 2, 4]))
        if number is None:
            continue
        value = phonenumbers.format_number(number, rng.choice([0, 1, 2]))
        text = f"{rng.choice(['at', 'phone', 'call', 'number'])} {value} {rng.choice(['', 'cell'])}"
        expected = recognizers.engine().analyze(
            text, "en", ["PHONE_NUMBER"], score_threshold=recognizers.MINIMUM_SCORE
        )
        found = [one for one in recognizers.found(text) if one.entity_type == "PHONE_NUMBER"]
        assert [(one.start, one.end) for one in found] == [
            (one.start, one.end) for one in expected
        ], text


def test_labels_in_other_lines_and_quotes() -> None:
    assert scan_text('"birthDate": "1940-03-05"')[0].kind is Kind.BIRTH_DATE
    assert scan_text("**MRN:** 00423178")[0].kind is Kind.RECORD_NUMBER
    assert scan_text("MRN:\n00423178")[0].kind is Kind.RECORD_NUMBER


def test_pseudonyms_are_no_record_numbers() -> None:
    text = "Patient ID: SUBJ-000123, MRN: 00423178"
    assert len(scan_text(text)) == 2
    found = scan_text(text, pseudonym_prefix="SUBJ-")
    assert [one.start for one in found] == [text.index("00423178")]


def test_overlaps_are_told_once() -> None:
    found = scan_text(
        "born on 1940-03-05; MRN: 440-976-1128; see https://a.org/patients/1?x=a@b.org"
    )
    assert [one.kind for one in found] == [Kind.BIRTH_DATE, Kind.RECORD_NUMBER, Kind.PERSONAL_URL]
    assert all(one.end <= two.start for one, two in pairwise(found))


def test_long_text_and_piece_borders() -> None:
    filler = "lorem ipsum dolor sit amet " * 60_000
    step = text_module.PIECE_CHARACTERS - text_module.OVERLAP_CHARACTERS
    marks = [step - 30, step - 2, text_module.PIECE_CHARACTERS - 8, 5 * step + 3, 1_400_000]
    text = filler
    for mark in marks:
        text = f"{text[:mark]} MRN: 00423178 {text[mark + 15 :]}"
    found = scan_text(text)
    assert [one.start for one in found] == [mark + 6 for mark in marks]
    assert {one.end - one.start for one in found} == {8}


@pytest.mark.parametrize(
    "text",
    [
        "1" * 60_000,
        "1-" * 30_000,
        "a@" * 30_000,
        "A" * 60_000,
        "Mr. A " * 10_000,
        "name: " * 10_000,
        "MRN " * 15_000,
        "12 Main " * 8_000,
        "(" * 60_000,
        "http://" * 8_000,
        "+1 (1) " * 8_000,
        "\u200b" * 60_000,
        ":" * 60_000,
        "2001:db8:" * 6_000,
        "\\" * 60_000,
        "&amp;" * 12_000,
        "%25" * 20_000,
        "<a " * 20_000,
        "ab" * 30_000 + "g",
        "Ab1/" * 15_000,
        "a dot " * 10_000,
        "a\n" * 20_000 + "@",
    ],
    ids=range(22),
)
def test_hostile_repetition_stays_quick(text: str) -> None:
    scan_text("warm")
    start = time.process_time()
    scan_text(text)
    assert time.process_time() - start < 20


@pytest.mark.parametrize("text", ["\ud800 MRN: 00423178", "x\0MRN: 00423178\0", "\U0010ffff" * 3])
def test_odd_characters(text: str) -> None:
    expected = [text.index("00423178")] if "MRN" in text else []
    assert [one.start for one in scan_text(text)] == expected


def test_a_failing_recognizer_is_no_clean_text(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(text: str) -> None:
        raise ValueError(f"cannot read {text!r}")

    monkeypatch.setattr(text_module, "_look", fail)
    with pytest.raises(ScanFailed) as caught:
        scan_text("the canary sings")
    assert "ValueError" in str(caught.value)
    assert "canary" not in str(caught.value)
    assert caught.value.__context__ is None
    assert caught.value.__cause__ is None


def test_a_pattern_given_up_is_no_clean_text(monkeypatch: pytest.MonkeyPatch) -> None:
    from presidio_analyzer import pattern_recognizer

    scan_text("warm")
    monkeypatch.setattr(pattern_recognizer, "REGEX_TIMEOUT_SECONDS", 1e-9)
    with pytest.raises(ScanFailed, match="TimeoutError"):
        scan_text("192.168.1.1 and more " * 20_000)


def test_presidio_logs_nothing(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG):
        scan_text("MRN: 00423178 and jane.roe@example.org")
    assert caplog.records == []
