"""The driver locks what the gate locked, or does not begin."""

from pathlib import Path

import pytest

from factory.data.mix import Mix
from factory.data.mixing import MixLock
from factory.data.mixing.of_runs import lock_path
from factory.errors import ResumeRefused, SpecError
from factory.keys import public
from factory.namespace import Namespace, Version
from factory.spec import CodeIdentity, Launch, RunSpec
from factory.training import reading
from tests.data.mixing.clinical import DATASETS, declared, publish

NAME = "text/glossary"


@pytest.fixture
def version(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Version:
    mix = Mix(domain_shift=[(1.0, declared(NAME))])
    monkeypatch.setattr(reading, "mixes", lambda: {"clinical": mix})
    (tmp_path / "namespace").mkdir()
    return publish(Namespace(tmp_path / "namespace"), NAME, DATASETS[NAME])


def launched(version: Version, mix_lock: str = "", **overrides: str) -> Launch:
    return Launch(
        run_id="run-1",
        attempt=1,
        classification="public",
        spec=RunSpec(recipe="debug.pretrain", mix="clinical", overrides=overrides),
        profile="cpu",
        datasets={(public(NAME) / "energon" / "train").path: version.id},
        mix_lock=mix_lock,
        image=None,
        code=CodeIdentity(commit=None, tree="test", lock="test"),
    )


def test_a_driver_without_a_gate_writes_the_lock(version: Version, tmp_path: Path) -> None:
    namespace = Namespace(tmp_path / "namespace")
    run = namespace.open_run("public", "run-1")
    lock = reading.write_lock(namespace, launched(version), run)
    assert MixLock.from_json((run.path / "mix.lock").read_bytes()) == lock
    assert lock.sources[0].version == version.id
    assert reading.write_lock(namespace, launched(version, lock.hash), run) == lock
    with pytest.raises(ResumeRefused, match="- packing buffer: 256 -> 9") as refused:
        reading.write_lock(namespace, launched(version, **{"dataset.buffer": "9"}), run)
    assert "--fresh-data" in str(refused.value)


def test_with_fresh_data_a_run_begins_again_with_another_lock(version, tmp_path: Path) -> None:
    namespace = Namespace(tmp_path / "namespace")
    run = namespace.open_run("public", "run-1")
    first = reading.write_lock(namespace, launched(version), run)
    other = launched(version, **{"dataset.buffer": "9"}).model_copy(update={"attempt": 10})
    second = reading.write_lock(namespace, other.model_copy(update={"fresh_data": True}), run)
    assert second.hash != first.hash
    assert MixLock.from_json((run.path / "mix.10.lock").read_bytes()) == second
    assert lock_path(run.path) == run.path / "mix.10.lock"
    assert reading.write_lock(namespace, other, run) == second, "from then on it is the run's"
    with pytest.raises(ResumeRefused, match="- packing buffer: 9 -> 256"):
        reading.write_lock(namespace, launched(version), run)


def test_a_mix_that_gained_a_dataset_is_refused_by_its_name(
    version: Version, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    namespace = Namespace(tmp_path / "namespace")
    run = namespace.open_run("public", "run-1")
    first = reading.write_lock(namespace, launched(version), run)
    more = Mix(domain_shift=[(1.0, declared(NAME)), (1.0, declared("text/articles"))])
    monkeypatch.setattr(reading, "mixes", lambda: {"clinical": more})
    again = launched(version, first.hash).model_copy(update={"attempt": 2})
    with pytest.raises(ResumeRefused) as refused:
        reading.write_lock(namespace, again, run)
    assert "reads public/text/articles by now, of which run run-1 has no version" in str(
        refused.value
    )
    assert f"It reads public/{NAME}." in str(refused.value)
    other = publish(namespace, "text/articles", DATASETS["text/articles"])
    both = {**again.datasets, other.key.path: other.id}
    changes = {"fresh_data": True, "datasets": both, "mix_lock": ""}
    lock = reading.write_lock(namespace, again.model_copy(update=changes), run)
    assert [source.version for source in lock.sources] == [version.id, other.id]
    assert lock_path(run.path) == run.path / "mix.2.lock"


def test_another_mix_than_the_gate_locked_is_refused(version: Version, tmp_path: Path) -> None:
    namespace = Namespace(tmp_path / "namespace")
    run = namespace.open_run("public", "run-1")
    with pytest.raises(SpecError, match="The gate locked the mix of run run-1 with f00d, and it"):
        reading.write_lock(namespace, launched(version, "f00d"), run)
    assert not (run.path / "mix.lock").exists()
