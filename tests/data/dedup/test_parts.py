"""The parts against something simpler: plain Python for words and sets, datasketch for MinHash."""

import itertools
import random
import re
import unicodedata

import numpy as np
import pyarrow as pa
import pytest
from datasketch import MinHash, MinHashLSH
from hypothesis import given, settings
from hypothesis import strategies as st

from factory.data.dedup import (
    Dedup,
    bulk,
    candidates,
    contents,
    local,
    minhash,
    normalize,
    pairs,
    verify,
    words,
)
from factory.data.dedup.characters import ALONE, WORD, classify
from factory.data.dedup.order import Collection
from factory.data.dedup.shingles import shingles

POLICY = Dedup()


def _tokens(text: str) -> list[str]:
    """Words one character at a time."""
    folded = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).casefold())
    found, word = [], ""
    for character in folded:
        kind = classify(character)
        if kind == WORD:
            word += character
        elif unicodedata.category(character) != "Cf":
            found += [word] * bool(word) + [character] * (kind == ALONE)
            word = ""
    return found + [word] * bool(word)


@settings(deadline=None, max_examples=300)
@given(
    st.lists(st.text(st.characters(exclude_categories=["Cs"]), max_size=40), min_size=1, max_size=5)
)
def test_tokens_are_those_of_plain_python(texts):
    points, kinds, ends = normalize.codes([normalize.fold(text) for text in texts])
    hashes, starts = words.hashes(points, kinds)
    expected = [token for text in texts for token in _tokens(text)]
    assert len(hashes) == len(expected)
    assert len(set(hashes.tolist())) == len(set(expected))
    assert dict(zip(expected, hashes.tolist(), strict=True)).keys() == set(expected)
    counts = np.diff(np.searchsorted(starts, ends), prepend=0).tolist()
    assert counts == [len(_tokens(text)) for text in texts]


def test_words_across_windows_hash_the_same(monkeypatch):
    text = " ".join(f"word{number}" for number in range(3_000)) + " " + "x" * 5_000 + " end"
    points, kinds, _ = normalize.codes([text])
    whole, starts = words.hashes(points, kinds)
    monkeypatch.setattr(words, "WINDOW", 64)
    cut, cut_starts = words.hashes(points, kinds)
    assert np.array_equal(whole, cut)
    assert np.array_equal(starts, cut_starts)


@given(st.lists(st.lists(st.integers(0, 6), max_size=12), min_size=1, max_size=64))
def test_shingles_are_the_distinct_runs(documents):
    flat = np.array([token for document in documents for token in document], dtype=np.uint64)
    ends = np.cumsum([len(document) for document in documents])
    found, offsets = shingles(flat, ends, 5)
    runs = [
        {tuple(document[at : at + 5]) for at in range(len(document) - 4)} for document in documents
    ]
    assert np.diff(offsets).tolist() == [len(run) for run in runs]
    everything = set().union(*runs)
    assert len(set(found.tolist())) == len(everything)
    for start, stop in itertools.pairwise(offsets):
        assert np.all(np.diff(found[start:stop].astype(np.int64)) > 0)


@pytest.mark.parametrize("others", [1, verify.MERGED, verify.MERGED + 1, 400])
def test_counts_are_exact(others, monkeypatch):
    """Both ways of counting, with so few places that most values collide."""
    monkeypatch.setattr(verify, "_ROOM", 1)
    rng = random.Random(others)
    vocabulary = [f"w{number}" for number in range(60)]
    texts = [" ".join(rng.choices(vocabulary[:3], k=60)) for _ in range(others + 1)]
    collection = Collection([local(_batch(texts), POLICY)], POLICY)
    every = np.arange(1, len(texts), dtype=np.int32)
    found, similarity = verify.Verifier(collection, 0.01).confirmed(0, every)
    measured = dict(zip(found.tolist(), similarity.tolist(), strict=True))
    mine = set(collection.shingles(0).tolist())
    for other in every.tolist():
        theirs = set(collection.shingles(other).tolist())
        expected = len(mine & theirs) / len(mine | theirs)
        assert measured.get(other, 0.0) == (expected if expected >= 0.01 else 0.0)


@pytest.mark.parametrize(("crowd", "pairs_per_row"), [(1, 1), (1, 10_000), (1_000, 1)])
def test_counts_of_many_pairs_are_exact(crowd, pairs_per_row, monkeypatch):
    """By bits, by looking up and by merging, several batches each."""
    monkeypatch.setattr(bulk, "CROWD", crowd)
    monkeypatch.setattr(bulk, "PAIRS_PER_ROW", pairs_per_row)
    monkeypatch.setattr(bulk, "TABLE", 500)
    monkeypatch.setattr(bulk, "SHINGLES_AT_ONCE", 200)
    rng = random.Random(crowd)
    texts = [" ".join(rng.choices("abc", k=rng.randrange(30, 60))) for _ in range(80)]
    collection = Collection([local(_batch(texts), POLICY)], POLICY)
    every = np.array(list(itertools.combinations(range(80), 2)), dtype=np.int32)
    first, second, similarity = bulk.confirmed(collection, (every[:, 0], every[:, 1]), 0.01)
    measured = {pair[:2]: pair[2] for pair in zip(first, second, similarity, strict=True)}
    sets = [set(collection.shingles(number).tolist()) for number in range(80)]
    for one, other in every.tolist():
        expected = len(sets[one] & sets[other]) / len(sets[one] | sets[other])
        assert measured.get((one, other), 0.0) == (expected if expected >= 0.01 else 0.0)


def test_crowds_with_little_in_common_need_no_table():
    rng = random.Random(0)
    texts = [" ".join(rng.choices([f"w{n}" for n in range(40)], k=60)) for _ in range(60)]
    collection = Collection([local(_batch(texts), POLICY)], POLICY)
    every = np.array(list(itertools.combinations(range(60), 2)), dtype=np.int32)
    first, _, _ = bulk.confirmed(collection, (every[:, 0], every[:, 1]), 0.9)
    assert len(first) == 0


@pytest.mark.parametrize("slots", [1, 7, 100])
def test_batches_of_candidates_hold_each_pair_once(slots, monkeypatch):
    rng = random.Random(slots)
    base = [" ".join(rng.choices("abcdefgh", k=40)) for _ in range(5)]
    texts = [rng.choice(base) + f" and {rng.randrange(3)}" for _ in range(60)]
    collection = Collection([local(_batch(texts), POLICY)], POLICY)
    documents = np.arange(60)
    index = candidates.Candidates(collection, documents)
    expected = set()
    for document in index.documents:
        expected |= {(other, document) for other in index.earlier(document).tolist()}
        index.add(document)
    monkeypatch.setattr(candidates, "SLOTS_AT_ONCE", slots)
    batches = list(candidates.candidate_pairs(collection, documents))
    found = [
        pair
        for first, second in batches
        for pair in zip(first.tolist(), second.tolist(), strict=True)
    ]
    assert len(batches) > 1
    assert len(found) == len(set(found))
    assert set(found) == expected


@given(st.lists(st.lists(st.integers(0, 3), max_size=6), min_size=1, max_size=30))
def test_content_hashes_are_equal_for_equal_words_only(documents):
    flat = words.scramble(
        np.array([token for document in documents for token in document], dtype=np.uint64)
    )
    ends = np.cumsum([len(document) for document in documents])
    texts = ["!" * len(document) for document in documents]
    found = [tuple(row) for row in contents.contents(texts, flat, ends).tolist()]
    assert len(set(found)) == len({tuple(document) for document in documents})
    for place, document in enumerate(documents):
        assert found[place] == found[documents.index(document)]


def test_signatures_estimate_what_datasketch_estimates():
    """The oracle: on the same sets both estimates are within four standard errors."""
    rng = random.Random(1)
    hashes = 512
    for overlap in (0, 50, 100, 180, 200):
        one = rng.sample(range(2**58), 200)
        other = one[:overlap] + rng.sample(range(2**58), 200 - overlap)
        truth = overlap / (400 - overlap)
        flat = np.array(sorted(one) + sorted(other), dtype=np.uint64)
        rows = minhash.signatures(flat, np.array([0, 200, 400]), hashes, 1)
        ours = float((rows[0] == rows[1]).mean())
        oracle = [MinHash(hashes) for _ in range(2)]
        for sketch, values in zip(oracle, (one, other), strict=True):
            sketch.update_batch([value.to_bytes(8, "little") for value in values])
        error = 4 * (truth * (1 - truth) / hashes) ** 0.5
        assert abs(ours - truth) <= error
        assert abs(oracle[0].jaccard(oracle[1]) - truth) <= error


def test_pairs_hold_all_that_datasketch_and_brute_force_find():
    rng = random.Random(2)
    vocabulary = [f"w{number}" for number in range(2_000)]
    texts = []
    for _ in range(150):
        text = rng.choices(vocabulary, k=100)
        texts.append(" ".join(text))
        for _ in range(rng.randrange(3)):
            edited = [rng.choice(vocabulary) if rng.random() < 0.02 else word for word in text]
            texts.append(" ".join(edited))
    sets = [
        set(zip(*(re.findall(r"\w+", text)[at:] for at in range(5)), strict=False))
        for text in texts
    ]
    truth = {
        (i, j): len(sets[i] & sets[j]) / len(sets[i] | sets[j])
        for i in range(len(texts))
        for j in range(i + 1, len(texts))
        if not sets[i].isdisjoint(sets[j])
    }
    truth = {pair: similarity for pair, similarity in truth.items() if similarity >= 0.8}
    found = {}
    for batch in pairs([local(_batch(texts), POLICY)], POLICY):
        for row in batch.to_pylist():
            found[tuple(sorted((int(row["first"]), int(row["second"]))))] = row["similarity"]
    assert found.items() <= truth.items()
    assert len(found) >= 0.99 * len(truth) > 50
    index = MinHashLSH(num_perm=128, params=(16, 8))
    sketches = []
    for number, members in enumerate(sets):
        sketch = MinHash(128)
        sketch.update_batch([" ".join(member).encode() for member in members])
        sketches.append(sketch)
        index.insert(number, sketch)
    oracle = {
        (other, number)
        for number, sketch in enumerate(sketches)
        for other in index.query(sketch)
        if (other, number) in truth
    }
    assert len(oracle - found.keys()) <= 0.01 * len(oracle)


def test_a_document_of_many_megabytes_and_one_of_one_character():
    text = " ".join(f"word{number % 90_000}" for number in range(400_000))
    table = local(_batch([text, "x", text + " more"]), POLICY)
    assert [len(found) for found in table.column("shingles").to_pylist()] == [90_000, 0, 90_001]


def _batch(texts):
    return pa.RecordBatch.from_pydict(
        {
            "id": [str(number) for number in range(len(texts))],
            "text": texts,
            "priority": pa.array([0] * len(texts), pa.int64()),
            "tokens": pa.array([len(texts) - number for number in range(len(texts))], pa.int64()),
        }
    )
