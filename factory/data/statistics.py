"""Statistics: what a version of samples consists of, for its card.

They are sums, so shards counted apart and merged in any order give the same facts as one count.
They are facts about a version and no part of it: they decide no version id. How tokens are counted
is in `tokens`, how languages are told in `language`; what the card looks like is in
`factory.control.card`.
"""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Self

from factory.data import language, tokens
from factory.data.bins import Bins
from factory.data.kinds import Conversation, ImageText, Message
from factory.data.sample import Sample

FORMAT = 1
"""Form of the facts. Another one is not shown, rather than misread."""

MEASURES = ("count", "characters", "tokens")


@dataclass
class Statistics:
    """What was counted so far. `rows` is about how many there will be in all shards together."""

    rows: int = 0
    """Decides how many samples are asked for their language; the same for all that are merged."""

    kinds: dict[str, Counter[str]] = field(default_factory=dict[str, Counter[str]])
    """Samples, characters, tokens by kind."""

    roles: dict[str, Counter[str]] = field(default_factory=dict[str, Counter[str]])
    """Messages, characters, tokens, calls by role, and how much of it carries loss."""

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
            measure = _measure(*content.texts)
        self.lengths.add(measure["tokens"])
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
            "kinds": _sorted(self.kinds),
            "roles": _sorted(self.roles),
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
            kinds={name: Counter(measure) for name, measure in facts["kinds"].items()},
            roles={name: Counter(measure) for name, measure in facts["roles"].items()},
            lengths=Bins.from_facts(facts["lengths"]),
            turns=Bins.from_facts(facts["turns"]),
            images=Bins.from_facts(facts["images"]),
            languages=Counter(facts["languages"]),
            licenses=Counter(facts["licenses"]),
        )

    def _conversation(self, content: Conversation) -> Counter[str]:
        whole = _measure(content.tools or "")
        self.turns.add(len(content.messages))
        for message in content.messages:
            measure = _message(message)
            _add(self.roles, message.role, measure)
            whole["characters"] += measure["characters"]
            whole["tokens"] += measure["tokens"]
        return whole


def _message(message: Message) -> Counter[str]:
    calls = (text for call in message.tool_calls for text in (call.name, call.arguments))
    measure = _measure(message.text, *calls)
    if message.tool_calls:
        measure["calls"] = len(message.tool_calls)
    if message.trained:
        measure.update({f"trained {name}": measure[name] for name in MEASURES if measure[name]})
    return measure


def _measure(*texts: str) -> Counter[str]:
    return Counter(count=1, characters=sum(map(len, texts)), tokens=sum(map(tokens.count, texts)))


def _prose(sample: Sample) -> list[str]:
    """What a person wrote: neither declarations of functions nor their results."""
    content = sample.content
    if isinstance(content, Conversation):
        return [one.text for one in content.messages if one.role in ("user", "assistant")]
    return list(content.texts)


def _add(into: dict[str, Counter[str]], name: str, measure: Counter[str]) -> None:
    into.setdefault(name, Counter()).update(measure)


def _sorted(measures: Mapping[str, Counter[str]]) -> dict[str, dict[str, int]]:
    return {name: dict(sorted(one.items())) for name, one in sorted(measures.items())}
