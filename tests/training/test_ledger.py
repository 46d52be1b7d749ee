"""The ledger of real runs: counted while a model trains, and counted again from the data alone."""

import contextlib
import sqlite3
from collections.abc import Iterator
from dataclasses import dataclass, replace

import pytest

from factory.cli.app import run as factory
from factory.keys import parse, private
from factory.namespace import Namespace, RunDirectory, Version
from factory.observe.mixture.files import ledger_of, lock_of, reading_of
from factory.observe.mixture.realized import realized_of
from factory.observe.mixture.replay import differences, replayed
from factory.reports import MixtureLine, StepLine
from factory.settings import Settings
from factory.spec import CodeIdentity, Launch, RunSpec
from tests.training.conftest import KEY, documents, publish
from tests.training.forks import Forks

pytestmark = pytest.mark.slow

LETTERS = private("text/discharge_letters/energon/train")
OVERRIDES = {
    "train.train_iters": "12",
    "train.global_batch_size": "8",
    "train.micro_batch_size": "2",
    "logger.log_interval": "5",
    "checkpoint.save_interval": "4",
}


@dataclass
class Place:
    """A namespace with the two datasets of the mix `letters`, and what forks drivers in it."""

    settings: Settings
    versions: dict[str, Version]
    forks: Forks
    alone: RunDirectory | None = None

    def launch(self, run_id: str, attempt: int = 1, **spec: object) -> Launch:
        fields = {"recipe": "debug.pretrain", "mix": "letters", "overrides": OVERRIDES}
        return Launch(
            run_id=run_id,
            attempt=attempt,
            classification="private",
            spec=RunSpec.model_validate(fields | spec),
            profile="cpu",
            datasets={key: version.id for key, version in self.versions.items()},
            image=None,
            code=CodeIdentity(commit=None, tree="test", lock="test"),
        )

    def trained(self, launch: Launch) -> RunDirectory:
        forked = self.forks.start(launch)
        assert forked.wait() == 0, forked.output
        return forked.run

    def whole(self) -> RunDirectory:
        """A run of one rank that reads by itself, trained once for all tests."""
        if self.alone is None:
            self.alone = self.trained(self.launch("whole"))
        return self.alone


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    base = tmp_path_factory.mktemp("ledger")
    (base / "namespace").mkdir()
    settings = Settings.from_environment(
        {"FACTORY_ROOT": str(base / "namespace"), "FACTORY_STATE": str(base / "state")}
    )
    namespace = Namespace(settings.root)
    articles = documents(12, words=300)
    letters = [replace(one, id=f"letter-{one.id}") for one in documents(40, words=40, seed=8)]
    versions = {
        KEY.path: publish(namespace, articles),
        LETTERS.path: publish(namespace, letters, LETTERS),
    }
    forks = Forks(settings)
    yield Place(settings, versions, forks)
    forks.close()


def again(place: Place, run: RunDirectory, lines: list[MixtureLine]) -> list[str]:
    """What a replay does not agree with."""
    lock, namespace = lock_of(run.path), Namespace(place.settings.root)
    folders = {
        one.key: namespace.version(parse(one.train), one.version).path for one in lock.sources
    }
    steps = [line.step for line in lines]
    found = replayed(lock, folders, reading_of(run.path), steps, lambda done, of: None)
    return differences(lines, found)


def steps_of(run: RunDirectory) -> dict[int, StepLine]:
    text = (run.path / "monitor" / "steps.jsonl").read_text()
    lines = [StepLine.model_validate_json(line) for line in text.splitlines()]
    return {line.step: line for line in lines}


def metrics(place: Place, run: RunDirectory, name: str) -> dict[int, float]:
    """What MLflow has of a run, by step."""
    database = place.settings.state / "mlflow" / "private" / "mlflow.db"
    with contextlib.closing(sqlite3.connect(database)) as opened:
        rows = opened.execute(
            "SELECT step, value FROM metrics WHERE run_uuid = ? AND key = ?",
            ((run.path / "mlflow.id").read_text(), name),
        )
        return dict(rows.fetchall())


@pytest.mark.parametrize(("ranks", "loader_workers"), [(1, 0), (1, 2), (2, 0)])
def test_live_equals_replay_and_what_megatron_counted(place: Place, ranks, loader_workers):
    layout = {"workers": ranks, "loader_workers": loader_workers}
    name = f"live-{ranks}-{loader_workers}"
    simple = layout == {"workers": 1, "loader_workers": 0}
    run = place.whole() if simple else place.trained(place.launch(name, **layout))
    lines = ledger_of(run.path)
    assert [line.step for line in lines] == [5, 10, 12]
    assert again(place, run, lines) == []
    for line in lines:
        trained = sum(source.loss_tokens for source in line.sources)
        assert trained == steps_of(run)[line.step].tokens, "Megatron counts tokens with loss itself"
        assert line.slots == line.step * 8 * 256
    mix = realized_of(run.path)
    assert mix is not None
    assert [source.declared for source in mix.sources] == [0.75, 0.25]
    assert all(source.counts.samples > 0 for source in mix.sources)
    names = {path.name for path in (run.path / "mixture").iterdir()}
    assert names >= {"ledger.parquet", "realized.json", "realized.svg"}
    shares = metrics(place, run, "share_of_loss_tokens/private/text/discharge_letters")
    assert sorted(shares) == [5, 10, 12]
    first, second = lines[0].sources[0], lines[1].sources[0]
    both = sum(source.loss_tokens for source in lines[1].sources) - steps_of(run)[5].tokens
    assert shares[10] == pytest.approx((second.loss_tokens - first.loss_tokens) / both)


def test_a_run_that_goes_on_counts_on(place: Place):
    """The second attempt begins in the middle of an interval, and knows what was counted in it."""
    short = {**OVERRIDES, "train.train_iters": "8"}
    run = place.trained(place.launch("parts", overrides=short))
    assert [line.step for line in ledger_of(run.path)] == [5, 8]
    place.trained(place.launch("parts", attempt=2))
    lines = ledger_of(run.path)
    assert [line.step for line in lines] == [5, 8, 10, 12]
    assert [one.sources for one in lines if one.step != 8] == [
        one.sources for one in ledger_of(place.whole().path)
    ]
    assert again(place, run, lines) == []
    assert (run.path / "mixture" / "realized.2.json").exists()


def test_the_command_counts_again_and_says_where_a_run_read_something_else(
    place: Place, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
):
    for name, value in place.settings.environment().items():
        monkeypatch.setenv(name, value)
    run = place.whole()
    assert factory(["mixture", "whole", "--replay"]) == 0
    assert (
        "The replay agrees: 51 numbers of 3 lines, the last of step 12." in capfd.readouterr().out
    )
    last = ledger_of(run.path)[-1]
    first, *others = last.sources
    forged = last.model_copy(
        update={"sources": (first.model_copy(update={"tokens": first.tokens + 1}), *others)}
    )
    run.append("mixture/ledger.jsonl", forged.model_dump_json())
    assert factory(["mixture", "whole", "--replay"]) == 1
    run.append("mixture/ledger.jsonl", last.model_dump_json())
    said = capfd.readouterr().err
    assert f"step 12: tokens of {first.source}: {first.tokens + 1} in the run" in said
    assert "documents of" not in said


def test_a_run_without_a_ledger_trains_as_well(place: Place):
    run = place.trained(place.launch("bare", ledger=False, chain=False))
    assert not (run.path / "mixture").exists()
    assert not (run.path / "chain").exists()
    assert max(steps_of(run)) == 12
