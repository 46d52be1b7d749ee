"""The recognizers of Presidio that look at text, an explicit list; `rules` has our own.

Presidio's own defaults would load a language model, download one if it is missing, and fetch a list
of top-level domains. Nothing here does: the spaCy pipeline is blank, recognizers are named one by
one, and addresses of e-mail are told by their form alone. Without a model, a name is only found
behind a title or a label.
"""

import logging
import re
from collections.abc import Callable
from functools import cache
from typing import Any, override

import spacy
from presidio_analyzer import AnalyzerEngine, EntityRecognizer, RecognizerRegistry, RecognizerResult
from presidio_analyzer import predefined_recognizers as presidio
from presidio_analyzer.context_aware_enhancers import LemmaContextAwareEnhancer
from presidio_analyzer.nlp_engine import SpacyNlpEngine
from spacy.tokenizer import Tokenizer

from factory.data.identifiers.kinds import Kind

LANGUAGE = "en"
"""What Presidio files recognizers under; the patterns are of many languages."""

MINIMUM_SCORE = 0.5
"""Presidio's bare digit groups lie below; `rules` finds those behind their labels."""

CONTEXT_SCORE = 0.36
"""What words around a find add to its score at most: 0.35, and a hair for the arithmetic."""

type Sign = Callable[[str], object]
"""Whether a text may hold something for a recognizer."""

ENTITIES: dict[str, Kind] = {
    "EMAIL_ADDRESS": Kind.EMAIL,
    "PHONE_NUMBER": Kind.PHONE,
    "CREDIT_CARD": Kind.CARD_NUMBER,
    "IBAN_CODE": Kind.ACCOUNT_NUMBER,
    "IP_ADDRESS": Kind.NETWORK_ADDRESS,
    "MAC_ADDRESS": Kind.NETWORK_ADDRESS,
    "US_SSN": Kind.NATIONAL_ID,
    "US_ITIN": Kind.NATIONAL_ID,
    "US_MBI": Kind.NATIONAL_ID,
    "UK_NINO": Kind.NATIONAL_ID,
    "AU_MEDICARE": Kind.NATIONAL_ID,
    "AU_TFN": Kind.NATIONAL_ID,
    "ES_NIF": Kind.NATIONAL_ID,
    "ES_NIE": Kind.NATIONAL_ID,
    "IT_FISCAL_CODE": Kind.NATIONAL_ID,
    "PL_PESEL": Kind.NATIONAL_ID,
    "FI_PERSONAL_IDENTITY_CODE": Kind.NATIONAL_ID,
    "IN_AADHAAR": Kind.NATIONAL_ID,
    "SG_NRIC_FIN": Kind.NATIONAL_ID,
}
"""What recognizers call their findings."""


class _Email(presidio.EmailRecognizer):
    """Presidio's asks a downloaded list whether a domain exists; `@ward.local` counts here."""

    @override
    def validate_result(  # pyright: ignore[reportIncompatibleMethodOverride]  as its base allows
        self, pattern_text: str
    ) -> None:
        return None


class _Phone(presidio.PhoneRecognizer):
    """Numbers that are valid in a region's plan and written like telephone numbers."""

    REGIONS = ("GB", "DE", "FR", "ES", "IT", "NL", "IN", "AU")

    def __init__(self) -> None:
        super().__init__(supported_regions=self.REGIONS)

    @override
    def analyze(
        self, text: str, entities: list[str], nlp_artifacts: Any = None
    ) -> list[RecognizerResult]:
        found = super().analyze(text, entities, nlp_artifacts)
        for result in found:
            value = text[result.start : result.end]
            if value[0] in "+(0" and any(mark in value for mark in " -/)") and _long(value):
                result.score = MINIMUM_SCORE
        return found


class _BlankPipeline(SpacyNlpEngine):
    """Words between spaces and nothing else.

    spaCy's own tokenizer takes minutes for a long run of brackets, and nothing uses its tokens.
    """

    def __init__(self) -> None:
        super().__init__()
        pipeline = spacy.blank(LANGUAGE)
        pipeline.tokenizer = Tokenizer(pipeline.vocab)
        self.nlp = {LANGUAGE: pipeline}


class TimedOut(logging.Filter):
    """Keeps Presidio's log records from leaving, and remembers that a pattern was given up.

    Presidio logs a pattern that took too long and goes on without it: text would pass unread.
    """

    def __init__(self) -> None:
        super().__init__()
        self.count = 0

    @override
    def filter(self, record: logging.LogRecord) -> bool:
        self.count += "timed out" in str(record.msg)
        return False


@cache
def timed_out() -> TimedOut:
    """The filter on Presidio's logger; there is one."""
    listener = TimedOut()
    logging.getLogger("presidio-analyzer").addFilter(listener)
    return listener


@cache
def engine() -> AnalyzerEngine:
    """Presidio's engine with these recognizers, made once per process."""
    timed_out()
    ours: list[Any] = [one for _, one in _recognizers()]
    registry = RecognizerRegistry(recognizers=ours, supported_languages=[LANGUAGE])
    return AnalyzerEngine(
        registry=registry, nlp_engine=_BlankPipeline(), supported_languages=[LANGUAGE]
    )


@cache
def _recognizers() -> list[tuple[Sign, EntityRecognizer]]:
    """Each with what a text must hold for it to find anything, whatever it says of the find.

    The sign is as weak as it may be: it saves time on rows without numbers, and judges nothing.
    """
    return [
        (_sign("@"), _Email()),
        (_sign(r"\.\d|:[\da-f:]"), presidio.IpRecognizer()),
        (_sign(r"[:.-][\da-f]"), presidio.MacAddressRecognizer()),
        (_digits(11), presidio.CreditCardRecognizer()),
        (_sign(r"[a-z]{2}\d\d"), presidio.IbanRecognizer()),
        (_digits(9), presidio.UsSsnRecognizer()),
        (_digits(9), presidio.UsItinRecognizer()),
        (_sign(r"\d[a-z]"), presidio.UsMbiRecognizer()),
        (_digits(6), presidio.UkNinoRecognizer()),
        (_digits(9), presidio.AuMedicareRecognizer()),
        (_digits(9), presidio.AuTfnRecognizer()),
        (_digits(7), _of(presidio.EsNifRecognizer)),
        (_digits(7), _of(presidio.EsNieRecognizer)),
        (_sign(r"\w{15}"), _of(presidio.ItFiscalCodeRecognizer)),
        (_digits(11), _of(presidio.PlPeselRecognizer)),
        (_digits(6), _of(presidio.FiPersonalIdentityCodeRecognizer)),
        (_digits(12), _of(presidio.InAadhaarRecognizer)),
        (_digits(7), _of(presidio.SgFinRecognizer)),
        (_telephone(), _Phone()),  # the slowest by far
    ]


def _digits(number: int) -> Sign:
    """So many digits with no word between them, and no more than a few signs."""
    return re.compile(rf"\d(?:[\WxX]{{0,9}}\d){{{number - 1}}}").search


def _sign(pattern: str) -> Sign:
    return re.compile(pattern, re.IGNORECASE).search


def _telephone() -> Sign:
    """Nine digits behind a plus, a bracket or a zero, or five and a word that Presidio looks for.

    `_Phone` keeps no other number: a bare one only counts beside such a word.
    """
    told = re.compile(r"[+(0](?:[^\d\n]{0,12}\d){8}").search
    bare = re.compile(r"\d(?:[^\d\n]{0,12}\d){4}").search
    words = re.compile("|".join(presidio.PhoneRecognizer.CONTEXT), re.IGNORECASE).search
    return lambda text: told(text) or (bare(text) and words(text))


def _of(recognizer: Any) -> EntityRecognizer:
    return recognizer(supported_language=LANGUAGE)


def found(text: str) -> list[RecognizerResult]:
    """What Presidio finds in a text.

    Words around a find can make it count that would not by itself. They are only looked up, which
    takes longer than the rest, where a find is near enough and there are such words.
    """
    nothing: Any = None
    results: list[RecognizerResult] = []
    undecided = False
    lower = text.lower()
    for sign, one in _recognizers():
        if sign(text):
            here = one.analyze(text, one.supported_entities, nothing)
            results += here
            undecided = undecided or (
                any(MINIMUM_SCORE - CONTEXT_SCORE <= each.score < MINIMUM_SCORE for each in here)
                and any(word.lower() in lower for word in one.context or ())
            )
    if undecided:
        words = engine().nlp_engine.process_text(text, LANGUAGE)
        recognizers = [one for _, one in _recognizers()]
        results = LemmaContextAwareEnhancer().enhance_using_context(
            text, results, words, recognizers
        )
    return [one for one in results if one.score >= MINIMUM_SCORE]


def _long(value: str) -> bool:
    return sum(one.isdigit() for one in value) >= 9
