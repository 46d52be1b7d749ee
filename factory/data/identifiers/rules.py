"""Our own rules: an expression whose group `value` is an identifier, told by its form or its label.

Presidio's recognizers know formats; notes write numbers behind labels: `MRN: 0042317`,
`DOB 3/5/1940`, `geb. 05.03.1940`. Labels may come from structured fields as well, written by
`flatten` as `patient.birthDate: 1940-03-05`. What each rule finds and misses is measured in
`tests/bench/bench_identifiers.py`.
"""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from factory.data.identifiers import check_digits, streets
from factory.data.identifiers.kinds import Kind


@dataclass(frozen=True, slots=True)
class Rule:
    """One way to tell one kind."""

    kind: Kind
    pattern: re.Pattern[str]
    check: Callable[[str], bool] | None = None
    """Whether a value of this form can be such a number."""

    trigger: re.Pattern[str] | None = None
    """What a text must hold for the rule to be tried at all, where that is quicker to see."""

    digits: int = 0
    """How many digits a text must have for the rule to match anywhere: most rows have few."""

    def matches(self, text: str, digits: int) -> Iterator[tuple[int, int]]:
        """Where its value stands in a text with so many digits."""
        if digits < self.digits or (self.trigger is not None and not self.trigger.search(text)):
            return
        for match in self.pattern.finditer(text):
            if self.check is None or self.check(match["value"]):
                yield match.span("value")


def rule(
    kind: Kind,
    pattern: str,
    check: Callable[[str], bool] | None = None,
    *,
    case: bool = False,
    trigger: str | None = None,
    digits: int = 0,
) -> Rule:
    """Compile a rule; letters match in either case unless `case` is set."""
    flags = re.VERBOSE | (re.NOFLAG if case else re.IGNORECASE)
    quick = re.compile(trigger, re.IGNORECASE) if trigger else None
    return Rule(kind, re.compile(pattern, flags), check, quick, digits)


_TO = r"""["'\]\)*_]{0,3} [ \t]{0,3}
  (?:(?:\#|no\b\.?|nr\b\.?|num(?:ber|éro|ero)?\b|id\b|code\b)[ \t]{0,3}){0,2}
  (?:\([^()\n]{0,20}\))?
  (?:\.value|\.line(?:\[\d+\])?)? ["']? \s{0,3}
  (?:is\b|was\b|of\b|at\b|[:=\#|-]){0,2} \s{0,3} ["'\[(*_]{0,3}\ {0,2}"""
"""What may stand between a label and its value."""

_DAY = r"(?:0?[1-9]|[12]\d|3[01])"
_MONTH = r"(?:0?[1-9]|1[0-2])"
_NAMED = (
    r"(?:jan(?:uary|uar|vier)?|feb(?:ruary|ruar)?|f[ée]vr(?:ier)?|mar(?:ch|s|z|zo)?|m[äa]rz|apr(?:il)?|"
    r"avr(?:il)?|may|mai|mayo|june?|juni|juin|july?|juli|juillet|aug(?:ust)?|ao[ûu]t|"
    r"sep(?:t(?:ember|embre)?)?|o[ck]t(?:ober|obre)?|nov(?:ember|embre)?|de[cz](?:ember)?|"
    r"d[ée]c(?:embre)?|enero|febrero|abril|junio|julio|agosto|septiembre|octubre|noviembre|diciembre)"
)
_YEAR = r"(?:(?:18|19|20)\d\d)"
DATE = rf"""(?:
    {_YEAR}[-/.]{_MONTH}[-/.]{_DAY}
  | (?:{_DAY}[-/.]{_MONTH}|{_MONTH}[-/.]{_DAY})[-/.](?:{_YEAR}|\d\d)
  | {_DAY}(?:st|nd|rd|th|\.)?[ -]{{0,2}}(?:of\ |de\ )?
      {_NAMED}\.?,?[ -]{{0,2}}(?:de\ )?(?:{_YEAR}|'?\d\d)
  | {_NAMED}\.?\ {{1,2}}{_DAY}(?:st|nd|rd|th)?,?\ {{1,2}}{_YEAR}
  | {_YEAR}(?:0[1-9]|1[0-2])(?:0[1-9]|[12]\d|3[01])
)(?![\d])"""
_NUMBER = (
    r"(?P<value>(?=[\w./-]{0,12}\d[\w./-]{0,12}\d[\w./-]{0,12}\d)[A-Z]{0,5}[-./]?\d[\w-]{2,22}\w)"
)
"""An identifier behind a label: up to five letters, then digits, at least three of them in all."""

_BIRTH = r"""(?<![A-Za-z])(?:d\.?\ ?o\.?\ ?b\.?|
  (?:date|year|day)\ of\ birth|birth[ _-]?(?:date|day)|
  born(?:\ on)?|geb(?:oren|urtsdatum)?\.?(?:\ am)?|n[ée]e?\ le|date\ de\ naissance|
  fecha\ de\ nacimiento|
  nacid[oa]\ el|data\ di\ nascita|geboortedatum|f[öo]delsedatum|data\ de\ nascimento)"""

_RECORD = r"""(?<![A-Za-z])(?:m\.?r\.?n\.?|mr\ ?\#|med(?:ical)?\.?\ rec(?:ord)?s?\.?|
  (?:patient|pt|pat|case|chart|hospital|hosp|clinic|unit|admission|encounter|visit|episode|accession|
     specimen|sample|lab|requisition|order|study|subject|health\ record|record|file|document)
    [ ._-]{0,2}(?:id(?:entifier)?|no|nr|num(?:ber)?|\#|mrn)|
  accession|csn|fin|empi|identifier(?:\[\d+\])?\.value|(?:patienten?|fall|akten)-?(?:nummer|nr)|
  num[ée]ro\ de\ dossier|n[°ºo]\.?\ (?:de\ )?(?:dossier|historia|expediente)|
  historia\ cl[íi]nica|\bipp|\bnhc)"""

_ACCOUNT = r"""(?<![A-Za-z])(?:acc(?:oun)?t|policy|member(?:ship)?|subscriber|beneficiary|
  insurance|insured|health\ plan|group|claim|guarantor|invoice|billing|medicaid|medicare|
  versicherten|kontonummer)
  [ ._-]{0,2}
  (?:(?:account|plan|policy|member|id(?:entifier)?|no|nr|num(?:ber)?|nummer|\#)[ ._-]{0,2}){0,3}"""

_DEVICE = r"""(?<![A-Za-z])(?:serial(?:[ _]?(?:no|number|num|\#))?|s/n|
  device[ _](?:id(?:entifier)?|no|number|serial)|
  implant\ (?:id|no|number|serial)|lot\ (?:no|number|\#)|model/serial|imei|udi|
  gerätenummer|seriennummer)"""

_LICENCE = r"""(?<![A-Za-z])(?:(?:driver'?s?|driving|medical|state|nursing)\ licen[cs]e|
  d\.?l\.?\ ?\#|licen[cs]e(?:\ plate|\ tag)?\ ?(?:no|number|\#|:)|passport|number\ plate|
  vehicle\ reg(?:istration)?|
  license\ plate|npi|dea|visa\ (?:no|number)|certificate\ (?:no|number)|
  führerschein|personalausweis)"""

_NATIONAL = r"""(?<![A-Za-z])(?:s\.?s\.?n\.?|social\ sec(?:urity)?|ss\#|nhs|
  national\ (?:id(?:entity)?|insurance)|
  sin|tax\ id|steuer-?id|personnummer|fødselsnummer|cpr|bsn|burgerservicenummer|nir|
  num[ée]ro\ de\ s[ée]curit[ée]\ sociale|pesel|dni|nif|codice\ fiscale|aadhaar|curp|cpf|rut|ahv)"""

_TELEPHONE = r"""(?<![A-Za-z])(?:(?:tele)?phone|tel|t[ée]l[ée]fono?|telefon|
  mobile?|cell(?:phone)?|fax|pager|beeper|
  ph|handy|whatsapp|call(?:\ (?:back|him|her|me|us|at|on|the\ office))?|
  contact|reach(?:ed|able)?(?:\ at)?|
  telecom(?:\[\d+\])?\.value|ext(?:ension)?)"""


_BREAK = r"-?[ \t]*\r?\n[ \t>]{0,8}"
"""Where a long word is broken over two lines."""


def _labelled(kind: Kind, label: str, value: str = _NUMBER, digits: int = 3) -> Rule:
    return rule(kind, rf"{label}\.?{_TO}{value}", digits=digits)


RULES: tuple[Rule, ...] = (
    _labelled(Kind.BIRTH_DATE, _BIRTH, rf"(?P<value>{DATE})"),
    _labelled(Kind.RECORD_NUMBER, _RECORD),
    _labelled(Kind.ACCOUNT_NUMBER, _ACCOUNT),
    _labelled(Kind.DEVICE_NUMBER, _DEVICE),
    rule(
        Kind.DEVICE_NUMBER,
        r"(?P<value>\(01\)\ ?\d{14}(?:\ ?\(\d\d\)\ ?[\w-]+)*)",
        trigger=r"\(01\)",
    ),
    rule(Kind.DEVICE_NUMBER, r"\b(?P<value>[A-HJ-NPR-Z\d]{17})\b", check_digits.vehicle, case=True),
    _labelled(Kind.LICENCE_NUMBER, _LICENCE),
    rule(
        Kind.LICENCE_NUMBER,
        r"\b(?P<value>[ABCDEFGHJKLMPRSTUX][A-Z9]\d{7})\b",
        check_digits.dea,
        case=True,
        digits=7,
    ),
    _labelled(
        Kind.NATIONAL_ID,
        _NATIONAL,
        r"(?P<value>[A-Z]{0,6}\d[\dA-Z]*(?:[ .-][\dA-Z]{1,6}){0,5})(?<=\w)",
        digits=1,
    ),
    rule(
        Kind.NATIONAL_ID,
        r"(?<![\d.-])(?P<value>\d{3}([- ])\d{2}\2\d{4})(?![\d-]|\.\d)",
        check_digits.social_security,
        digits=9,
    ),
    rule(
        Kind.NATIONAL_ID,
        r"(?<![\d.-])(?P<value>\d{3}([ ])\d{3}\2\d{4})(?![\d-]|\.\d)",
        check_digits.nhs,
        digits=10,
    ),
    rule(
        Kind.NATIONAL_ID,
        r"(?<![\d.-])(?P<value>\d{3}([- ])\d{3}\2\d{3})(?![\d-]|\.\d)",
        check_digits.luhn,
        digits=9,
    ),
    rule(
        Kind.NATIONAL_ID,
        r"(?<![\d.-])(?P<value>[12]\ ?\d\d\ ?(?:0[1-9]|1[0-2]|[2-9]\d)\ ?(?:\d\d|2[AB])"
        r"\ ?\d{3}\ ?\d{3}\ ?\d\d)(?!\d)",
        check_digits.french,
        digits=11,
    ),
    rule(
        Kind.NATIONAL_ID,
        r"(?<![\d.-])(?P<value>\d{6}-\d{4})(?![\d-]|\.\d)",
        check_digits.nordic,
        digits=10,
    ),
    rule(
        Kind.NATIONAL_ID,
        r"(?<![\d.-])(?P<value>\d{6}\ ?\d{5})(?![\d-]|\.\d)",
        check_digits.nordic,
        digits=11,
    ),
    rule(
        Kind.PHONE,
        r"(?<![\w.+-])(?P<value>(?:\+?1[-. ]{0,2})?(?:\(\d{3}\)[ ]?|[2-9]\d\d[-. /]|"
        r"\d{3}(?=[-.]\d{3}[-.])[-.])"
        r"(?:[2-9]\d\d[-. ]|\d{3}[-.])\d{4})(?![\w-]|\.\d)(?:\s?(?:x|ext\.?)\s?\d{1,5})?",
        digits=10,
    ),
    rule(
        Kind.PHONE,
        r"(?<![\w.+])(?P<value>(?=\+(?:[ ()./-]{0,2}\d){8})\+\d{1,3}"
        r"(?:[ ./-]{0,2}\(?\d{1,5}\)?){2,6})(?<=\d)(?!\d)",
        digits=8,
    ),
    _labelled(
        Kind.PHONE,
        _TELEPHONE,
        r"(?P<value>(?=\+?\(?(?:\d[ ()./-]{0,3}){4})\+?\(?\d{1,5}\)?"
        r"(?:[ ./-]{0,3}\(?\d{2,5}\)?){1,5})(?<=\d{3})(?![\d%]|[./-]\d)",
    ),
    rule(
        Kind.EMAIL,
        r"(?P<value>[\w.+-]{1,64}\s?(?:\(at\)|\[at\]|\{at\})\s?[\w-]{1,63}(?:\s?(?:\.|\(dot\)|\[dot\])\s?[\w-]{2,63}){1,4})",
        trigger=r"[(\[{]at",
    ),
    rule(
        Kind.EMAIL,
        rf"(?P<value>[\w.+-]{{1,64}}(?:{_BREAK})?@(?:{_BREAK})?[\w-]{{1,63}}(?:{_BREAK}[\w-]{{1,30}})?"
        rf"(?:(?:{_BREAK})?\.(?:{_BREAK})?[\w-]{{2,63}}){{1,4}})",
        trigger="@",
    ),
    rule(
        Kind.EMAIL,
        r"(?P<value>[\w.+-]{2,64}\ {0,2}@\ {0,2}[\w-]{2,63}(?:\.[\w-]{2,63}){0,3}"
        r"\.(?:com|org|net|edu|gov|mil|int|info|eu|us|ca|uk|ie|au|nz|in|de|at|ch|fr|be|nl|es|pt|it|se|no|dk|fi|pl))\b",
        trigger="@",
    ),
    rule(
        Kind.EMAIL,
        r"(?P<value>[\w+-]{1,64}(?:\ dot\ [\w+-]{1,64}){0,3}\ at\ [\w-]{2,63}"
        r"(?:\ dot\ [\w-]{2,63}){1,3})",
        trigger=r"\ dot\ ",
    ),
    rule(
        Kind.PERSONAL_URL,
        r"""(?P<value>(?:https?://|ftp://|www\.)[^\s"'<>]{0,200}?
          (?:/~|[/=](?:patients?|users?|members?|people|profiles?|in|u)/|[?&](?:mrn|pid|patient\w*|name|dob|ssn|email)=
             |//[^/\s]*@|(?:facebook|linkedin|instagram|twitter|tiktok|x)\.com/)[^\s"'<>]{1,200})""",
        trigger=r"://|www\.",
    ),
    rule(
        Kind.URL, r"(?P<value>(?:https?://|ftp://|\bwww\.)[^\s\"'<>]{3,300})", trigger=r"://|www\."
    ),
    *streets.patterns(rule),
    rule(
        Kind.NAME,
        r"""\b(?:Mr|Mrs|Ms|Miss|Mx|Dr|Drs|Prof|Professor|Sr|Sra|Herr|Frau|Mme|M)\b\.?\ {1,2}
          (?P<value>[A-Z][\w'-]+(?:\ {1,2}[A-Z][\w'.-]*){0,3})""",
        case=True,
    ),
    rule(
        Kind.NAME,
        r"""(?<![A-Za-z])(?:(?:[Pp]atient|[Pp]t|PATIENT|[Ff]ull|[Ff]irst|[Ll]ast|[Ss]ur|[Ff]amily|[Gg]iven|
          [Mm]aiden|FIRST|LAST|FULL)[ _]?[Nn](?:ame|AME)s?|[Nn]ame|NAME|
          name(?:\[\d+\])?\.(?:family|text|given(?:\[\d+\])?))["']?\ ?[:=]\s{0,3}["'\[]{0,2}
          (?P<value>[A-Z][\w'-]+(?:[,\ ]{1,2}[A-Z][\w'.-]*){0,4})""",
        case=True,
    ),
    rule(
        Kind.NAME,
        r"\b(?:PATIENT|Patient|Pt)\ ?[:=]\ {0,3}"
        r"(?P<value>(?!(?:Yes|Yeah|No|Nope|Well|Oh|Okay|Ok|So|My|And|But|Not|Just|Thank|Hi|Hello)\b)"
        r"[A-Z][a-z'-]+(?:,?\ {1,2}[A-Z][a-z'-]+\.?){1,4})",
        case=True,
    ),
    rule(Kind.DATE, rf"\b(?=[adefjmnos])(?P<value>{DATE})(?![-/.]?\d)", trigger=r"\d{4}"),
    rule(Kind.DATE, rf"(?<![\d/.-])(?=[\dadefjmnos])(?P<value>{DATE})(?![-/.]?\d)", digits=3),
    rule(
        Kind.AGE,
        r"(?<![\d.])(?P<value>9\d|1[0-2]\d)(?=[\s-]{0,2}(?:y/?o\b|years?[\s-]old|yrs?[\s-]old|year-old|-year|jährig|ans\b))",
        digits=2,
    ),
)


def names_a_number(prefix: str) -> bool:
    """Whether a number behind this is taken for a direct identifier.

    So is one behind its last words, `HOSP-SSN-`; behind the end of a word only a record number,
    `XMRN`: `TEXT-` ends in no extension.
    """
    for start in range(len(prefix) - 2):
        inside = prefix[max(0, start - 1) : start].isalpha()
        between = ("", " ", ": ", "-")
        text = "\n".join(f"{prefix[start:]}{one}00423178{'.' * 30}" for one in between)
        for one in RULES:
            asked = one.kind is Kind.RECORD_NUMBER if inside else one.kind.direct
            if asked and any(True for _ in one.matches(text, len(text))):
                return True
    return False
