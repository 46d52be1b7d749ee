"""What a run goes on with when it is resumed, and when it is refused."""

import pytest

from factory.control import clusters
from factory.control.code_identity import code_identity
from factory.control.resources import Factory, resources
from factory.control.resuming import FRESH_DATA, RESUMES, resumed, tags_of
from factory.control.training import training_job
from factory.errors import DeclarationError, GateRefused, NamespaceError, SpecError
from factory.namespace import Namespace, RunDirectory
from factory.namespace.attempts import Attempt, last_attempt
from factory.namespace.checkpoints import Marker, checkpoint_path, complete
from factory.namespace.runs import record_path
from factory.namespace.specs import keep_spec, last_spec
from factory.reports import RunRecord
from factory.settings import Settings
from factory.spec import CodeIdentity, Launch, RunSpec
from tests.control.conftest import Bench
from tests.data.mixing.clinical import DATASETS, publish
from tests.observe.mixture.made import lock_of

SPEC = RunSpec(recipe="debug.pretrain", mix="smoke")


@pytest.fixture
def factory(settings: Settings) -> Factory:
    return Factory(settings)


@pytest.fixture
def run(settings: Settings) -> RunDirectory:
    return Namespace(settings.root).open_run("public", "run-1")


def began(run: RunDirectory, attempt: int = 1, **datasets: str) -> Launch:
    """The run as an attempt left it, without a checkpoint."""
    launch = Launch(
        run_id=run.run_id,
        attempt=attempt,
        classification="public",
        spec=SPEC,
        profile="cpu",
        datasets=datasets,
        image=None,
        code=CodeIdentity(commit=None, tree="then", lock="then"),
    )
    record = RunRecord(
        launch=launch, started_at="2026-01-01", python="3.12", packages={}, nodes=[], world_size=1
    )
    number = "" if attempt == 1 else f".{attempt}"
    if last_attempt(run) < attempt:
        Attempt(run, attempt).claim()
    run.create(f"spec{number}.json", SPEC.model_dump_json().encode())
    run.create(f"record{number}.json", record.model_dump_json().encode())
    return launch


def of_the_mix(factory: Factory) -> dict[str, str]:
    """What the mix of the spec reads, in the namespace."""
    version = publish(factory.namespace, "text/plos", DATASETS["text/glossary"])
    return {version.key.path: version.id}


def saved(run: RunDirectory, step: int) -> None:
    checkpoint_path(run, step).mkdir(parents=True)
    complete(checkpoint_path(run, step), Marker(step=step, attempt=1, identity={}, files={}))


def test_it_is_the_next_attempt_with_the_data_of_the_first(run, factory) -> None:
    first = began(run)
    saved(run, 40)
    spec = SPEC.model_copy(update={"run_limit_hours": 2.0})
    again = resumed(spec, tags_of(run.run_id), factory)
    assert (again.run_id, again.attempt, again.fresh_data) == (run.run_id, 2, False)
    assert again.datasets == first.datasets
    assert again.spec == spec
    assert again.code == code_identity()
    Attempt(run, 2).claim()
    assert resumed(SPEC, tags_of(run.run_id), factory).attempt == 3


def test_fresh_data_is_asked_for_by_a_tag(run, factory) -> None:
    began(run, **of_the_mix(factory))
    saved(run, 40)
    tags = tags_of(run.run_id, fresh_data=True)
    assert tags == {RESUMES: "run-1", FRESH_DATA: "true"}
    assert resumed(SPEC, tags, factory).fresh_data


def test_without_a_complete_checkpoint_there_is_nothing_to_go_on_from(run, factory) -> None:
    began(run)
    checkpoint_path(run, 40).mkdir(parents=True)
    with pytest.raises(GateRefused, match="no complete checkpoint"):
        resumed(SPEC, tags_of(run.run_id), factory)


def test_a_run_whose_record_is_gone_is_refused(run, factory) -> None:
    saved(run, 40)
    with pytest.raises(GateRefused, match=r"record\.json cannot be read"):
        resumed(SPEC, tags_of(run.run_id), factory)


def test_a_public_run_goes_on_with_no_private_weights(run, factory) -> None:
    began(run)
    saved(run, 40)
    overrides = {"checkpoint.pretrained_checkpoint": f"{run.root}/private/runs/run-0"}
    with pytest.raises(SpecError, match="lies in the private tree, and the run is public"):
        resumed(SPEC.model_copy(update={"overrides": overrides}), tags_of(run.run_id), factory)


@pytest.mark.parametrize("field", ["recipe", "mix"])
def test_another_experiment_is_another_run(run, factory, field: str, monkeypatch) -> None:
    began(run)
    saved(run, 40)
    monkeypatch.setattr("factory.control.resuming.check", lambda spec: spec)
    with pytest.raises(SpecError, match=f"has another {field} than"):
        resumed(SPEC.model_copy(update={field: "other"}), tags_of("run-1"), factory)


def test_a_version_that_is_gone_is_named(run, factory) -> None:
    began(run, **{"public/text/letters/energon/train": "0" * 20})
    saved(run, 40)
    with pytest.raises(GateRefused, match="what it reads is gone or damaged") as refused:
        resumed(SPEC, tags_of(run.run_id), factory)
    assert "public/text/letters/energon/train" in str(refused.value)


def test_a_version_that_was_changed_on_the_disk_is_named(run, factory) -> None:
    version = publish(factory.namespace, "text/glossary", DATASETS["text/glossary"])
    began(run, **{version.key.path: version.id})
    saved(run, 40)
    assert resumed(SPEC, tags_of(run.run_id), factory).datasets == {version.key.path: version.id}
    shard = next(version.path.glob("*.tar"))
    shard.chmod(0o644)
    data = bytearray(shard.read_bytes())
    data[len(data) // 2] ^= 1
    shard.write_bytes(data)
    with pytest.raises(GateRefused, match="is gone or damaged") as refused:
        resumed(SPEC, tags_of(run.run_id), factory)
    assert f"{version}: {shard.name}: has other content" in str(refused.value)


def test_the_data_are_those_of_the_first_attempt_that_left_a_record(run, factory) -> None:
    launch = began(run, attempt=3)
    began(run, attempt=2)
    saved(run, 40)
    assert record_path(run).name == "record.2.json"
    assert resumed(SPEC, tags_of(run.run_id), factory).run_id == launch.run_id
    began(run)
    assert record_path(run).name == "record.json"


def test_a_run_that_began_again_with_another_mix_goes_on_with_that(run, factory) -> None:
    began(run, **of_the_mix(factory))
    saved(run, 40)
    before, after = lock_of(), lock_of(basis="token")
    for name, lock in (("mix.lock", before), ("mix.2.lock", after)):
        run.create(name, lock.to_json())
        assert resumed(SPEC, tags_of(run.run_id), factory).mix_lock == lock.hash
    assert before.hash != after.hash
    assert resumed(SPEC, tags_of(run.run_id, fresh_data=True), factory).mix_lock == ""


def test_the_spec_of_the_last_attempt_is_what_goes_on(run) -> None:
    with pytest.raises(SpecError, match="left no spec"):
        last_spec(run)
    began(run)
    assert last_spec(run) == SPEC
    later = SPEC.model_copy(update={"workers": 2})
    Attempt(run, 2).claim()
    assert last_spec(run) == SPEC, "an attempt that wrote none has that of the one before"
    run.create("spec.2.json", later.model_dump_json().encode())
    assert last_spec(run) == later


def test_a_resumption_that_no_driver_began_is_no_obstacle_to_the_next(run, factory) -> None:
    began(run)
    saved(run, 40)
    for workers in (2, 3):
        spec = SPEC.model_copy(update={"workers": workers})
        keep_spec(run, resumed(spec, tags_of(run.run_id), factory).attempt, spec)
    again = resumed(SPEC, tags_of(run.run_id), factory)
    assert again.attempt == 2
    Attempt(run, 2).claim()
    assert last_spec(run).workers == 3
    with pytest.raises(NamespaceError, match=r"spec\.2\.json exists already"):
        keep_spec(run, again.attempt, SPEC)


def test_the_tag_reaches_the_gate_of_a_job(bench: Bench) -> None:
    result = training_job("job", SPEC).execute_in_process(
        instance=bench.instance,
        resources=dict(resources(bench.settings)),
        tags={RESUMES: "no-such-run"},
        raise_on_error=False,
    )
    (failure,) = [event for event in result.all_events if event.is_step_failure]
    assert failure.step_key == "gate"
    assert "No run no-such-run" in str(failure.step_failure_data.error)


def test_no_such_run(factory) -> None:
    with pytest.raises(NamespaceError, match="No run run-9"):
        resumed(SPEC, tags_of("run-9"), factory)


def test_a_cluster_says_what_its_ranks_are_given(tmp_path) -> None:
    text = "name: far\nkind: local\nprofile: h100\ngrace_seconds: 120\n"
    (tmp_path / "far.yaml").write_text(text + "rank_environment: {NCCL_IB_HCA: mlx5}\n")
    far = clusters.cluster("far", tmp_path)
    assert far.rank_environment == {"NCCL_IB_HCA": "mlx5"}
    assert far.grace_seconds == 120
    (tmp_path / "far.yaml").write_text(text + "rank_environment: {RANK: '0'}\n")
    with pytest.raises(DeclarationError, match="RANK: the factory sets these"):
        clusters.cluster("far", tmp_path)
