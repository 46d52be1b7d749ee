"""A declared mix becomes a lock: every version, the recipe's settings, and what to expect."""

import json
import tarfile
from dataclasses import replace

import pytest

from factory.data.mix import Stage, Weighted
from factory.data.mixing.measure import Measured
from factory.data.mixing.resolve import resolve, with_expectations
from factory.data.mixing.settings import DataSettings
from factory.errors import SpecError, StepError
from factory.namespace import Namespace
from tests.data.mixing.clinical import DATA_SETTINGS, declared, mix, publish_entries, published

TEXT, NOTES, TOOLS = "public/text/articles", "public/dialogue/notes", "public/tools/calls"


@pytest.fixture(scope="module")
def versions(tmp_path_factory):
    return published(tmp_path_factory.mktemp("clinical") / "namespace")


@pytest.fixture(scope="module")
def state(tmp_path_factory):
    return tmp_path_factory.mktemp("state")


SMALL = mix(domain_shift=(), retention=())
"""The smallest of the datasets alone."""


def folders_of(lock, versions):
    return {one.key: versions[one.train].path for one in lock.sources}


def expected(versions, state, declared_mix=None, settings=DATA_SETTINGS):
    lock = resolve("clinical", declared_mix or mix(), versions, settings)
    return with_expectations(lock, folders_of(lock, versions), settings, state)


def test_a_lock_names_every_version_role_and_licence(versions):
    lock = resolve("clinical", mix(basis="loss_token"), versions, DATA_SETTINGS)
    assert [(one.key, one.role, one.weight) for one in lock.sources] == [
        ("public/text/glossary", "warmup", 10.0),
        (TEXT, "domain_shift", 20.0),
        (NOTES, "domain_shift", 51.0),
        ("public/instructions/general", "retention", 10.0),
        (TOOLS, "retention", 9.0),
    ]
    for one in lock.sources:
        version = versions[one.train]
        assert (one.version, one.samples) == (version.id, version.manifest.rows)
        assert one.licenses == ("CC0-1.0",)
    assert lock.basis == "loss_token"
    assert [(one.from_step, one.context) for one in lock.stages] == [(0, 512)]
    assert (lock.tokenizer, lock.chat) == ("bytes", "plain")
    assert lock.packing.model_dump() == {
        "regime": "boundary_aware",
        "buffer": 1024,
        "alignment": 1,
        "shuffle": 100,
    }
    assert lock.expectations is None


def test_the_shares_of_a_real_clinical_run_are_foreseen(versions, state):
    """Declared 71, 10, 19 by sample; what the model learns from is something else."""
    lock = expected(versions, state)
    of = {one.key: told for one, told in zip(lock.sources, lock.expectations.sources, strict=True)}
    roles: dict[str, float] = {}
    for one in lock.sources:
        roles[one.role] = roles.get(one.role, 0) + of[one.key].sample_share
    assert roles == pytest.approx(
        {"domain_shift": 0.71, "warmup": 0.10, "retention": 0.19}, abs=0.001
    )
    text, tools = of[TEXT], of[TOOLS]
    assert text.sample_share == pytest.approx(0.20, abs=0.001)
    assert text.token_share == pytest.approx(0.43, abs=0.005)
    assert text.loss_token_share == pytest.approx(0.51, abs=0.005)
    assert tools.token_share == pytest.approx(0.12, abs=0.005)
    assert tools.loss_token_share == pytest.approx(0.05, abs=0.005)
    assert of["public/text/glossary"].epochs == pytest.approx(9, abs=0.3)
    largest = max(lock.sources, key=lambda one: one.samples)
    assert largest.key == TEXT
    assert of[TEXT].epochs < 0.2
    assert lock.expectations.tokens == pytest.approx(38 * 8 * 512, rel=0.03)


def test_another_basis_gives_the_shares_in_it(versions, state):
    by_loss = expected(versions, state, mix(basis="loss_token"))
    shares = [one.loss_token_share for one in by_loss.expectations.sources]
    assert shares == pytest.approx([0.10, 0.20, 0.51, 0.10, 0.09])
    assert by_loss.hash != expected(versions, state).hash


def test_stages_caps_and_overflow_are_resolved(versions, state):
    changes = {"public/text/glossary": 0.0, declared("tools/calls").key: 50}
    one = mix(
        domain_shift=[],
        retention=[
            Weighted(3, declared("tools/calls"), max_epochs=2, max_share=1, overflow="drop")
        ],
        stages=[
            Stage(from_step=0, context=256),
            Stage(from_step=20, weights=changes),
        ],
    )
    lock = expected(versions, state, one)
    assert [(stage.from_step, stage.context, stage.weights) for stage in lock.stages] == [
        (0, 256, (10, 3)),
        (20, 512, (0, 50)),
    ]
    tools = lock.sources[-1]
    assert (tools.max_epochs, tools.max_share, tools.overflow) == (2.0, 1.0, "drop")
    told = lock.expectations.sources[-1]
    assert told.dropped > 0.3  # of those that are longer than 256, in the first stage


def test_what_was_measured_is_kept_and_read_again(versions, tmp_path):
    first = expected(versions, tmp_path, SMALL)
    (file,) = tmp_path.rglob("*.json")
    one = Measured.model_validate_json(file.read_bytes())
    halved = one.model_copy(update={"lengths": [length // 2 for length in one.lengths]})
    file.write_text(halved.model_dump_json())
    assert expected(versions, tmp_path, SMALL).expectations != first.expectations
    file.write_text(json.dumps({"samples": 3})[:-4])
    assert expected(versions, tmp_path, SMALL).expectations == first.expectations
    assert not [path for path in tmp_path.rglob("*") if path.name.startswith(".")]


def test_other_settings_are_measured_anew(versions, tmp_path):
    for settings, files in (
        (DATA_SETTINGS, 1),
        (replace(DATA_SETTINGS, steps=7), 1),
        (replace(DATA_SETTINGS, context=1024), 2),
    ):
        expected(versions, tmp_path, SMALL, settings)
        assert len(list(tmp_path.rglob("*.json"))) == files


def test_a_sample_that_cannot_be_encoded_is_named_by_its_place(versions, tmp_path):
    lock = resolve("clinical", mix(warmup=(), domain_shift=()), versions, DATA_SETTINGS)
    folders = folders_of(lock, versions)
    broken = tmp_path / "broken"
    broken.mkdir()
    for file in folders[TOOLS].glob("*.json"):
        (broken / file.name).write_bytes(file.read_bytes())
    (tmp_path / "x.json").write_text('{"id": "x", "kind": "unknown", "source": "s"}')
    with tarfile.open(broken / "shard-000000.tar", "w") as tar:
        tar.add(tmp_path / "x.json", "x.json")
    with pytest.raises(StepError, match=f"Sample 0 of {TOOLS}/energon/train cannot be encoded"):
        with_expectations(lock, {**folders, TOOLS: broken}, DATA_SETTINGS, None)


@pytest.mark.parametrize(
    ("stage", "settings", "message"),
    [
        (
            {"context": 1024},
            {},
            "sequences of 1,024 tokens, and the model of debug.pretrain takes 512. Set "
            "model.seq_length to 1024",
        ),
        ({"context": 250}, {"alignment": 4}, "no multiple of 4: .* The nearest below is 248"),
    ],
)
def test_a_context_that_does_not_fit_the_model_is_refused(versions, stage, settings, message):
    with pytest.raises(SpecError, match=message):
        resolve(
            "clinical",
            mix(stages=[Stage(from_step=0, **stage)]),
            versions,
            replace(DATA_SETTINGS, **settings),
        )


VALUES = {
    "dataset.tokenizer": "bytes",
    "dataset.chat": "plain",
    "dataset.regime": "none",
    "dataset.buffer": 16,
    "dataset.shuffle": 4,
    "model.seq_length": 512,
    "train.train_iters": 80,
    "train.global_batch_size": 32,
}


def test_settings_are_the_fields_of_a_recipe():
    parallel = {
        "model.context_parallel_size": 2,
        "model.tensor_model_parallel_size": 4,
        "model.sequence_parallel": True,
    }
    assert DataSettings.of("debug.pretrain", VALUES).alignment == 1
    made = DataSettings.of("debug.pretrain", VALUES | parallel)
    assert (made.alignment, made.steps, made.sequences, made.context) == (8, 80, 32, 512)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"dataset.regime": "greedy"}, "dataset.regime is 'greedy'; it takes one of none, naive"),
        ({"dataset.buffer": 0}, "dataset.buffer is 0; a run needs a whole number above 0"),
        ({"train.train_iters": None}, "train.train_iters is None; a run needs a whole number"),
    ],
)
def test_settings_that_cannot_be_are_named(changes, message):
    with pytest.raises(SpecError, match=message):
        DataSettings.of("debug.pretrain", VALUES | changes)


def test_a_recipe_that_reads_no_mix_is_named():
    with pytest.raises(SpecError, match=r"debug.pretrain has no field dataset.tokenizer"):
        DataSettings.of("debug.pretrain", {"model.seq_length": 512})


@pytest.mark.slow
def test_images_count_as_the_tokens_that_the_model_sees(tmp_path):
    """With a model's own tokenizer, template and image processor, as a run reads."""
    from tests.data.encoding import qwen_like
    from tests.training.vision import tiny
    from tests.training.vision.documents import conversation, document, picture

    model = qwen_like.write(tmp_path / "model")
    tiny.write_processor(model)
    sizes = [(64, 64), (128, 64), (96, 160)]
    samples = [
        replace(conversation(number, [picture(*size, number)]), source=TOOLS)
        for number, size in enumerate(sizes)
    ]
    (tmp_path / "namespace").mkdir()
    version = publish_entries(Namespace(tmp_path / "namespace"), "tools/calls", samples)
    settings = replace(DATA_SETTINGS, tokenizer=str(model), chat="template", context=4096)
    one = mix(warmup=(), domain_shift=[(1.0, declared("tools/calls"))], retention=())
    lock = resolve("pictures", one, {version.key.path: version}, settings)
    assert lock.image_processor is not None
    told = with_expectations(lock, {TOOLS: version.path}, settings, None).expectations
    lengths = [len(document(model, sample).sequence.tokens) for sample in samples]
    assert told.sources[0].measured == 3
    assert told.sources[0].mean_tokens == pytest.approx(sum(lengths) / 3)
