"""What is kept and removed: order, no chaining, short texts, scripts, any split."""

import random
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

import pyarrow as pa
import pyarrow.ipc
import pytest

from factory.data.dedup import Dedup, local, pairs, reduce
from factory.errors import DeclarationError, StepError

POLICY = Dedup()
WORDS = [f"word{number}" for number in range(5_000)]


def _texts(count: int, words: int = 80, seed: int = 0) -> list[str]:
    rng = random.Random(seed)
    return [" ".join(rng.choices(WORDS, k=words)) for _ in range(count)]


def _changed(text: str, *positions: int) -> str:
    words = text.split()
    for position in positions:
        words[position] = f"other{position}"
    return " ".join(words)


def _jaccard(one: str, other: str) -> float:
    first, second = (
        {tuple(text.split()[at : at + 5]) for at in range(len(text.split()) - 4)}
        for text in (one, other)
    )
    return len(first & second) / len(first | second)


def test_nothing_in_nothing_out():
    outcome = reduce([], POLICY)
    assert outcome.kept.to_pylist() == []
    assert outcome.removed.num_rows == 0
    assert list(pairs([], POLICY)) == []


def test_exact_ignores_case_form_and_punctuation():
    outcome = _run(["The ﬁrst: 5.3 mg!", "the FIRST (5 3) mg", "the first 53 mg"])
    assert outcome.kept.to_pylist() == ["0", "2"]
    assert outcome.removed.to_pylist() == [
        {"id": "1", "kept": "0", "kind": "exact", "similarity": 1.0}
    ]


def test_near_is_removed_with_its_exact_similarity():
    text = _texts(1)[0]
    near = _changed(text, 3)
    outcome = _run([text, near, *_texts(50, seed=1)])
    [row] = outcome.removed.to_pylist()
    assert {row["id"], row["kept"]} == {"0", "1"}
    assert row["kind"] == "near"
    assert row["similarity"] == _jaccard(text, near)
    assert len(outcome.kept) == 51


def test_short_texts_are_compared_whole():
    texts = ["None.", "none", "Noncontributory.", "No", "fever", "...", "!!!", "", " ", "a b c d"]
    outcome = reduce([local(_batch(texts), POLICY)], POLICY)
    removed = {(row["id"], row["kept"]) for row in outcome.removed.to_pylist()}
    assert removed == {("1", "0"), ("8", "7")}


def test_no_chaining():
    """b is near a and c is near b, but c is not near a: c stays, because b goes."""
    a = _texts(1)[0]
    b = _changed(a, 40)
    c = _changed(b, 20)
    assert _jaccard(a, b) >= 0.8
    assert _jaccard(b, c) >= 0.8
    assert _jaccard(a, c) < 0.8
    outcome = reduce([local(_batch([a, b, c], priority=[3, 2, 1]), POLICY)], POLICY)
    assert outcome.kept.to_pylist() == ["0", "2"]


def test_copy_of_a_removed_document_names_the_kept_one():
    a = _texts(1)[0]
    b = _changed(a, 40)
    outcome = reduce([local(_batch([a, b, b.upper()], priority=[3, 2, 1]), POLICY)], POLICY)
    assert outcome.kept.to_pylist() == ["0"]
    assert {(row["kept"], row["kind"]) for row in outcome.removed.to_pylist()} == {("0", "near")}


@pytest.mark.parametrize(
    ("priority", "tokens", "kept"),
    [([1, 2], [9, 1], "1"), ([1, 1], [1, 9], "1"), ([1, 1], [1, 1], "0")],
)
def test_total_order(priority, tokens, kept):
    text = _texts(1)[0]
    batch = _batch([text, text], priority=priority, tokens=tokens)
    assert reduce([local(batch, POLICY)], POLICY).kept.to_pylist() == [kept]


@pytest.mark.parametrize(
    "text",
    [
        "急性骨髄性白血病の患者における治療成績と予後因子について検討した結果を報告する",
        "ผู้ป่วยมีอาการไข้สูงและปวดศีรษะอย่างรุนแรงมาเป็นเวลาสามวันก่อนมาโรงพยาบาล",
        "больной поступил жалуется на головную боль слабость и высокую температуру тела",
        "रोगी को तेज बुखार और सिरदर्द की शिकायत के साथ अस्पताल में भर्ती कराया गया था",
    ],
)
def test_every_script_has_shingles(text):
    other = "".join(reversed(text))
    table = local(_batch([text, other]), POLICY)
    assert all(len(found) > 4 for found in table.column("shingles").to_pylist())
    assert len(reduce([table], POLICY).kept) == 2


def test_invisible_characters_do_not_hide_a_copy():
    text = _texts(1)[0]
    outcome = _run([text, text.replace("word", "wo\u00ad\u200brd"), "\ufeff" + text])
    assert len(outcome.kept) == 1


def test_case_folding_of_composed_characters():
    assert len(_run(["\u03aa\u0301 ßa", "\u0390 SSA"]).kept) == 1


@pytest.mark.slow
def test_one_result_for_any_split_order_and_number_of_workers():
    base = _texts(400)
    rng = random.Random(5)
    texts = base + [_changed(text, rng.randrange(80)) for text in base] + base[:50]
    whole = reduce([local(_batch(texts), POLICY)], POLICY)
    assert whole.removed.num_rows > 400
    for workers in (1, 2, 4):
        order = list(range(len(texts)))
        rng.shuffle(order)
        cuts = sorted(rng.sample(range(1, len(texts)), 2 * workers))
        shards = [
            _batch([texts[at] for at in part], ids=[str(at) for at in part])
            for part in (order[a:b] for a, b in zip([0, *cuts], [*cuts, len(texts)], strict=True))
        ]
        with ProcessPoolExecutor(workers, mp_context=get_context("spawn")) as pool:
            tables = list(pool.map(local, shards, [POLICY] * len(shards)))
        rng.shuffle(tables)
        outcome = reduce(tables, POLICY)
        assert outcome.kept.equals(whole.kept)
        assert outcome.removed.equals(whole.removed)


def test_tables_may_stay_on_disk(tmp_path):
    texts = _texts(200) * 2
    table = local(_batch(texts), POLICY)
    with pyarrow.ipc.new_file(tmp_path / "shard.arrow", table.schema) as writer:
        writer.write_batch(table.slice(0, 150))
        writer.write_batch(table.slice(150))
    with pa.memory_map(str(tmp_path / "shard.arrow")) as source:
        mapped = pyarrow.ipc.open_file(source).read_all()
        assert reduce([mapped], POLICY).removed.equals(reduce([table], POLICY).removed)


def test_templated_block_collapses_onto_what_is_kept():
    """Kept documents are mutually below the threshold, and every removed one is above it."""
    rng = random.Random(3)
    template = _texts(1, words=120)[0]
    texts = [_changed(template, *rng.sample(range(0, 120, 6), 3)) for _ in range(120)]
    outcome = reduce([local(_batch(texts), POLICY)], POLICY)
    kept = [texts[int(number)] for number in outcome.kept.to_pylist()]
    assert all(
        _jaccard(one, other) < 0.8 for at, one in enumerate(kept) for other in kept[at + 1 :]
    )
    for row in outcome.removed.to_pylist():
        similarity = _jaccard(texts[int(row["id"])], texts[int(row["kept"])])
        assert row["similarity"] == similarity >= 0.8


def test_repeated_id_is_refused():
    with pytest.raises(StepError, match=r"Id '7' is on 2 documents.*Make ids unique"):
        reduce([local(_batch(["a", "b", "c"], ids=["7", "7", "8"]), POLICY)], POLICY)


def test_tables_of_another_policy_are_refused():
    table = local(_batch(["a"]), Dedup(seed=2))
    with pytest.raises(StepError, match="one policy"):
        reduce([table], POLICY)


def test_null_is_refused():
    batch = _batch(["a", "b"]).set_column(1, "text", pa.array(["a", None]))
    with pytest.raises(StepError, match="'text'"):
        local(batch, POLICY)


@pytest.mark.parametrize(
    "arguments", [{"threshold": 0.1}, {"threshold": 1.5}, {"rows_per_band": 0}]
)
def test_senseless_policies_are_refused(arguments):
    with pytest.raises(DeclarationError):
        Dedup(**arguments)


@pytest.mark.parametrize("threshold", [0.5, 0.7, 0.8, 0.9, 0.95, 1.0])
def test_bands_find_pairs_at_the_threshold(threshold):
    assert Dedup(threshold=threshold).detection(threshold) >= 0.998


def _run(texts):
    return reduce([local(_batch(texts), POLICY)], POLICY)


def _batch(texts, *, ids=None, priority=None, tokens=None) -> pa.RecordBatch:
    count = len(texts)
    return pa.RecordBatch.from_pydict(
        {
            "id": pa.array(ids or [str(number) for number in range(count)], pa.string()),
            "text": pa.array(texts, pa.string()),
            "priority": pa.array(priority or [0] * count, pa.int64()),
            "tokens": pa.array(tokens or [1] * count, pa.int64()),
        }
    )


def test_only_texts_of_one_scope_are_duplicates():
    text = _texts(1)[0]
    near = _changed(text, 3)
    texts = [text, text, near, "no", "no", text, near, text]
    scopes = ["What is A?", "what is a", "What is A?", "A?", "B?", "", "", "What is B?"]
    batch = _batch(texts, tokens=list(range(8, 0, -1)))
    scoped = batch.append_column("scope", pa.array(scopes, pa.string()))
    removed = reduce([local(scoped, POLICY)], POLICY).removed
    assert {(row["id"], row["kept"], row["kind"]) for row in removed.to_pylist()} == {
        ("1", "0", "exact"),
        ("2", "0", "near"),
        ("6", "5", "near"),
    }
    assert set(removed["similarity"].to_pylist()) == {1.0, _jaccard(text, near)}


def test_no_scope_is_the_empty_scope():
    batch = _batch(_texts(3))
    empty = batch.append_column("scope", pa.array([""] * 3, pa.string()))
    assert local(batch, POLICY).equals(local(empty, POLICY))


def test_a_null_scope_is_refused():
    batch = _batch(["text"]).append_column("scope", pa.array([None], pa.string()))
    with pytest.raises(StepError, match="'scope' is missing or has a null among 1 documents"):
        local(batch, POLICY)
