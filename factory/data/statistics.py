"""Statistics: what a version of samples consists of, for its card.

They are sums, so shards counted apart and merged in any order give the same facts as one count.
They are facts about a version and no part of it: they decide no version id. How tokens are counted
is in `tokens`, how languages are told in `language`; what the card looks like is in
`factory.control.card`.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Self

from factory.data import language, tokens
from factory.data.bins import Bins
from factory.data.kinds import Conversation, ImageText, Message
from factory.data.sample import Sample

FORMAT = 1
"""Form of the facts. Another one is not shown, rather than misread."""


@dataclass(slots=True)
class Measure:
    """How much text there is of one kind, or in one role."""

    count: int = 0
    """Samples of the kind, messages in the role."""

    characters: int = 0
    tokens: int = 0
    calls: int = 0
    """Calls of tools."""

    trained: int = 0
    """Messages that carry loss."""

    trained_tokens: int = 0

    def add(self, other: "Measure") -> None:
        """Count in what another one has counted."""
        self.count += other.count
        self.characters += other.characters
        self.tokens += other.tokens
        self.calls += other.calls
        self.trained += other.trained
        self.trained_tokens += other.trained_tokens


type Measures = dict[str, Measure]


@dataclass
class Statistics:
    """What was counted so far. `rows` is about how many there will be in all shards together."""

    rows: int = 0
    """Decides how many samples are asked for their language; the same for all that are merged."""

    kinds: Measures = field(default_factory=dict[str, Measure])
    roles: Measures = field(default_factory=dict[str, Measure])
    """Of the messages of conversations."""

    lengths: Bins = field(default_factory=Bins)
    """Tokens of a sample."""

    turns: Bins = field(default_factory=Bins)
    """Messages of a conversation."""

    images: Bins = field(default_factory=Bins)
    """Images of a sample that can have some; one that two samples show counts twice."""

    languages: Counter[str] = field(default_factory=Counter[str])
    licenses: Counter[str] = field(default_factory=Counter[str])

    def add(self, sample: Sample) -> None:
        """Count a sample in."""
        content = sample.content
        self.licenses[sample.license] += 1
        if isinstance(content, Conversation | ImageText):
            self.images.add(len(content.pictures))
        if isinstance(content, Conversation):
            measure = self._conversation(content)
        else:
            measure = _measure(content.texts)
        self.lengths.add(measure.tokens)
        _add(self.kinds, sample.kind, measure)
        if language.sampled(sample.id, self.rows):
            self.languages[language.language(language.beginning(_prose(sample)))] += 1

    def merge(self, other: "Statistics") -> None:
        """Count in what another one has counted.

        Raises:
            ValueError: they chose other samples for the languages.
        """
        if self.rows != other.rows:
            raise ValueError(
                f"statistics for {self.rows} rows cannot be merged with those for {other.rows}: "
                "give both the rows of the whole dataset"
            )
        for mine, theirs in ((self.kinds, other.kinds), (self.roles, other.roles)):
            for name, measure in theirs.items():
                _add(mine, name, measure)
        self.lengths.merge(other.lengths)
        self.turns.merge(other.turns)
        self.images.merge(other.images)
        self.languages += other.languages
        self.licenses += other.licenses

    def facts(self) -> dict[str, Any]:
        """As JSON; `from_facts` reads it."""
        return {
            "format": FORMAT,
            "tokenizer": tokens.TOKENIZER,
            "rows": self.rows,
            "kinds": _facts(self.kinds),
            "roles": _facts(self.roles),
            "lengths": self.lengths.facts(),
            "turns": self.turns.facts(),
            "images": self.images.facts(),
            "languages": dict(sorted(self.languages.items())),
            "licenses": dict(sorted(self.licenses.items())),
        }

    @classmethod
    def from_facts(cls, facts: Mapping[str, Any]) -> Self:
        """The inverse of `facts`.

        Raises:
            ValueError: they have another form, or count tokens of another tokenizer.
        """
        form = (facts.get("format"), facts.get("tokenizer"))
        if form != (FORMAT, tokens.TOKENIZER):
            raise ValueError(f"statistics of the form {form}, not {(FORMAT, tokens.TOKENIZER)}")
        return cls(
            rows=facts["rows"],
            kinds={name: Measure(**measure) for name, measure in facts["kinds"].items()},
            roles={name: Measure(**measure) for name, measure in facts["roles"].items()},
            lengths=Bins.from_facts(facts["lengths"]),
            turns=Bins.from_facts(facts["turns"]),
            images=Bins.from_facts(facts["images"]),
            languages=Counter(facts["languages"]),
            licenses=Counter(facts["licenses"]),
        )

    def _conversation(self, content: Conversation) -> Measure:
        whole = _measure([content.tools or ""])
        self.turns.add(len(content.messages))
        for message in content.messages:
            measure = _message(message)
            _add(self.roles, message.role, measure)
            whole.add(measure)
        whole.count = 1
        return whole


def _message(message: Message) -> Measure:
    calls = [text for call in message.tool_calls for text in (call.name, call.arguments)]
    measure = _measure([message.text, *calls])
    measure.calls = len(message.tool_calls)
    if message.trained:
        measure.trained, measure.trained_tokens = 1, measure.tokens
    return measure


def _measure(texts: Iterable[str]) -> Measure:
    characters = length = 0
    for text in texts:
        characters += len(text)
        length += tokens.count(text)
    return Measure(1, characters, length)


def _prose(sample: Sample) -> list[str]:
    """What a person wrote: neither declarations of functions nor their results."""
    content = sample.content
    if isinstance(content, Conversation):
        return [one.text for one in content.messages if one.role in ("user", "assistant")]
    return list(content.texts)


def _add(into: Measures, name: str, measure: Measure) -> None:
    into.setdefault(name, Measure()).add(measure)


def _facts(measures: Measures) -> dict[str, dict[str, int]]:
    """What is zero is left out."""
    return {
        name: {what: number for what, number in asdict(one).items() if number}
        for name, one in sorted(measures.items())
    }
