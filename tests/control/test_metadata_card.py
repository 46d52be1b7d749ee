"""The card: its facts and its page, for sets of none, one and many rows, public and private."""

import json
import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from factory.control import card_page
from factory.control.card import Card, card_of
from factory.control.card_words import summary, tables
from factory.data import Dataset, Sample, table
from factory.data.kinds import Message, Picture, ToolCall
from factory.data.statistics import Statistics
from factory.keys import Key, private, public
from factory.namespace import Namespace, Provenance, Version
from tests.control.conftest import letters

PICTURE = Picture("ab" * 32)
PICTURES = re.compile(r"\(data:image/[^)]*\)")


def documents(texts: list[str]) -> list[Sample]:
    return [
        Sample.document(id=f"row-{n}", title="", sections=[("", text)], license="CC-BY-4.0")
        for n, text in enumerate(texts)
    ]


def talk(**changes: Any) -> Sample:
    call = ToolCall("1", "dose", '{"drug": "a`b"}')
    messages = [
        Message.of("user", ["Which dose?\n\n1. <b>one</b>", PICTURE]),
        Message.of("assistant", "", [call], trained=True),
        Message.of("tool", "5 | mg", tool_call_id="1", name="dose"),
        Message.of("assistant", "**5 mg**", trained=True),
    ]
    fields: dict[str, Any] = {"id": "talk", "messages": messages, "tools": '[{"name": "dose"}]'}
    return Sample.conversation(**(fields | changes))


def counted(samples: list[Sample]) -> Statistics:
    found = Statistics(len(samples))
    for sample in samples:
        found.add(sample)
    return found


@pytest.fixture
def namespace(tmp_path: Path) -> Namespace:
    (tmp_path / "root").mkdir()
    return Namespace(tmp_path / "root")


def publish(
    namespace: Namespace, key: Key, samples: list[Sample], facts: Mapping[str, Any]
) -> Version:
    with namespace.write(
        key,
        inputs=[],
        input_id="1",
        provenance=Provenance(run_id="run", identity="tester"),
        source=key.classification,
        parameters={},
        code="c0de",
        checks=[],
        licenses=["CC-BY-4.0"],
    ) as staging:
        table.write_samples(staging.path / "samples", samples)
        staging.describe(content_id="1", rows=len(samples), columns={}, facts=dict(facts))
    return staging.version


def made(
    namespace: Namespace,
    samples: list[Sample],
    dataset: Dataset | None = None,
    rejected: Mapping[str, int] | None = None,
) -> Card:
    chosen = dataset or letters()
    reasons = {"no answer": 1} if rejected is None else rejected
    read = len(samples) + sum(reasons.values())
    seen = {"rows_read": read, "rejected": dict(reasons)}
    facts = {"duplicates": {"exact": 0, "near": 0}, "statistics": counted(samples).facts()}
    cleaned = publish(namespace, chosen.key / "clean", samples, seen)
    version = publish(namespace, chosen.key / "deduplicated", samples, facts)
    return card_of(chosen, version, cleaned)


def text_of(page: str) -> str:
    return PICTURES.sub("", page)


def test_nothing_is_left(namespace: Namespace) -> None:
    card = made(namespace, [])
    page = card_page.page(card)
    assert "| **samples** | 0 of 1 rows read |" in page
    assert "| **tokens** | none |" in page
    assert "| no answer | 1 | 100.0 % |" in page
    assert "data:image" not in page
    json.dumps(card.facts())


def test_nothing_was_read(namespace: Namespace) -> None:
    card = made(namespace, [], rejected={})
    assert summary(card)["samples"] == "0 of 0 rows read"
    assert list(tables(card)) == []
    assert card.figures()["tokens of the median sample"] == 0


def test_one_row(namespace: Namespace) -> None:
    card = made(namespace, documents(["Two words"]))
    assert summary(card)["samples"] == "1 of 2 rows read, all documents"
    assert summary(card)["tokens"].startswith("2 (tekken_240911); a sample has 2 to 2")
    assert summary(card)["licence"] == "CC-BY-4.0"
    assert card_page.page(card).count("data:image/png") == 1


def test_every_script(namespace: Namespace) -> None:
    texts = [
        "Der Patient wurde entlassen. ",
        "患者は三日目に退院した。",
        "Пациент был выписан домой. ",
    ]
    card = made(namespace, documents([text * 3 for text in texts]))
    assert summary(card)["languages"] == "de 33.3 %, ja 33.3 %, ru 33.3 %"


def test_conversations(namespace: Namespace) -> None:
    card = made(namespace, [talk(), talk(id="other")])
    said = summary(card)
    assert said["conversations"].startswith("4 to 4 messages")
    assert "of their tokens carry loss" in said["conversations"]
    roles = next(tables(card))
    assert roles.columns == (
        "role",
        "messages",
        "tokens",
        "share",
        "tool calls",
        "tokens with loss",
    )
    assert [one[0] for one in roles.rows] == ["assistant", "tool", "user", "(functions declared)"]


def test_kinds_are_listed_where_there_are_several(namespace: Namespace) -> None:
    card = made(namespace, [talk(), *documents(["a"])])
    kinds = next(tables(card))
    assert [one[:2] for one in kinds.rows] == [("conversation", "1"), ("document", "1")]


@pytest.mark.parametrize(
    ("change", "warning"),
    [({"partial": True}, "PARTIAL: made from a mirror"), ({"limit": 5}, "first 5 rows only")],
)
def test_what_is_not_whole_says_so_first(
    namespace: Namespace, change: dict[str, Any], warning: str
) -> None:
    dataset, samples = letters(), documents(["a"])
    cleaned = publish(namespace, dataset.key / "clean", samples, {"rows_read": 1, "rejected": {}})
    version = Version(cleaned.key, cleaned.id, cleaned.path)
    version.__dict__["manifest"] = cleaned.manifest.model_copy(update=change)
    page = card_page.page(card_of(dataset, version, cleaned))
    assert warning in page.splitlines()[0]
    assert "not counted when this version was made" in page


def test_many_reasons_are_added_up(namespace: Namespace) -> None:
    card = made(namespace, [], rejected={f"reason {n} | x": 100 - n for n in range(40)})
    (reasons,) = tables(card)
    assert len(reasons.rows) == 13
    assert reasons.rows[-1][0] == "28 other reasons"
    assert sum(int(one[1].replace(",", "")) for one in reasons.rows) == card.read


def test_a_page_is_bounded(namespace: Namespace) -> None:
    card = made(namespace, documents(["a"]))
    page = card_page.page(card, pictures="p" * 100_000, samples="s" * 100_000)
    assert len(page) < card_page.LIMIT
    assert page.endswith(card_page.LEFT_OUT)
    assert "p" * 100_000 in page


def test_of_private_data_there_are_figures_and_no_words(namespace: Namespace) -> None:
    marker = "PATIENT-7391"
    samples = [
        replace(
            talk(messages=[Message.of(role, marker) for role in ("user", "assistant")]),
            license=f"LicenseRef-{marker}",
        ),
        *documents([f"{marker} went home."]),
    ]
    dataset = letters(private("text/letters"))
    card = made(namespace, samples, dataset, {"no answer": 3, f"odd: {marker}": 2})
    page = card_page.page(card)
    assert marker not in page + json.dumps(card.facts())
    assert "| no answer | 3 |" in page
    assert "(a reason with text of its own" in page
    assert summary(card)["licence"] == "CC-BY-4.0; rows state 1"
    assert card.figures()["rows kept"] == 2


def test_public_rows_show_no_marks_of_their_own(namespace: Namespace) -> None:
    from factory.control.previews import samples_of

    made(namespace, [talk()])
    version = namespace.versions(public("text/letters/deduplicated"))[0]
    shown = samples_of(version)
    assert "> Which dose?  \n> 1\\. \\<b\\>one\\</b\\>" in shown
    assert '> → `` dose({"drug": "a`b"}) ``' in shown
    assert "**tool** `dose`\n\n> 5 \\| mg" in shown
    assert f"`image {PICTURE.image[:12]}`" in shown


@pytest.mark.parametrize(
    "tools", ["[]", '[{"name": "dose"}]', "[1]", '[{"function": {"name": "x"}}]']
)
def test_whatever_functions_look_like(namespace: Namespace, tools: str) -> None:
    from factory.control.previews import samples_of

    made(namespace, [talk(tools=tools)])
    version = namespace.versions(public("text/letters/deduplicated"))[0]
    assert ("may call" in samples_of(version)) == (tools != "[]")


@pytest.mark.slow
def test_a_hundred_thousand_rows(namespace: Namespace) -> None:
    card = made(
        namespace, documents([f"Finding {n}: {'word ' * (n % 50)}" for n in range(100_000)])
    )
    assert "samples that were asked" in summary(card)["languages"]
    assert len(card_page.page(card)) < 60_000
