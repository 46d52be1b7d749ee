"""The recognizers that look at text: an explicit list of Presidio's, and `rules` beside them.

Presidio's own defaults would load a language model, download one if it is missing, and fetch a list
of top-level domains. Nothing here does: the spaCy pipeline is blank, recognizers are named one by
one, and addresses of e-mail are told by their form alone. Without a model, a name is only found
behind a title or a label.
"""

import logging
from functools import cache
from typing import TYPE_CHECKING, Any, override

import spacy
from presidio_analyzer import AnalyzerEngine, LocalRecognizer, RecognizerRegistry, RecognizerResult
from presidio_analyzer import predefined_recognizers as presidio
from presidio_analyzer.nlp_engine import SpacyNlpEngine
from spacy.tokenizer import Tokenizer

from factory.data.identifiers.kinds import Kind
from factory.data.identifiers.rules import RULES

if TYPE_CHECKING:
    from presidio_analyzer.nlp_engine import NlpArtifacts

LANGUAGE = "en"
"""What Presidio files recognizers under; the patterns are of many languages."""

MINIMUM_SCORE = 0.5
"""Presidio's bare digit groups lie below; `rules` finds those behind their labels."""

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
    **{kind.name: kind for kind in Kind},
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


class _Rules(LocalRecognizer):
    """Our own rules as one recognizer."""

    def __init__(self) -> None:
        super().__init__(
            supported_entities=sorted({rule.kind.name for rule in RULES}),
            supported_language=LANGUAGE,
            name="Rules",
        )

    @override
    def load(self) -> None:
        """Nothing to load."""

    @override
    def analyze(
        self, text: str, entities: list[str], nlp_artifacts: "NlpArtifacts | None" = None
    ) -> list[RecognizerResult]:
        results: list[RecognizerResult] = []
        for rule in RULES:
            if rule.trigger is not None and rule.trigger.search(text) is None:
                continue
            for match in rule.pattern.finditer(text):
                if rule.check is None or rule.check(match["value"]):
                    start, end = match.span("value")
                    results.append(RecognizerResult(rule.kind.name, start, end, 1.0))
        return results


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
    ours: list[Any] = [
        _Rules(),
        _Email(),
        _Phone(),
        presidio.CreditCardRecognizer(),
        presidio.IbanRecognizer(),
        presidio.IpRecognizer(),
        presidio.MacAddressRecognizer(),
        presidio.UsSsnRecognizer(),
        presidio.UsItinRecognizer(),
        presidio.UsMbiRecognizer(),
        presidio.UkNinoRecognizer(),
        presidio.AuMedicareRecognizer(),
        presidio.AuTfnRecognizer(),
        *(
            recognizer(supported_language=LANGUAGE)
            for recognizer in (
                presidio.EsNifRecognizer,
                presidio.EsNieRecognizer,
                presidio.ItFiscalCodeRecognizer,
                presidio.PlPeselRecognizer,
                presidio.FiPersonalIdentityCodeRecognizer,
                presidio.InAadhaarRecognizer,
                presidio.SgFinRecognizer,
            )
        ),
    ]
    registry = RecognizerRegistry(recognizers=ours, supported_languages=[LANGUAGE])
    return AnalyzerEngine(
        registry=registry, nlp_engine=_BlankPipeline(), supported_languages=[LANGUAGE]
    )


def _long(value: str) -> bool:
    return sum(one.isdigit() for one in value) >= 9
