"""Three corpora for deduplication benchmarks, built from real texts where this machine has them.

`medical` follows a published side-by-side of 60,000 documents: base texts plus 16,870 labelled
copies (format changes, word edits of 1 to 20%, prefixes). It differs in its base:
that one had all of MedQuAD, and sentences of MTL-Bioinformatics-2016 and CRAFT, which are not here.
PubMed abstracts, PLOS and PMC full texts in 200-word chunks and other medical sets stand in for
them, distinct, of 35 to 1,500 words. It is shorter (151 words a document, not 200) and far less
templated (about 7,900 pairs at J >= 0.8, not 83,384). `templated` holds one block of form
letters; `scripts` mixes ten scripts, its words invented except for the Chinese, because no such
openly licensed set is here.
"""

import csv
import gzip
import io
import json
import os
import random
import re
import zipfile
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any

from lxml import etree

SHARED = Path(
    os.environ.get("FACTORY_SHARED_DATA", Path(__file__).resolve().parents[3] / "shared" / "data")
)
TOTAL = 60_000
FORMAT_COPIES, EDITED_COPIES, PREFIX_COPIES = 3_000, 2_500, 1_370
EDIT_SHARES = (0.01, 0.02, 0.05, 0.10, 0.20)
MINIMUM_WORDS, CHUNK_WORDS, MAXIMUM_WORDS = 35, 200, 1_500


def medical() -> list[str]:
    """60,000 documents; the order is shuffled with a fixed seed."""
    copies = FORMAT_COPIES + PREFIX_COPIES + EDITED_COPIES * len(EDIT_SHARES)
    base = list(islice(_base(), TOTAL - copies))
    rng = random.Random(1)
    texts = base + _copies(base, rng, TOTAL - len(base))
    rng.shuffle(texts)
    return texts


def templated(block: int = 900, others: int = 9_100) -> list[str]:
    """A form letter of 200 words with six holes, filled 900 times, among other texts.

    Two letters that share no filling have J = 0.735; every shared one brings them closer, so pairs
    lie on both sides of 0.8: at least 300,000 above 0.7.
    """
    rng = random.Random(2)
    words = [_pseudo(rng, LATIN) for _ in range(200)]
    letters: list[str] = []
    for _ in range(block):
        filled = words.copy()
        for hole in range(6):
            filled[20 + hole * 30] = f"filling{hole}x{rng.randrange(12)}"
        letters.append(" ".join(filled))
    texts = letters + list(islice(_base(), others))
    rng.shuffle(texts)
    return texts


LATIN = "abcdefghijklmnopqrstuvwxyzäéñø"
ALPHABETS = {
    "latin": LATIN,
    "cyrillic": "абвгдежзийклмнопрстуфхцчшщыэюя",
    "greek": "αβγδεζηθικλμνξοπρστυφχψωάέή",
    "arabic": "ابتثجحخدذرزسشصضطظعغفقكلمنهوي",
    "hebrew": "אבגדהוזחטיכלמנסעפצקרשת",
    "devanagari": "अआइईउकखगघचछजझटठडढतथदधनपफबभमयरलवशसह",
    "hangul": "".join(chr(0xAC00 + 37 * step) for step in range(300)),
    "japanese": "あいうえおかきくけこさしすせそたちつてとなにぬねのはひふへほ医者病院患者薬熱痛検",
    "thai": "กขคงจฉชซญดตถทธนบปผพภมยรลวสหอะาเแโ",
}
WITHOUT_SPACES = {"japanese", "thai"}


def scripts(each: int = 700) -> list[str]:
    """Base texts in ten scripts and as many copies: in full width, edited by 2%, or cut."""
    rng = random.Random(3)
    texts: list[str] = []
    for name, alphabet in ALPHABETS.items():
        vocabulary = [_pseudo(rng, alphabet) for _ in range(4_000)]
        glue = "" if name in WITHOUT_SPACES else " "
        for _ in range(each):
            words = [vocabulary[int(4_000 * rng.random() ** 3)] for _ in range(120)]
            texts += [glue.join(words), _near(words, glue, rng, vocabulary)]
    texts += _chinese()
    rng.shuffle(texts)
    return texts


def _pseudo(rng: random.Random, alphabet: str) -> str:
    return "".join(rng.choices(alphabet, k=rng.randint(2, 8)))


def _near(words: list[str], glue: str, rng: random.Random, vocabulary: list[str]) -> str:
    kind = rng.randrange(3)
    if kind == 0:
        wide = {code: code + 0xFEE0 for code in range(ord("a"), ord("z") + 1)}
        return glue.join(words).translate(wide).upper()
    if kind == 1:
        return glue.join(_edit(words, 0.02, rng, vocabulary))
    return glue.join(words[: int(len(words) * 0.85)])


def _copies(base: list[str], rng: random.Random, count: int) -> list[str]:
    """The labelled copies, in the published proportions."""
    vocabulary = sorted({word for text in base[:2_000] for word in text.split()})
    makers: list[Callable[[str], str]] = []
    makers += [_unpunctuated] * (FORMAT_COPIES // 2) + [_relined] * (FORMAT_COPIES // 2)
    for share in EDIT_SHARES:
        makers += [_editor(share, rng, vocabulary)] * EDITED_COPIES
    makers += [_prefix] * PREFIX_COPIES
    makers += [_unpunctuated] * (count - len(makers))
    return [maker(rng.choice(base)) for maker in makers]


def _unpunctuated(text: str) -> str:
    return re.sub(r"[^\w\s]", "", text).upper()


def _relined(text: str) -> str:
    words = text.lower().split()
    return "\n".join(" ".join(words[start : start + 12]) for start in range(0, len(words), 12))


def _prefix(text: str) -> str:
    words = text.split()
    return " ".join(words[: int(len(words) * 0.7)])


def _editor(share: float, rng: random.Random, vocabulary: list[str]) -> Callable[[str], str]:
    return lambda text: " ".join(_edit(text.split(), share, rng, vocabulary))


def _edit(words: list[str], share: float, rng: random.Random, vocabulary: list[str]) -> list[str]:
    """A share of the words edited: a third each substituted, deleted, preceded by a new one."""
    edited: list[str] = []
    for word in words:
        kind = rng.randrange(3) if rng.random() < share else None
        if kind is None:
            edited.append(word)
        elif kind != 1:
            edited += [rng.choice(vocabulary)] + [word] * (kind == 2)
    return edited


def _base() -> Iterator[str]:
    seen: set[str] = set()
    for text in _texts():
        words = text.split()[:MAXIMUM_WORDS]
        line = " ".join(words)
        if len(words) >= MINIMUM_WORDS and line not in seen:
            seen.add(line)
            yield line


def _texts() -> Iterator[str]:
    for item in _json("bench_pubmedqa/ori_pqal.json").values():
        yield " ".join([*item["CONTEXTS"], item["LONG_ANSWER"]])
    yield from _medquad()
    for path in ("plos_starter_corpus", "pmc_oa_jats"):
        for name in sorted((SHARED / path).glob("*xml*")):
            yield from _chunks(" ".join(_parse(name).itertext()))
    yield from _pubmed()
    yield from _questions()
    yield from _dialogues()
    yield from (row["text"] for row in _lines("web_general/c4_demo.jsonl.gz"))
    yield from _chunks(_read("web_general/wiki_demo.txt.gz"))


def _questions() -> Iterator[str]:
    for row in _json("medical_meadow_wikidoc/medical_meadow_small.json.gz"):
        yield f"{row['input']} {row['output']}"
    with zipfile.ZipFile(next((SHARED / "bench_medquad_liveqa_qrels").glob("*.zip"))) as archive:
        name = next(n for n in archive.namelist() if n.endswith(".csv") and "MACOSX" not in n)
        for row in csv.reader(io.StringIO(archive.read(name).decode("utf-8", "replace"))):
            yield " ".join(row)
    for row in _lines("bench_medqa/phrases_no_exclude_test.jsonl"):
        yield f"{row['question']} {' '.join(map(str, row['options'].values()))}"
    for row in _lines("bench_medmcqa/dev.json.gz"):
        yield " ".join(str(row[field]) for field in ("question", "opa", "opb", "opc", "opd", "exp"))
    for row in _lines("general_gsm8k_train/train.jsonl.gz"):
        yield f"{row['question']} {row['answer']}"


def _dialogues() -> Iterator[str]:
    for name in ("TrainingSet", "ValidationSet", "TestSet-1-MEDIQA-Chat-2023"):
        for row in csv.DictReader(io.StringIO(_read(f"mts_dialog/MTS-Dialog-{name}.csv"))):
            yield f"{row['dialogue']} {row['section_text']}"
    for row in _json("tool_use_llamafactory/glaive_toolcall_en_demo.json"):
        yield " ".join(turn["value"] for turn in row["conversations"])


def _medquad() -> Iterator[str]:
    for path in sorted((SHARED / "medquad").glob("*/*.xml")):
        for pair in _parse(path).iter("QAPair"):
            yield f"{pair.findtext('Question')} {pair.findtext('Answer')}"


def _pubmed() -> Iterator[str]:
    """Abstracts, then all titles of records without one in chunks."""
    titles: list[str] = []
    path = next((SHARED / "pubmed_baseline").glob("pubmed*.xml.gz"))
    with gzip.open(path) as file:
        for _, article in etree.iterparse(file, tag="PubmedArticle"):
            title = article.findtext(".//ArticleTitle") or ""
            abstract = " ".join("".join(part.itertext()) for part in article.iter("AbstractText"))
            if abstract:
                yield f"{title} {abstract}"
            else:
                titles.append(title)
            article.clear()
    yield from _chunks(" ".join(titles))


def _chunks(text: str) -> Iterator[str]:
    words = text.split()
    for start in range(0, len(words), CHUNK_WORDS):
        yield " ".join(words[start : start + CHUNK_WORDS])


def _chinese() -> Iterator[str]:
    for path in sorted((SHARED / "rephrased_llm_decontaminator").glob("*_chinese.jsonl")):
        yield from path.read_text(encoding="utf-8").splitlines()


def _bytes(path: Path) -> bytes:
    data = path.read_bytes()
    return gzip.decompress(data) if path.suffix == ".gz" else data


def _read(path: str) -> str:
    return _bytes(SHARED / path).decode()


def _json(path: str) -> Any:
    return json.loads(_read(path))


def _lines(path: str) -> Iterator[dict[str, Any]]:
    yield from map(json.loads, filter(str.strip, _read(path).split("\n")))


def _parse(path: Path) -> Any:
    parser = etree.XMLParser(load_dtd=False, no_network=True, resolve_entities=False)
    return etree.fromstring(_bytes(path), parser)
