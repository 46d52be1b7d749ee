"""`factory mix`: what a mix is made of and comes to, in words, and how two differ."""

import shutil
from pathlib import Path

import pytest
from syrupy.assertion import SnapshotAssertion

from factory import discovery
from factory.data.mix import Mix, Stage, Weighted
from factory.data.mixing import MixLock
from tests.cli.conftest import Factory
from tests.data.mixing.clinical import STEPS, declared, mix, published

READ = [
    *("--recipe", "debug.pretrain", "--set", "overrides.model.seq_length=512"),
    *("--set", f"overrides.train.train_iters={STEPS}"),
    *("--set", "overrides.train.global_batch_size=8"),
]


@pytest.fixture(scope="session")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A namespace with the data of the mix, and the state of a machine that has measured them."""
    base = tmp_path_factory.mktemp("mixes")
    published(base / "namespace")
    return base / "namespace", base / "state"


@pytest.fixture
def mixes(
    made: tuple[Path, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> dict[str, Mix]:
    """Two declared mixes, and no lock."""
    monkeypatch.setenv("FACTORY_ROOT", str(made[0]))
    monkeypatch.setenv("FACTORY_STATE", str(made[1]))
    folder = tmp_path / "definitions"
    (folder / "mixes").mkdir(parents=True)
    (folder / "jobs").mkdir()
    later = {"public/tools/calls": 25.0, "public/text/glossary": 0.0}
    other = mix(
        warmup=[Weighted(10, declared("text/glossary"), max_epochs=2)],
        retention=[(15, declared("tools/calls"))],
        basis="loss_token",
        stages=[Stage(from_step=0, context=256), Stage(from_step=20, weights=later)],
    )
    found = {"clinical": mix(), "by_loss": other}
    monkeypatch.setattr(discovery, "mixes", lambda: found)
    monkeypatch.setattr(discovery, "definitions_folder", lambda: folder)
    return found


def test_show_says_what_comes_of_the_weights(
    factory: Factory, mixes: dict[str, Mix], snapshot: SnapshotAssertion
) -> None:
    shown = factory("mix", "show", "clinical", *READ)
    assert (shown.code, shown.out) == (0, snapshot)
    facts = factory("mix", "show", "clinical", *READ, "--json").facts
    lock = MixLock.model_validate({name: facts[name] for name in facts if name != "hash"})
    assert facts["hash"] == lock.hash


def test_show_has_stages_caps_and_notes(
    factory: Factory, mixes: dict[str, Mix], snapshot: SnapshotAssertion
) -> None:
    assert factory("mix", "show", "by_loss", *READ).out == snapshot


def test_diff_says_what_changes_and_what_comes_of_it(
    factory: Factory, mixes: dict[str, Mix], snapshot: SnapshotAssertion
) -> None:
    told = factory("mix", "diff", "clinical", "by_loss", *READ)
    assert (told.code, told.out) == (1, snapshot)
    same = factory("mix", "diff", "clinical", "clinical", *READ)
    assert same.code == 0
    assert same.out.startswith("They are the same: ")


def test_diff_takes_files_of_runs(factory: Factory, mixes: dict[str, Mix], tmp_path: Path) -> None:
    facts = factory("mix", "show", "clinical", *READ, "--json").facts
    del facts["hash"]
    lock = MixLock.model_validate(facts)
    file = tmp_path / "mix.lock"
    file.write_bytes(lock.to_json())
    other = lock.sources[0].model_copy(update={"version": "f" * 20, "samples": 40})
    again = tmp_path / "again.lock"
    again.write_bytes(lock.model_copy(update={"sources": (other, *lock.sources[1:])}).to_json())
    assert factory("mix", "diff", str(file), "clinical", *READ).code == 0
    told = factory("mix", "diff", str(file), str(again), "--json")
    assert told.code == 1
    assert told.facts["changes"] == [
        f"public/text/glossary: version {lock.sources[0].version} -> {'f' * 20} (9 -> 40 samples)"
    ]
    assert str(file) in factory("mix", "show", str(file)).out


def test_a_lock_is_of_proven_versions(
    factory: Factory, mixes: dict[str, Mix], tmp_path: Path
) -> None:
    refused = factory("mix", "lock", "clinical", *READ)
    assert refused.code == 1
    assert "public/text/glossary/energon/train@" in refused.err
    assert "check index_opens (not run)." in refused.err
    assert not list((tmp_path / "definitions" / "mixes").iterdir())


def test_what_is_missing_is_named(
    factory: Factory, mixes: dict[str, Mix], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    unknown = factory("mix", "show", "clinica")
    assert unknown.code == 2
    assert "No mix 'clinica' in definitions/mixes. Did you mean clinical?" in unknown.err
    unread = factory("mix", "show", "clinical")
    assert unread.code == 2
    assert "No job trains on the mix 'clinical', so nothing says how it is read." in unread.err
    assert "No job 'mine'" in factory("mix", "show", "clinical", "--job", "mine").err
    nowhere = factory("mix", "diff", "clinical", "runs/mix.lock", *READ)
    assert (nowhere.code, "There is no file runs/mix.lock" in nowhere.err) == (2, True)
    (tmp_path / "empty").mkdir()
    monkeypatch.setenv("FACTORY_ROOT", str(tmp_path / "empty"))
    gone = factory("mix", "show", "clinical", *READ)
    assert gone.code == 1
    assert "public/tools/calls/energon/train is not materialized" in gone.err


def test_the_job_of_a_mix_says_how_it_is_read(
    factory: Factory, mixes: dict[str, Mix], tmp_path: Path
) -> None:
    job = tmp_path / "definitions" / "jobs" / "clinical.py"
    job.write_text(
        "from factory.control.training import training_job\n"
        "from factory.spec import RunSpec\n"
        'clinical = training_job("clinical", RunSpec(recipe="debug.pretrain", mix="clinical", '
        'overrides={"model.seq_length": "512", "train.train_iters": "38", '
        '"train.global_batch_size": "8"}))\n'
    )
    by_job = factory("mix", "show", "clinical", "--json").facts
    assert by_job == factory("mix", "show", "clinical", *READ, "--json").facts
    fewer = factory(
        "mix", "show", "clinical", "--set", "overrides.train.train_iters=19", "--json"
    ).facts
    assert fewer["hash"] == by_job["hash"]
    assert fewer["expectations"]["tokens"] == pytest.approx(by_job["expectations"]["tokens"] / 2)
    shutil.copy(job, job.with_name("again.py"))
    text = job.with_name("again.py").read_text().replace('"clinical", RunSpec', '"again", RunSpec')
    job.with_name("again.py").write_text(text)
    two = factory("mix", "show", "clinical")
    assert "The jobs again, clinical train on the mix 'clinical'" in two.err
    assert factory("mix", "show", "clinical", "--job", "again", "--json").facts == by_job
