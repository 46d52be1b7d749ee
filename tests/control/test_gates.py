"""The gate: what a run may read, whatever happened to it since it was made."""

import hashlib
import shutil
from dataclasses import replace
from itertools import count
from pathlib import Path

import pytest

from factory import discovery
from factory.cli.app import run
from factory.control.gates import gained, gate
from factory.control.instance import ensure
from factory.control.locking import lock_file
from factory.control.mix_metadata import mix_metadata
from factory.control.resources import Factory
from factory.data import Check, CheckResult, Git, LocalFiles
from factory.data.mix import Mix, Weighted
from factory.data.mixing import MixLock
from factory.errors import GateRefused, SpecError
from factory.keys import parse, private, public
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


RUNS = (f"run-{number}" for number in count(1))


def pass_gate(bench: Bench, spec: RunSpec) -> Launch:
    return gate(spec, run_id=next(RUNS), factory=Factory(bench.settings))


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


def lock_of(bench: Bench, launch: Launch) -> MixLock:
    run = bench.namespace.run(launch.run_id)
    return MixLock.from_json((run.path / "mix.lock").read_bytes())


def test_locks_the_mix_into_the_run(made: Bench, spec: RunSpec) -> None:
    launch = pass_gate(made, spec)
    lock = lock_of(made, launch)
    assert lock.hash == launch.mix_lock
    train = made.current("energon/train")
    ((source,), expected) = (lock.sources, lock.expectations)
    assert (source.version, source.samples) == (train.id, train.manifest.rows)
    assert expected is not None
    assert (expected.steps, expected.sequences) == (80, 32)
    assert expected.sources[0].measured == train.manifest.rows
    shown = mix_metadata(made.namespace.run(launch.run_id).path)
    assert shown["mix lock"] == launch.mix_lock
    assert shown["mix"].records[0].data["expected share by sample"] == "100.0%"
    assert pass_gate(made, spec).mix_lock == launch.mix_lock, "of the same data in another run"
    other = spec.model_copy(update={"overrides": {"dataset.regime": "none"}})
    assert pass_gate(made, other).mix_lock != launch.mix_lock


@pytest.fixture
def pinned(made: Bench, spec: RunSpec, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> MixLock:
    """The mix is locked in the repository, and the dataset was made anew afterwards."""
    (tmp_path / "definitions" / "mixes").mkdir(parents=True)
    monkeypatch.setattr(discovery, "definitions_folder", lambda: tmp_path / "definitions")
    lock = lock_of(made, pass_gate(made, spec))
    lock_file("letters").write_bytes(lock.to_json())
    deliver(made.settings, rows=80)
    assert made.run().success
    return lock


def test_a_lock_in_the_repository_pins_the_versions(
    made: Bench, mixes: dict[str, Mix], pinned: MixLock, spec: RunSpec
) -> None:
    launch = pass_gate(made, spec)
    assert launch.mix_lock == pinned.hash
    version = made.namespace.version(parse(TRAIN), launch.datasets[TRAIN])
    assert launch.datasets[TRAIN] == pinned.sources[0].version != made.current("energon/train").id
    mixes["letters"] = Mix(retention=[Weighted(2.0, made.declared[0], max_epochs=9)])
    message = refusal(made, spec)
    for difference in (
        "has the role domain_shift, declared is retention",
        "has the weight 1.0, declared is 2.0",
        "has the max_epochs None, declared is 9",
    ):
        assert (
            f"letters.lock pins another mix than is declared: {source_key(made)} {difference}"
            in (message)
        )
    assert "`factory mix lock letters` locks it again" in message
    lock_file("letters").write_bytes(pinned.to_json().replace(pinned.hash.encode(), b"0"))
    with pytest.raises(SpecError, match=r"letters.lock says that its hash is 0"):
        pass_gate(made, spec)
    lock_file("letters").write_bytes(pinned.to_json())
    for entry in [version.path, *version.path.rglob("*")]:
        entry.chmod(0o755)
    shutil.rmtree(version.path)
    assert "letters.lock pins a version that is not there" in refusal(made, spec)


def test_factory_mix_lock_pins_what_is_current(
    made: Bench,
    mixes: dict[str, Mix],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    (tmp_path / "definitions" / "mixes").mkdir(parents=True)
    monkeypatch.setattr(discovery, "definitions_folder", lambda: tmp_path / "definitions")
    for name, value in made.settings.environment().items():
        monkeypatch.setenv(name, value)
    command = ["mix", "lock", "letters", "--recipe", "debug.pretrain"]
    assert run([*command, "--check"]) == 1
    assert not lock_file("letters").exists()
    assert run(command) == 0
    lock = MixLock.from_json(lock_file("letters").read_bytes())
    assert lock.sources[0].version == made.current("energon/train").id
    assert run([*command, "--check"]) == 0
    mixes["letters"] = Mix(domain_shift=[Weighted(3.0, made.declared[0], max_epochs=50)])
    capsys.readouterr()
    assert run([*command, "--check"]) == 1
    told = capsys.readouterr().out
    assert "would change" in told
    assert f"{source_key(made)}: caps none -> 50 epochs" in told
    assert MixLock.from_json(lock_file("letters").read_bytes()) == lock


def source_key(bench: Bench) -> str:
    return bench.declared[0].key.path


def test_caps_that_end_the_run_too_early(made: Bench, mixes: dict[str, Mix], spec: RunSpec) -> None:
    mixes["letters"] = Mix(domain_shift=[Weighted(1.0, made.declared[0], max_epochs=2)])
    message = refusal(made, spec)
    assert "The mix 'letters' has nothing left to read from about step" in message
    assert f"{source_key(made)} reaches 2 epochs at step" in message
    assert not list((made.settings.root / "public/runs/.pins").iterdir())


def test_a_run_keeps_the_lock_that_it_has(
    made: Bench, mixes: dict[str, Mix], spec: RunSpec
) -> None:
    factory = Factory(made.settings)
    launch = gate(spec, run_id="kept", factory=factory)
    assert gate(spec, run_id="kept", factory=factory) == launch
    mixes["letters"] = Mix(domain_shift=[Weighted(1.0, made.declared[0], overflow="drop")])
    with pytest.raises(GateRefused, match=r"Run kept was locked with .* too long is split -> drop"):
        gate(spec, run_id="kept", factory=factory)


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


def test_dataset_smaller_than_its_readers(
    made: Bench, mixes: dict[str, Mix], spec: RunSpec
) -> None:
    rows = made.current("energon/train").manifest.rows or 0
    wide = spec.model_copy(update={"workers": 16, "loader_workers": 4})
    message = refusal(made, wide)
    assert f"has {rows} samples; this run needs 64" in message
    mixes["letters"] = Mix(domain_shift=[Weighted(1.0, made.declared[0], max_epochs=0.01)])
    two = spec.model_copy(update={"workers": 2})
    assert f"has {rows} samples; this run needs 200" in refusal(made, two)


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


def test_a_public_run_goes_on_with_no_private_weights(made: Bench, spec: RunSpec) -> None:
    weights = str(made.settings.root / "private/runs/run-0/checkpoints/iter_40")
    overrides = {"checkpoint.pretrained_checkpoint": weights}
    with pytest.raises(SpecError, match="lies in the private tree, and the run is public"):
        pass_gate(made, spec.model_copy(update={"overrides": overrides}))


def test_a_mix_that_gained_a_dataset_since_the_run_began(
    made: Bench, mixes: dict[str, Mix], spec: RunSpec
) -> None:
    first, factory = pass_gate(made, spec), Factory(made.settings)
    assert gained(spec, first, factory) == {}
    other = letters(public("text/more"))
    mixes["letters"] = Mix(domain_shift=[(1.0, made.declared[0]), (1.0, other)])
    with pytest.raises(GateRefused, match="public/text/more/energon/train is not materialized"):
        gained(spec, first, factory)
    made.declared.append(other)
    assert made.run().success
    found = gained(spec, first, factory)
    assert sorted(found) == [f"public/text/more/energon/{name}" for name in ("train", "validation")]
    assert not found.keys() & first.datasets.keys()


def test_a_public_run_gains_no_private_data(
    made: Bench, mixes: dict[str, Mix], spec: RunSpec
) -> None:
    first = pass_gate(made, spec)
    secret = letters(
        private("text/notes"),
        source=LocalFiles(folder="letters", rows="*.jsonl", classification="private"),
    )
    mixes["letters"] = Mix(domain_shift=[(1.0, made.declared[0]), (1.0, secret)])
    with pytest.raises(GateRefused, match=r"is private by now, and run run-[0-9]+ is public"):
        gained(spec, first, Factory(made.settings))


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
