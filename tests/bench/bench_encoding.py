"""Samples and tokens a second on one core: what encoding costs beside the bare tokenizer.

    RAYON_NUM_THREADS=1 python -m tests.bench.bench_encoding /path/to/shared/data

The tokenizer is byte-level BPE of 32,000 tokens, learned here from PubMed abstracts, with a chat
template of Qwen's form. Documents are abstracts, conversations those of Glaive and tau-bench, long
texts one Wikipedia sample in pieces. Each figure is the best of three rounds. The bare tokenizer
gets the finished texts in one batch, so it finds no loss and takes special tokens for text.
"""

import gzip
import json
import re
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from factory.data import chat
from factory.data.chat import openai, sharegpt
from factory.data.encoding import Encoded, Encoder, Tokenizer, load
from factory.data.encoding.runs import text_of
from factory.data.sample import Sample
from tests.data.encoding import qwen_like

VOCABULARY = 32_000
CONTEXT = 4_096
ROUNDS = 3


def document(name: str, text: str) -> Sample:
    """A document of one text."""
    return Sample.document(id=name, title="", sections=[("", text)])


def abstracts(shared: Path) -> list[Sample]:
    """The first 5,000 abstracts of a PubMed file."""
    with gzip.open(shared / "pubmed_baseline" / "pubmed20n0014.xml.gz", "rt") as file:
        found = re.findall(r"<AbstractText>([^<]+)</AbstractText>", file.read())[:5_000]
    return [
        Sample.document(id=f"{at}", title="", sections=[("", text)])
        for at, text in enumerate(found)
    ]


def conversations(shared: Path) -> list[Sample]:
    """Glaive and tau-bench."""
    folder = shared / "tool_use_llamafactory"
    glaive = json.loads((folder / "glaive_toolcall_en_demo.json").read_bytes())
    made = [
        Sample.conversation(
            id=f"g{at}", messages=sharegpt.messages(record), tools=chat.tools(record)
        )
        for at, record in enumerate(glaive)
    ]
    path = shared / "tau_bench_trajectories" / "gpt-4o-airline.json.gz"
    runs = json.loads(gzip.decompress(path.read_bytes()))
    return made + [
        Sample.conversation(id=f"t{at}", messages=openai.messages(record, "traj"))
        for at, record in enumerate(runs)
        if record["reward"] == 1
    ]


def long_texts(shared: Path) -> list[Sample]:
    """Documents of about 100,000 characters, far over the context."""
    (path,) = (shared / "web_general").glob("wiki*")
    content = path.read_bytes()
    text = (gzip.decompress(content) if path.suffix == ".gz" else content).decode()
    pieces = [text[start : start + 100_000] for start in range(0, len(text), 100_000)]
    return [document(f"{at}", piece) for at, piece in enumerate(pieces)]


def trained(folder: Path, texts: list[str]) -> Tokenizer:
    """A tokenizer of a useful size."""
    return load(qwen_like.write(folder, size=VOCABULARY, learned=texts))


def best(work: Callable[[], Any]) -> float:
    """Seconds of the fastest round."""
    taken: list[float] = []
    for _ in range(ROUNDS):
        begun = time.perf_counter()
        work()
        taken.append(time.perf_counter() - begun)
    return min(taken)


def compare(name: str, encoder: Encoder, samples: list[Sample]) -> None:
    """Print the three ways for one kind of text."""
    entries = [("", one.as_dict()) for one in samples]
    finished = [text_of(encoder.runs(one)) for _, one in entries]
    made = encoder.encode_all(entries)
    tokens = sum(len(one.tokens) for one in made if isinstance(one, Encoded))
    print(f"{name}: {len(samples):,} samples, {tokens:,} tokens")
    ways: dict[str, Callable[[], Any]] = {
        "bare tokenizer": lambda: [one.ids for one in encoder.tokenizer.encode(finished)],
        "one by one": lambda: [encoder.encode(one) for _, one in entries],
        "together": lambda: encoder.encode_all(entries),
    }
    for label, work in ways.items():
        seconds = best(work)
        rates = f"{len(samples) / seconds:9,.0f} samples/s {tokens / seconds:11,.0f} tokens/s"
        print(f"  {label:15} {rates}")


def main(shared: Path) -> None:
    documents = abstracts(shared)
    with tempfile.TemporaryDirectory() as folder:
        tokenizer = trained(Path(folder), [text for one in documents for text in one.content.texts])
    encoder = Encoder(tokenizer, longest=CONTEXT)
    compare("abstracts", encoder, documents)
    compare("conversations", encoder, conversations(shared))
    compare("long texts", encoder, long_texts(shared))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
