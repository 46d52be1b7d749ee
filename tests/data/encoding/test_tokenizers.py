"""Tokenizers come from this machine, are what their files are, and give every text back."""

import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from factory.data import tokens
from factory.data.encoding import Tokenizer, load
from factory.errors import SpecError
from tests.data.encoding import qwen_like

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=40)

ODD = ["", " ", "Hello", "a  b\n\n\tc", "é漢🩺 fin", "<s>hi</s>", "<|im_end|>", "e\u0301", "\x00"]


@pytest.fixture(scope="session", params=["bytes", "qwen", "tekken"])
def tokenizer(request: pytest.FixtureRequest, qwen: Tokenizer) -> Tokenizer:
    if request.param == "qwen":
        return qwen
    return load("bytes" if request.param == "bytes" else tokens.TOKENIZER)


def ids(tokenizer: Tokenizer, text: str) -> list[int]:
    (coded,) = tokenizer.encode([text])
    return list(coded.ids)


@given(text=TEXT)
def test_text_comes_back(tokenizer: Tokenizer, text: str):
    assert tokenizer.decode(ids(tokenizer, text)) == text


@given(text=TEXT)
def test_tokens_cover_their_text_in_order(tokenizer: Tokenizer, text: str):
    (coded,) = tokenizer.encode([text])
    starts, stops = coded.spans()
    assert len(starts) == len(stops) == len(coded.ids)
    covered = np.zeros(len(text), dtype=bool)
    for start, stop in zip(starts, stops, strict=True):
        assert 0 <= start < stop <= len(text)
        covered[start:stop] = True
    assert covered.all()
    assert (np.diff(starts) >= 0).all()


@given(texts=st.lists(TEXT, max_size=4))
def test_many_texts_are_encoded_like_each_alone(tokenizer: Tokenizer, texts: list[str]):
    together = [list(coded.ids) for coded in tokenizer.encode(texts)]
    assert together == [ids(tokenizer, text) for text in texts]


def test_lone_surrogates_become_question_marks(tokenizer: Tokenizer):
    assert tokenizer.decode(ids(tokenizer, "é\ud800x")) == "é?x"


def test_no_text_makes_a_special_token(qwen: Tokenizer):
    for special, number in qwen.special.items():
        assert number not in ids(qwen, f"a{special}b")
        assert qwen.decode(ids(qwen, special)) == special


def test_added_tokens_that_are_not_special_are_vocabulary(qwen: Tokenizer):
    assert len(ids(qwen, "<think>")) == 1
    assert "<think>" not in qwen.special


def test_the_sizes_are_those_of_the_files(qwen: Tokenizer):
    assert qwen.size == qwen_like.SIZE
    assert load("bytes").size == 259
    assert load(tokens.TOKENIZER).size == 131_072


def test_tekken_is_counted_as_it_is_encoded():
    tekken = load(tokens.TOKENIZER)
    for text in [*ODD, " " * 200_000]:
        assert len(ids(tekken, text)) == tokens.count(text)


def test_tekken_has_the_ids_of_its_package():
    from mistral_common.tokens.tokenizers.tekken import Tekkenizer

    theirs = Tekkenizer.from_file(tokens.file())
    ours = load(tokens.file())
    for text in ODD:
        assert ids(ours, text) == theirs.encode(text, bos=False, eos=False)
    assert (ours.begin, ours.end) == (theirs.bos_id, theirs.eos_id)


SENTENCE_PIECE = {
    "Hello world": [22557, 1526],
    " leading": [28705, 5374],
    "a  b   c\n\n\td": [264, 28705, 287, 259, 277, 13, 13, 12, 28715],
    "é漢🩺 fin": [1233, 233, 191, 165, 243, 162, 172, 189, 854],
    "<s>hi</s>": [523, 28713, 28767, 5365, 700, 28713, 28767],
    " ": [259],
    "": [],
}
"""What the package sentencepiece 0.2 makes of them."""


def test_sentence_piece_has_the_ids_of_its_package(shared_data: Path):
    model = load(shared_data / "tokenizer_mistral_v1_sentencepiece" / "tokenizer.model.v1")
    assert {text: ids(model, text) for text in SENTENCE_PIECE} == SENTENCE_PIECE
    assert (model.begin, model.end, model.size) == (1, 2, 32_000)
    for text in ["Hello world", " leading", "a  b", "é漢🩺 fin"]:
        assert model.decode(ids(model, text)) == text


def test_word_pieces_begin_as_their_model_expects(shared_data: Path):
    folder = shared_data / "tokenizer_minilm_wordpiece"
    with pytest.raises(SpecError, match=r"does not say what ends a document.*end="):
        load(folder)
    model = load(folder, end="[SEP]")
    assert (model.begin, model.end) == (101, 102)
    assert ids(model, "hello") == [7592]


class TestIdentity:
    def test_equal_files_are_one_tokenizer_wherever_they_lie(self, qwen, tmp_path: Path):
        assert load(qwen_like.write(tmp_path / "elsewhere")).identity == qwen.identity

    def test_the_template_is_part_of_it(self, qwen, tmp_path: Path):
        other = qwen_like.write(tmp_path, qwen_like.TEMPLATE + "{# note #}")
        assert load(other).identity != qwen.identity

    def test_so_is_what_ends_a_document(self, qwen, folder: Path):
        assert load(folder, end="<|im_end|>").identity != qwen.identity

    def test_so_is_the_vocabulary(self, qwen, tmp_path: Path):
        folder = qwen_like.write(tmp_path)
        file = folder / "tokenizer.json"
        file.write_text(file.read_text(encoding="utf-8") + "\n", encoding="utf-8")
        assert load(folder).identity != qwen.identity


class TestRefusals:
    def test_a_name_on_a_hub_is_not_fetched(self):
        with pytest.raises(SpecError, match=r"No tokenizer at Qwen/Qwen3.*nothing is fetched"):
            load("Qwen/Qwen3-VL-30B-A3B-Instruct")

    def test_a_directory_without_the_file_is_named_with_what_is_there(self, tmp_path: Path):
        (tmp_path / "vocab.txt").write_text("a", encoding="utf-8")
        with pytest.raises(SpecError, match=r"has no tokenizer\.json; there is vocab\.txt"):
            load(tmp_path)

    @pytest.mark.parametrize("content", ["{", "[]", '{"version": "1.0"}'])
    def test_damaged_files_are_named(self, tmp_path: Path, content: str):
        (tmp_path / "tokenizer.json").write_text(content, encoding="utf-8")
        with pytest.raises(SpecError, match=r"tokenizer\.json is "):
            load(tmp_path)

    @pytest.mark.parametrize("content", [b"", b"\x0a", b"not a model", b"\x0a\x05\x0a\x03abc"])
    def test_damaged_models_are_named(self, tmp_path: Path, content: bytes):
        file = tmp_path / "tokenizer.model"
        file.write_bytes(content)
        with pytest.raises(SpecError, match=r"tokenizer\.model is no SentencePiece model"):
            load(tmp_path)

    @pytest.mark.parametrize("content", ["{", "[]", '{"config": {}}'])
    def test_damaged_tekken_files_are_named(self, tmp_path: Path, content: str):
        file = tmp_path / "tekken.json"
        file.write_text(content, encoding="utf-8")
        with pytest.raises(SpecError, match=r"tekken\.json is no tokenizer of Tekken's form"):
            load(file)

    def test_an_unknown_end_is_refused(self, folder: Path):
        with pytest.raises(SpecError, match="no token '<eod>'"):
            load(folder, end="<eod>")


class TestTemplates:
    def test_lie_in_one_of_three_places(self, folder: Path, tmp_path: Path):
        config = json.loads((folder / "tokenizer_config.json").read_bytes())
        named = [{"name": "default", "template": "config"}, {"name": "rag", "template": "other"}]
        for name, files in {
            "config": {"tokenizer_config.json": config | {"chat_template": "config"}},
            "named": {"tokenizer_config.json": config | {"chat_template": named}},
            "processor": {"chat_template.json": {"chat_template": "processor"}},
        }.items():
            made = qwen_like.write(tmp_path / name, template=None)
            for file, content in files.items():
                (made / file).write_text(json.dumps(content), encoding="utf-8")
            template = load(made).template
            assert template is not None
            assert template.source == name.replace("named", "config")

    def test_may_be_missing(self, tmp_path: Path):
        assert load(qwen_like.write(tmp_path, template=None)).template is None
