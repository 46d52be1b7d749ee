"""Statistics: exact, the same in whatever order and shards, for every kind and every script."""

import json
import math
import random
from bisect import bisect_right
from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mistral_common.tokens.tokenizers.tekken import Tekkenizer

from factory.data import Sample, code_version, language, tokens
from factory.data.bins import EDGES, Bins
from factory.data.kinds import Message, Picture, ToolCall
from factory.data.statistics import Measure, Statistics

SCRIPTS = {
    "en": "The patient was discharged in good general condition after the third day.",
    "de": "Der Patient wurde am dritten Tag in gutem Allgemeinzustand entlassen.",
    "ru": "Пациент был выписан на третий день в удовлетворительном состоянии.",
    "ja": "患者は三日目に良好な全身状態で退院した。経過は順調であった。",
    "zh": "患者于第三天一般情况良好出院。术后恢复顺利。无并发症。",
    "ar": "خرج المريض في اليوم الثالث وهو في حالة عامة جيدة بعد العملية.",
    "hi": "रोगी को तीसरे दिन अच्छी सामान्य स्थिति में छुट्टी दे दी गई।",
    "th": "ผู้ป่วยได้รับการจำหน่ายในวันที่สามด้วยสภาพทั่วไปที่ดี",
    "el": "Ένας ασθενής πήρε εξιτήριο την τρίτη ημέρα σε καλή γενική κατάσταση.",
}


def document(number: int, text: str = "") -> Sample:
    return Sample.document(
        id=f"row-{number}",
        title="Report",
        sections=[("Findings", text or f"Finding number {number}.")],
        license="CC-BY-4.0" if number % 3 else "CC0-1.0",
    )


def conversation() -> Sample:
    picture = Picture("ab" * 32)
    return Sample.conversation(
        id="talk",
        tools='[{"name": "dose"}]',
        messages=[
            Message.of("system", "Be brief."),
            Message.of("user", ["Which dose? ", picture, picture]),
            Message.of("assistant", "", [ToolCall("1", "dose", '{"drug": "x"}')], name=None),
            Message.of("tool", "5 mg", tool_call_id="1"),
            Message("assistant", Message.of("assistant", "5 mg.").parts, trained=True),
        ],
    )


def counted(samples: list[Sample], rows: int = 0) -> Statistics:
    found = Statistics(rows)
    for sample in samples:
        found.add(sample)
    return found


def test_nothing() -> None:
    facts = Statistics().facts()
    assert facts["kinds"] == {}
    assert facts["lengths"] == {"bins": {}, "total": 0, "least": None, "most": None}
    assert Statistics.from_facts(facts) == Statistics()
    assert Statistics().lengths.quantile(0.5) == 0


def test_one_row() -> None:
    found = counted([document(1, SCRIPTS["en"])])
    length = sum(map(tokens.count, ("Report", "Findings", SCRIPTS["en"])))
    assert found.kinds == {"document": Measure(1, 14 + len(SCRIPTS["en"]), length)}
    assert found.lengths.least == found.lengths.most == length
    assert found.lengths.quantile(0.5) == length
    assert found.languages == {"en": 1}
    assert found.licenses == {"CC-BY-4.0": 1}


def test_conversation_by_role_with_calls_images_and_loss() -> None:
    found = counted([conversation()])
    (whole,) = found.kinds.values()
    assert whole.count == 1
    assert {role: one.count for role, one in found.roles.items()} == {
        "system": 1,
        "user": 1,
        "assistant": 2,
        "tool": 1,
    }
    assistant = found.roles["assistant"]
    assert (assistant.calls, assistant.trained) == (1, 1)
    assert assistant.trained_tokens == tokens.count("5 mg.")
    declared = tokens.count('[{"name": "dose"}]')
    assert whole.tokens == declared + sum(one.tokens for one in found.roles.values())
    assert whole.characters == conversation().characters
    assert (found.turns.total, found.images.total) == (5, 2)


def test_images_are_no_tokens() -> None:
    sample = Sample.image_text(id="1", parts=[Picture("cd" * 32), "A chest film."])
    found = counted([sample])
    assert found.kinds["image_text"].tokens == tokens.count("A chest film.")
    assert found.images.total == 1


def test_options_and_explanation_count() -> None:
    sample = Sample.question(
        id="1", question="Which?", answer="A", options=("A", "B"), explanation="Since."
    )
    found = counted([sample])
    texts = ("Which?", "A", "B", "A", "Since.")
    assert found.kinds["question"].tokens == sum(map(tokens.count, texts))


@given(st.randoms(use_true_random=False), st.integers(1, 7))
@settings(max_examples=20, deadline=None)
def test_order_and_shards_do_not_matter(rng: random.Random, shards: int) -> None:
    samples = [document(n, rng.choice([*SCRIPTS.values()]) * rng.randrange(1, 4)) for n in range(9)]
    samples.append(conversation())
    expected = counted(samples).facts()
    rng.shuffle(samples)
    parts = [counted(samples[n::shards]) for n in range(shards)]
    rng.shuffle(parts)
    merged = Statistics()
    for part in parts:
        merged.merge(Statistics.from_facts(json.loads(json.dumps(part.facts()))))
    assert json.dumps(merged.facts()) == json.dumps(expected)


def test_merging_takes_nothing_from_the_other() -> None:
    one, two = counted([document(1)]), counted([document(2)])
    before = two.facts()
    one.merge(two)
    one.add(document(3))
    assert two.facts() == before


def test_merging_different_sizes_is_refused() -> None:
    with pytest.raises(ValueError, match="give both the rows of the whole dataset"):
        Statistics(10).merge(Statistics(11))


@pytest.mark.parametrize("change", [{"format": 0}, {"tokenizer": "another"}, {"format": None}])
def test_facts_of_another_form_are_refused(change: dict[str, object]) -> None:
    with pytest.raises(ValueError, match="statistics of the form"):
        Statistics.from_facts(Statistics().facts() | change)


class TestLanguage:
    @pytest.mark.parametrize("code", SCRIPTS)
    def test_scripts(self, code: str) -> None:
        assert counted([document(1, SCRIPTS[code] * 2)]).languages == {code: 1}

    @pytest.mark.parametrize("text", ["", "12 34", "x", "\u200b", "€€€", "\ud800"])
    def test_undetermined(self, text: str) -> None:
        assert language.language(text) == "und"

    def test_of_a_conversation_it_is_what_people_say(self) -> None:
        sample = Sample.conversation(
            id="1",
            tools=json.dumps([{"description": SCRIPTS["en"] * 5}]),
            messages=[
                Message.of("system", SCRIPTS["en"] * 5),
                Message.of("user", SCRIPTS["de"]),
                Message.of("assistant", SCRIPTS["de"]),
            ],
        )
        assert counted([sample]).languages == {"de": 1}

    def test_all_of_a_small_set(self) -> None:
        assert all(language.sampled(f"{n}", language.SAMPLED_ROWS) for n in range(1_000))

    @pytest.mark.parametrize("rows", [50_001, 100_000, 10**6, 10**9])
    def test_sample_of_a_large_set(self, rows: int) -> None:
        asked = sum(language.sampled(f"row-{n}", rows) for n in range(100_000))
        expected = 100_000 * language.SAMPLED_ROWS / rows
        assert abs(asked - expected) <= 5 * expected**0.5 + 1

    def test_beginning_is_short(self) -> None:
        assert language.beginning(["ab", "", "cd" * 10_000, "never"]) == "ab " + "cd" * 149
        assert language.beginning([]) == ""


class TestTokens:
    def test_same_as_the_package_counts(self) -> None:
        package = Tekkenizer.from_file(tokens._package() / "data" / f"{tokens.TOKENIZER}.json")
        for text in [*SCRIPTS.values(), "", " ", "a\n\n b", "👩‍👩‍👧 x₂", "[INST]<s>", "1234567"]:
            assert tokens.count(text) == len(package.encode(text, bos=False, eos=False))

    @pytest.mark.parametrize("blank", [" ", "\t", "\u3000", "\n"])
    def test_a_million_spaces(self, blank: str) -> None:
        found = tokens.count(f"a{blank * 1_000_000}b")
        assert 2 < found <= 1_000_002

    def test_long_prose_is_not_cut(self) -> None:
        text = SCRIPTS["en"] * 1_000
        assert len(text) > tokens.RUN
        assert tokens.count(text) == len(tokens._encoding().encode_ordinary(text))

    def test_surrogates_count(self) -> None:
        assert tokens.count("a\ud800b") == 3


class TestBins:
    def test_edges(self) -> None:
        assert EDGES[:12] == (0, 1, 2, 3, 4, 5, 6, 7, 8, 10, 11, 13)
        assert len(set(EDGES)) == len(EDGES)
        assert EDGES[-1] == 2**48

    @given(st.lists(st.integers(0, 10**9)))
    @settings(max_examples=50, deadline=None)
    def test_facts_are_all_there_is(self, numbers: list[int]) -> None:
        bins = Bins()
        for number in numbers:
            bins.add(number)
        assert Bins.from_facts(json.loads(json.dumps(bins.facts()))) == bins
        assert bins.count == len(numbers)
        assert bins.total == sum(numbers)
        for edge, count in bins.facts()["bins"].items():
            low, high = int(edge), EDGES[EDGES.index(int(edge)) + 1]
            assert count == sum(low <= number < high for number in numbers)

    @given(st.lists(st.integers(0, 10**6), min_size=1), st.floats(0, 1))
    @settings(max_examples=50, deadline=None)
    def test_quantile_lies_in_the_right_bin(self, numbers: list[int], share: float) -> None:
        bins = Bins()
        for number in numbers:
            bins.add(number)
        true = sorted(numbers)[max(0, math.ceil(share * len(numbers)) - 1)]
        found = bins.quantile(share)
        assert min(numbers) <= found <= max(numbers)
        assert bisect_right(EDGES, true) == bisect_right(EDGES, found)


def test_counting_otherwise_makes_no_new_version() -> None:
    closure, packages = code_version._closure("factory.data.run")
    assert "factory.data.content" in closure
    assert not {name for name in closure if name.rpartition(".")[2] in ("statistics", "tokens")}
    assert not {"tiktoken", "mistral_common", "py3langid"} & packages


@pytest.mark.slow
def test_a_hundred_thousand_rows() -> None:
    found = counted([document(n) for n in range(100_000)], rows=100_000)
    assert found.lengths.count == 100_000
    assert abs(found.languages.total() - 50_000) < 1_500
    assert found.licenses == Counter({"CC-BY-4.0": 66_666, "CC0-1.0": 33_334})
    assert len(json.dumps(found.facts())) < 2_000
