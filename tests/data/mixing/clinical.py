"""A mix with the shares of a real clinical run, on generated data.

Declared 71, 10 and 19 by sample for domain shift, warm-up and retention. Articles are a fifth of
the samples and 43% of the tokens, 51% of those that carry loss; tool use is 12% of the tokens and
5% of the loss; and the small dataset of the warm-up is read nine times.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from factory.data import Dataset, LocalFiles, Rejected, Sample, energon
from factory.data.loss import Loss
from factory.data.mix import Mix
from factory.data.mixing.settings import DataSettings
from factory.keys import public
from factory.namespace import Namespace, Provenance, Version
from tests.shards import content_id, in_order, write_shards

STEPS = 38

DATA_SETTINGS = DataSettings(
    recipe="debug.pretrain",
    tokenizer="bytes",
    chat="plain",
    regime="boundary_aware",
    buffer=1024,
    shuffle=100,
    context=512,
    alignment=1,
    steps=STEPS,
    sequences=8,
)


def _text(words: int, number: int) -> str:
    return " ".join(f"{(number * 31 + at * 7) % 900 + 100}" for at in range(words))


def _varying(mean: int, number: int) -> int:
    """Between half of the mean and one and a half times it, the mean over a hundred in a row."""
    return mean + round(mean * ((number % 100) - 49.5) / 100)


def article(number: int) -> Sample:
    """A document: all of it carries loss."""
    text = _text(_varying(104, number), number)
    return Sample.document(id=f"a{number}", title="", sections=[("", text)], license="CC0-1.0")


def asked(question_words: int, answer_words: int) -> Callable[[int], Sample]:
    """A question, which carries none, and its answer."""

    def made(number: int) -> Sample:
        return Sample.question(
            id=f"q{number}",
            question=_text(_varying(question_words, number), number),
            answer=_text(_varying(answer_words, number), number),
            license="CC0-1.0",
        )

    return made


@dataclass(frozen=True)
class Made:
    """A generated dataset."""

    weight: float
    samples: int
    sample: Callable[[int], Sample]


DATASETS: Mapping[str, Made] = {
    "text/glossary": Made(10, 9, asked(2, 19)),
    "text/articles": Made(20, 960, article),
    "dialogue/notes": Made(51, 600, asked(1, 22)),
    "instructions/general": Made(10, 280, asked(4, 52)),
    "tools/calls": Made(9, 200, asked(37, 23)),
}


def declared(name: str) -> Dataset:
    """The declaration of one of them."""
    return Dataset(
        key=public(name),
        license="CC0-1.0",
        source=LocalFiles(folder=name, rows="*.txt", classification="public"),
        clean=lambda _: Rejected("not read here"),
        split={"train": 1.0},
    )


def mix(**changes: object) -> Mix:
    """The mix of all of them."""
    of = {name: (made.weight, declared(name)) for name, made in DATASETS.items()}
    fields = {
        "warmup": [of["text/glossary"]],
        "domain_shift": [of["text/articles"], of["dialogue/notes"]],
        "retention": [of["instructions/general"], of["tools/calls"]],
    }
    return Mix(**(fields | changes))  # type: ignore[arg-type]


def publish(namespace: Namespace, name: str, made: Made) -> Version:
    """Its samples as the current version of what a run reads, without Energon's index."""
    key = public(name)
    samples = [replace(made.sample(number), source=key.path) for number in range(made.samples)]
    return publish_entries(namespace, name, samples)


def publish_entries(namespace: Namespace, name: str, samples: Sequence[Sample]) -> Version:
    """Samples, with their images, as the current version of what a run reads of a dataset."""
    writing = namespace.write(
        public(name) / "energon" / "train",
        inputs=[],
        input_id=f"made {name}",
        provenance=Provenance(run_id="test", identity="test", image=None),
        source="public",
        parameters={},
        code="test",
        checks=[],
        licenses=["CC0-1.0"],
    )
    with writing as staging:
        contents = write_shards(staging.path, in_order(samples))
        energon.write_loss(staging.path, Loss())
        staging.describe(content_id=content_id(contents), rows=len(samples), columns={}, facts={})
    namespace.promote(staging.version)
    return staging.version


def published(root: Path) -> dict[str, Version]:
    """All of them in a namespace, by the key of what a run reads."""
    root.mkdir(exist_ok=True)
    namespace = Namespace(root)
    made = (publish(namespace, name, one) for name, one in DATASETS.items())
    return {version.key.path: version for version in made}
