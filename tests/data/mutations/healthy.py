"""A version of every step that passes its checks, made of a small delivery by the real steps.

The rows have what the checks look at: two files (so that tables have two parts), a row without a
text (so that one is rejected), a text that comes twice (so that one is removed), two pictures.
"""

import json
from dataclasses import dataclass
from pathlib import Path

import pytest

from factory.data import Dataset, Images, LocalFiles, Rejected, Row, Sample, checks, shards
from factory.data.checks import Check
from factory.data.free_checks import run_checks
from factory.data.steps import run_step, steps
from factory.keys import Key, private
from factory.namespace import Namespace, Provenance, Version
from factory.settings import Settings
from tests.data.kinds import image

PICTURES = (20, 21)


def clean(row: Row) -> Sample | Rejected:
    """A letter, or a picture of one; the letters of a person are a group."""
    text = row.text("text")
    if not text:
        return Rejected("no text")
    if row.text("picture"):
        parts = [text, image(row.text("picture").encode())]
        return Sample.image_text(id=row.text("id"), parts=parts, group=row.text("person"))
    sections = [("", text)]
    return Sample.document(id=row.text("id"), title="", sections=sections, group=row.text("person"))


DECLARED = Dataset(
    key=private("text/mutated"),
    license="LicenseRef-test",
    source=LocalFiles(folder="mutated", rows="*.jsonl", classification="private"),
    clean=clean,
    images=Images(),
    split={"train": 0.5, "test": 0.5},
    checks=[checks.rows(20, 30), checks.rejected("no text", at_most=0.1)],
)
"""With a check of each kind that a declaration can add."""


@dataclass(frozen=True)
class Healthy:
    """Versions that have passed, by kind of step, and what they passed."""

    versions: dict[str, Path]
    checks: dict[tuple[str, str], Check]
    """By kind of step and name."""


def made(folder: Path, last: str) -> Healthy:
    """Run the steps in a folder of their own; each version has to pass before the next is made."""
    settings = _settings(folder)
    _deliver(settings.drops / "mutated")
    namespace = Namespace(settings.root)
    healthy = Healthy({}, {})
    current: dict[Key, Version] = {}
    for step in steps(DECLARED):
        given = {key: current[key] for key in step.inputs}
        by = Provenance(run_id="run", identity="test")
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(shards, "SHARD_BYTES", 1)  # a shard for each file
            made = run_step(step, namespace, given, settings=settings, provenance=by)
        results = run_checks(step, made.version, namespace)
        assert all(one.passed for one in results.values()), results
        current[step.key] = namespace.promote(made.version) or made.version
        healthy.versions[step.kind] = made.version.path
        healthy.checks.update({(step.kind, one.name): one for one in step.checks})
        if step.name == last:
            break
    return healthy


def _settings(folder: Path) -> Settings:
    names = {"FACTORY_ROOT": "root", "FACTORY_STATE": "state", "FACTORY_DROPS": "drops"}
    for name in names.values():
        (folder / name).mkdir()
    return Settings.from_environment({key: str(folder / name) for key, name in names.items()})


def _deliver(folder: Path) -> None:
    folder.mkdir()
    texts = [f"letter {n}" for n in range(24)] + ["", "letter 3"]
    rows = [
        {
            "id": f"letter-{n}",
            "person": f"person-{n // 2}",
            "text": text,
            "picture": f"{n}" if n in PICTURES else "",
        }
        for n, text in enumerate(texts)
    ]
    for number, part in enumerate((rows[:13], rows[13:])):
        lines = "".join(json.dumps(row) + "\n" for row in part)
        (folder / f"part-{number}.jsonl").write_text(lines, encoding="utf-8")
