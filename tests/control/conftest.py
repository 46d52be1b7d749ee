"""A small dataset, a namespace and a Dagster instance of one's own, in a temporary directory."""

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import dagster as dg
import pytest

from factory.control.assets import catalog, op_name
from factory.control.instance import ensure
from factory.control.lineage import asset_key
from factory.control.resources import executor, resources
from factory.data import Dataset, LocalFiles, Rejected, Row, Sample
from factory.data.steps import Step, steps
from factory.keys import Key, public
from factory.namespace import Namespace, Version
from factory.settings import Settings

ROWS = 60


def clean(row: Row) -> Sample | Rejected:
    """Question and answer of a line; those without an answer are rejected."""
    if not row.text("answer"):
        return Rejected("no answer")
    return Sample.question(id=row.id, question=row.text("question"), answer=row.text("answer"))


def deliver(settings: Settings, folder: str = "letters", rows: int = ROWS, text: str = "") -> None:
    """Put a file of questions where a partner would."""
    assert settings.drops is not None
    target = settings.drops / folder
    target.mkdir(parents=True, exist_ok=True)
    lines = [
        {
            "question": f"{text}Question {i}?",
            "answer": "" if i % 10 == 0 else f"{text}{'word ' * i}",
        }
        for i in range(rows)
    ]
    (target / "rows.jsonl").write_text("\n".join(map(json.dumps, lines)) + "\n")


def letters(key: Key | None = None, **changes: object) -> Dataset:
    """A dataset of question and answer pairs from a drop folder."""
    chosen = key or public("text/letters")
    fields = {
        "key": chosen,
        "license": "CC-BY-4.0",
        "source": LocalFiles(
            folder="letters", rows="*.jsonl", classification=chosen.classification
        ),
        "clean": clean,
        "split": {"train": 0.8, "validation": 0.2},
        "description": "Letters.",
        **changes,
    }
    return Dataset(**fields)  # type: ignore[arg-type]


FAST = tuple(step.name for step in steps(letters()) if step.kind != "energon")
"""The steps that take no time: Energon's preparation takes seconds for each split."""

(AFTER_CLEAN,) = [step.name for step in steps(letters()) if letters().key / "clean" in step.inputs]
"""The step that reads `clean`."""


@dataclass
class Bench:
    """Runs of a catalogue in this process, and what they left behind."""

    settings: Settings
    instance: dg.DagsterInstance
    declared: list[Dataset] = field(default_factory=list)

    @property
    def namespace(self) -> Namespace:
        return Namespace(self.settings.root)

    def definitions(self) -> dg.Definitions:
        own = dg.Definitions(resources=resources(self.settings), executor=executor(self.settings))
        return dg.Definitions.merge(catalog(self.declared), own)

    def steps(self) -> list[Step]:
        return [step for dataset in self.declared for step in steps(dataset)]

    def run(self, *names: str, limit: int | None = None) -> dg.ExecuteInProcessResult:
        """Materialize the steps of these names, or all of them, with their checks."""
        chosen = [step for step in self.steps() if not names or step.name in names]
        ops = {
            op_name(step): {"config": {"limit": limit}}
            for step in chosen
            if limit is not None and step.kind == "clean"
        }
        return self.execute([asset_key(step.key) for step in chosen], {"ops": ops} if ops else {})

    def execute(
        self, keys: list[dg.AssetKey], run_config: dict[str, object] | None = None
    ) -> dg.ExecuteInProcessResult:
        job = self.definitions().resolve_implicit_global_asset_job_def()
        return job.execute_in_process(
            instance=self.instance,
            asset_selection=keys,
            raise_on_error=False,
            run_config=run_config or {},
        )

    def current(self, name: str, dataset: Dataset | None = None) -> Version:
        key = (dataset or self.declared[0]).key
        for segment in name.split("/"):
            key = key / segment
        version = self.namespace.current(key)
        assert version is not None, f"{key} has no current version"
        return version


def settings_in(folder: Path) -> Settings:
    """Settings whose every directory is in that folder."""
    for name in ("namespace", "drops"):
        (folder / name).mkdir(exist_ok=True)
    return Settings(
        deployment="laptop",
        root=folder / "namespace",
        state=folder / "state",
        dagster_home=folder / "dagster",
        mirrors=None,
        drops=folder / "drops",
        image=None,
    )


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return settings_in(tmp_path)


@pytest.fixture
def instance(settings: Settings) -> Iterator[dg.DagsterInstance]:
    with ensure(settings) as opened:
        yield opened


@pytest.fixture
def bench(settings: Settings, instance: dg.DagsterInstance) -> Bench:
    """The `letters` dataset, delivered and declared, not materialized."""
    deliver(settings)
    return Bench(settings, instance, [letters()])


type Find = Callable[[Path, bytes], list[Path]]


@pytest.fixture
def files_with() -> Find:
    """Every file below a directory that holds these bytes."""

    def find(directory: Path, marker: bytes) -> list[Path]:
        return [p for p in directory.rglob("*") if p.is_file() and marker in p.read_bytes()]

    return find
