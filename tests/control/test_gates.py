"""The gate: what a run may read, whatever happened to it since it was made."""

import hashlib
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from factory import discovery
from factory.control.gates import gate
from factory.control.instance import ensure
from factory.control.resources import Factory
from factory.data import Check, CheckResult, Git, LocalFiles
from factory.data.mix import Mix
from factory.errors import GateRefused, SpecError
from factory.keys import private
from factory.namespace import CheckRecord
from factory.settings import Settings
from factory.spec import Launch, RunSpec
from tests.control.conftest import Bench, deliver, letters, settings_in

pytestmark = pytest.mark.slow

MIRRORED = "https://example.org/letters"
TRAIN = "public/text/letters/energon/train"


@pytest.fixture(scope="module")
def spec() -> RunSpec:
    return RunSpec(recipe="debug.pretrain", mix="letters")


@pytest.fixture
def mixes(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> dict[str, Mix]:
    """The declared mixes: one of the dataset of the bench."""
    declared = {"letters": Mix(domain_shift=[(1.0, bench.declared[0])])}
    monkeypatch.setattr(discovery, "mixes", lambda: declared)
    return declared


@pytest.fixture(scope="module")
def made_once(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A namespace in which the dataset is materialized and its checks have passed."""
    settings = settings_in(tmp_path_factory.mktemp("made"))
    deliver(settings)
    with ensure(settings) as instance:
        assert Bench(settings, instance, [letters()]).run().success
    return settings.root


@pytest.fixture
def made(bench: Bench, mixes: dict[str, Mix], made_once: Path) -> Bench:
    """The dataset is materialized: a copy of the namespace, so that a test may damage it."""
    shutil.copytree(made_once, bench.settings.root, symlinks=True, dirs_exist_ok=True)
    return bench


def pass_gate(bench: Bench, spec: RunSpec) -> Launch:
    return gate(spec, run_id="run-1", factory=Factory(bench.settings))


def refusal(bench: Bench, spec: RunSpec) -> str:
    with pytest.raises(GateRefused) as refused:
        pass_gate(bench, spec)
    return str(refused.value)


def test_pins_current_versions(made: Bench, spec: RunSpec) -> None:
    launch = pass_gate(made, spec)
    assert launch.datasets == {
        TRAIN: made.current("energon/train").id,
        "public/text/letters/energon/validation": made.current("energon/validation").id,
    }
    assert launch.classification == "public"
    assert launch.profile == "cpu"
    assert launch.code.lock


def test_rollback_and_then_launch_pins_the_older_version(made: Bench, spec: RunSpec) -> None:
    old = made.current("energon/train")
    deliver(made.settings, rows=80)
    assert made.run().success
    assert pass_gate(made, spec).datasets[TRAIN] != old.id
    made.namespace.rollback(old.key, old.id)
    assert pass_gate(made, spec).datasets[TRAIN] == old.id


def test_failed_check_upstream_and_then_a_later_run(made: Bench, spec: RunSpec) -> None:
    """A check that is run again and fails counts, although Dagster would start another run."""
    clean = made.current("clean")
    record = CheckRecord(
        passed=False, blocking=True, summary="", checked_at="2026-01-01T00:00:00+00:00"
    )
    made.namespace.record_checks(clean, {"schema": record})
    assert f"{clean}: check schema (failed)." in refusal(made, spec)


def test_check_of_another_version_does_not_count(made: Bench, spec: RunSpec) -> None:
    """The newest version fails; the current one passed, and is what the run reads."""
    before = pass_gate(made, spec).datasets

    def never(_: Path) -> CheckResult:
        return CheckResult(False, "no")

    deliver(made.settings, rows=80)
    made.declared[:] = [letters(checks=[Check("never", never)])]
    assert not made.run().success
    assert pass_gate(made, spec).datasets == before


def test_limited_run_and_then_a_mix(bench: Bench, mixes: dict[str, Mix], spec: RunSpec) -> None:
    assert bench.run(limit=30).success
    assert f"{TRAIN} is not materialized" in refusal(bench, spec)


def test_partial_version_and_then_a_mix(bench: Bench, mixes: dict[str, Mix], spec: RunSpec) -> None:
    """It is current all the same, and only a test may train on it."""
    whole = letters()
    part = replace(whole, source=Git(url=MIRRORED, revision="a" * 40, rows="*.jsonl"))
    mixes["letters"] = Mix(domain_shift=[(1.0, part)])
    bench.declared[:] = [part]
    bench.settings = bench.settings.model_copy(update={"mirrors": partial_mirror(bench.settings)})
    assert bench.run().success
    train = bench.current("energon/train")
    assert f"{train} is PARTIAL: it was made from a mirror" in refusal(bench, spec)
    bench.settings = bench.settings.model_copy(update={"allow_partial": True})
    assert pass_gate(bench, spec).datasets[TRAIN] == train.id


def partial_mirror(settings: Settings) -> Path:
    """A mirror of one file, with the rows that were delivered."""
    assert settings.drops is not None
    mirrors = settings.root.parent / "mirrors"
    folder = mirrors / "letters"
    folder.mkdir(parents=True)
    rows = (settings.drops / "letters" / "rows.jsonl").read_bytes()
    (folder / "rows.jsonl").write_bytes(rows)
    sha256 = hashlib.sha256(rows).hexdigest()
    (folder / "mirror.toml").write_text(
        f'pin = "{"a" * 40}"\npartial = true\n[files]\n'
        f'"rows.jsonl" = {{ path = "rows.jsonl", sha256 = "{sha256}" }}\n'
    )
    file = mirrors / "mirrors.toml"
    file.write_text(f'[mirrors]\n"{MIRRORED}" = "letters"\n')
    return file


def test_everything_wrong_is_listed_at_once(
    bench: Bench, mixes: dict[str, Mix], spec: RunSpec
) -> None:
    message = refusal(bench, spec)
    assert f"{TRAIN} is not materialized" in message
    assert "public/text/letters/energon/validation is not materialized" in message


def test_check_added_to_the_declaration_must_have_run(
    made: Bench, mixes: dict[str, Mix], spec: RunSpec
) -> None:
    added = Check("added", lambda _: CheckResult(True, "fine"), step="split")
    mixes["letters"] = Mix(domain_shift=[(1.0, letters(checks=[added]))])
    assert f"{made.current('split')}: check added (not run)." in refusal(made, spec)


def test_damage_is_found(made: Bench, spec: RunSpec) -> None:
    version = made.current("energon/train")
    name = next(name for name in version.manifest.files if name.endswith(".tar"))
    shard = version.path / name
    shard.chmod(0o644)
    shard.write_bytes(shard.read_bytes()[:-1] + b"x")
    message = refusal(made, spec)
    assert "is damaged" in message
    assert name in message


def test_upstream_version_that_is_gone(made: Bench, spec: RunSpec) -> None:
    split = made.current("split")
    path = split.path
    for entry in [path, *path.rglob("*")]:
        entry.chmod(0o755)
    shutil.rmtree(path)
    assert f"was made from {split.key}@{split.id}, which is gone" in refusal(made, spec)


def test_dataset_smaller_than_its_readers(made: Bench, spec: RunSpec) -> None:
    rows = made.current("energon/train").manifest.rows or 0
    wide = spec.model_copy(update={"workers": 16, "loader_workers": 4})
    message = refusal(made, wide)
    assert f"has {rows} samples; this run needs 64" in message


def test_private_dataset_makes_the_run_private(
    made: Bench, mixes: dict[str, Mix], spec: RunSpec
) -> None:
    secret = letters(
        private("text/notes"),
        source=LocalFiles(folder="letters", rows="*.jsonl", classification="private"),
    )
    made.declared.append(secret)
    assert made.run().success
    mixes["letters"] = Mix(domain_shift=[(1.0, made.declared[0]), (1.0, secret)])
    assert pass_gate(made, spec).classification == "private"


def test_mix_of_a_dataset_without_train(bench: Bench, mixes: dict[str, Mix], spec: RunSpec) -> None:
    mixes["letters"] = Mix(domain_shift=[(1.0, letters(split={"validation": 1.0}))])
    assert "public/text/letters declares no split 'train'" in refusal(bench, spec)


def test_unknown_names_are_refused_before_anything_is_read(
    bench: Bench, mixes: dict[str, Mix]
) -> None:
    wrong = RunSpec(recipe="debgu.pretrain", mix="leters", cluster="locale")
    with pytest.raises(SpecError) as refused:
        pass_gate(bench, wrong)
    message = str(refused.value)
    assert "No recipe 'debgu.pretrain'" in message
    assert "Did you mean letters?" in message
    assert "Did you mean local?" in message
