"""Loader workers are forks: of the threads that their process has used they have none."""

import os
from dataclasses import replace
from pathlib import Path

import pytest

from factory.data.encoding import Encoder, load
from tests.data.encoding import qwen_like
from tests.data.stream.conftest import Mixture, read, stop


@pytest.mark.slow
def test_workers_tokenize_after_their_process_has_used_threads_for_that(
    mixture: Mixture, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = str(qwen_like.write(tmp_path / "tokenizer"))
    monkeypatch.setenv("TOKENIZERS_PARALLELISM", "true")
    encoder = Encoder(load(folder), chat="plain")
    encoder.tokenizer.encode(["threads are made", "for these"])
    named = {
        "tokenizer": folder,
        "tokenizer_identity": encoder.tokenizer.identity,
        "template_identity": encoder.identity,
    }
    other = replace(mixture, lock=mixture.lock.model_copy(update=named))
    reading = other.loader(workers=2)
    assert len(list(read(reading, 3))) == 3
    stop(reading)
    assert os.environ["TOKENIZERS_PARALLELISM"] == "false"
