"""The checkout of a site: the factory's sources, and definitions of the site's own.

A dataset of made-up notes, the mix that is all of them, a job that trains on it, and the clusters
that a test writes there. Commands run in it as a person runs them.
"""

import json
import os
import random
import shutil
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from factory.settings import CHECKOUT

DATASET = "public/text/notes"
JOB = MIX = "notes"
ROWS = 120

_SOURCES = (".dockerignore", "factory", "images", "pyproject.toml", "requirements.lock")
_OF_EVERY_SITE = ("__init__.py", "catalog.py", "resources.py", "sensors.py")
_NOTES = '''"""Notes: questions and answers that were made up for a test."""

from factory.data import Dataset, LocalFiles, Row, Sample
from factory.keys import public


def clean(row: Row) -> Sample:
    """A question with its answer."""
    return Sample.question(id=row.id, question=row.text("question"), answer=row.text("answer"))


notes = Dataset(
    key=public("text/notes"),
    license="CC-BY-4.0",
    source=LocalFiles(folder="notes", rows="*.jsonl", classification="public"),
    clean=clean,
    split={"train": 0.8, "validation": 0.2},
)
'''
_MIX = '''"""Nothing but notes."""

from definitions.datasets.public.text.notes import notes as dataset
from factory.data.mix import Mix

notes = Mix(domain_shift=[(1.0, dataset)])
'''
_JOB = '''"""A few steps on notes."""

from factory.control.training import training_job
from factory.spec import RunSpec

notes = training_job("notes", RunSpec(recipe="debug.pretrain", mix="notes"))
'''
_WORDS = (
    *("the", "patient", "was", "given", "a", "dose", "of", "aspirin", "after", "onset", "and"),
    *("then", "rested", "well"),
)


@dataclass(frozen=True)
class Checkout:
    """Sources and definitions, and the environment that its commands run in."""

    path: Path
    environment: Mapping[str, str]

    def write_cluster(self, fields: Mapping[str, Any]) -> None:
        """Add a cluster's file."""
        file = self.path / "definitions" / "clusters" / f"{fields['name']}.yaml"
        file.write_text(yaml.safe_dump(dict(fields)))

    def start(self, *arguments: str, **environment: str) -> "subprocess.Popen[str]":
        """Start `factory` with these arguments; what it says is one stream."""
        return subprocess.Popen(
            [sys.executable, "-m", "factory", *arguments],
            cwd=self.path,
            env={**os.environ, **self.environment, **environment},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def run(self, *arguments: str, **environment: str) -> str:
        """What `factory` says with these arguments; it must end well."""
        process = self.start(*arguments, **environment)
        said, _ = process.communicate()
        assert process.returncode == 0, said
        return said


def write_checkout(folder: Path, root: Path) -> Checkout:
    """A checkout in that folder, whose namespace is at `root`."""
    path = folder / "checkout"
    no_bytecode = shutil.ignore_patterns("__pycache__")
    path.mkdir(parents=True)
    for name in _SOURCES:
        source = CHECKOUT / name
        if source.is_dir():
            shutil.copytree(source, path / name, ignore=no_bytecode)
        else:
            shutil.copy2(source, path / name)
    _write_definitions(path / "definitions")
    _write_drop(folder / "drops" / "notes")
    where = {"FACTORY_ROOT": root, "PYTHONPATH": path, "FACTORY_DROPS": folder / "drops"}
    where |= {"FACTORY_STATE": folder / "state", "DAGSTER_HOME": folder / "dagster"}
    return Checkout(path, {name: str(value) for name, value in where.items()})


def _write_definitions(folder: Path) -> None:
    declared = {"datasets/public/text": _NOTES, "mixes": _MIX, "jobs": _JOB}
    for parent, text in declared.items():
        (folder / parent).mkdir(parents=True)
        (folder / parent / "notes.py").write_text(text)
    for name in _OF_EVERY_SITE:
        shutil.copy2(CHECKOUT / "definitions" / name, folder / name)
    (folder / "clusters").mkdir()
    shutil.copy2(CHECKOUT / "definitions" / "clusters" / "local.yaml", folder / "clusters")


def _write_drop(folder: Path) -> None:
    chance = random.Random(7)
    folder.mkdir(parents=True)
    rows = [
        {"question": f"Note {number}?", "answer": " ".join(chance.choices(_WORDS, k=400))}
        for number in range(ROWS)
    ]
    (folder / "rows.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
