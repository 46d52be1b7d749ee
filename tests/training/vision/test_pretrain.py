"""The real `pretrain()` on conversations with images: packed, saved, killed, continued, exported.

Runs are forks of a server that imports once, as in `tests/training/test_kills.py`, with the recipe
that a person would use, on a dataset of a hundred conversations.
"""

import os
import signal
import warnings
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from factory.data import Sample
from factory.namespace import Namespace, RunDirectory
from factory.namespace.checkpoints import checkpoint_path, complete_checkpoints
from factory.spec import Launch
from tests.data.stream.conftest import read
from tests.training.conftest import KEY, Site, publish
from tests.training.forks import Forks
from tests.training.kills import STEPS, Layout, Trace, left_alone, lines_of, trace
from tests.training.vision import tiny
from tests.training.vision.conftest import pair_of
from tests.training.vision.documents import COLOURS, conversation, picture

pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore:.*tp_group is None:DeprecationWarning"),  # Bridge's mergers
]

RECIPES = {"qwen3_vl": "debug_vision.pretrain", "qwen3_vl_moe": "debug_vision.pretrain_moe"}
WORKERS = {"qwen3_vl": 0, "qwen3_vl_moe": 2}
"""Loader processes of each rank."""

SAVED = 8
OVERRIDES = {
    "train.train_iters": str(STEPS),
    "train.global_batch_size": "4",
    "model.seq_length": "256",
    "logger.log_interval": "1",
    "checkpoint.save_interval": str(SAVED),
}


def samples() -> list[Sample]:
    """Conversations about pictures, and some about none; the answer is in the picture."""
    made: list[Sample] = []
    for number in range(96):
        colour = list(COLOURS)[number % 3]
        images = [
            picture(40 + number % 7 * 16, 32 + number % 5 * 20, number + one, colour)
            for one in range(number % 4)
        ]
        made.append(conversation(number, images, f"It is {colour if images else 'nothing'}."))
    return made


@dataclass(frozen=True)
class Trained:
    """A run to its end, and the same run killed on the way."""

    launch: Launch
    run: RunDirectory
    alone: Trace
    killed: Trace
    killed_at: int
    went_on_from: int


@pytest.fixture(scope="module")
def forks(site: Site) -> Iterator[Forks]:
    server = Forks(site.settings)
    yield server
    server.close()


@pytest.fixture(scope="module")
def version(site: Site) -> str:
    made = publish(Namespace(site.settings.root), samples())
    site.namespace.promote(site.version)
    return made.id


@pytest.fixture(scope="module")
def trained(site: Site, forks: Forks, version: str, folder) -> Mapping[str, Trained]:
    def launch(kind: tiny.Kind, name: str) -> tuple[Launch, Layout]:
        layout = Layout(1, WORKERS[kind])
        made = site.launch(f"{kind}-{name}".replace("_", "-"), **layout.spec)
        model = str(folder(kind))
        begun = {"dataset.tokenizer": model, "checkpoint.pretrained_checkpoint": model}
        overrides = begun | OVERRIDES
        settings = {"recipe": RECIPES[kind], "overrides": overrides}
        spec = made.spec.model_copy(update=settings)
        return made.model_copy(update={"datasets": {KEY.path: version}, "spec": spec}), layout

    def train(kind: tiny.Kind) -> Trained:
        alone, layout = launch(kind, "alone")
        whole = left_alone(forks.start, alone, layout)
        killed, _ = launch(kind, "killed")
        first = forks.start(killed)
        assert first.until(lambda: has_saved(first.run)), first.output
        os.kill(first.ranks()[0], signal.SIGKILL)
        assert first.wait() != 0
        at = max(lines_of(first.run.path))
        saved = complete_checkpoints(first.run)[-1].step
        second = forks.start(killed.model_copy(update={"attempt": 2}))
        assert second.wait() == 0, second.output
        return Trained(alone, forks.run_of(alone), whole, trace(second.run, layout), at, saved)

    return {kind: train(kind) for kind in RECIPES}


def has_saved(run: RunDirectory) -> bool:
    """Whether a run is behind a complete checkpoint."""
    return SAVED + 2 in lines_of(run.path) and bool(complete_checkpoints(run))


KINDS = pytest.mark.parametrize("kind", RECIPES)


@KINDS
def test_the_loss_falls(trained, kind):
    losses = [loss for _, (loss, _, _) in sorted(trained[kind].alone.steps.items())]
    assert len(losses) == STEPS
    assert losses[-1] < 0.65 * losses[0]


def test_the_first_loss_is_that_of_transformers(site, trained, pairs):
    """Of every document of the first step, by itself, with the weights that the run began with."""
    from factory.data.stream.build import batches, loader
    from factory.data.stream.reader import Reader
    from factory.observe.mixture.files import lock_of, reading_of

    found, peer = trained["qwen3_vl"], pairs["qwen3_vl"].peer
    lock, reading = lock_of(found.run.path), reading_of(found.run.path)
    folders = {one.key: site.namespace.version(KEY, one.version).path for one in lock.sources}
    reader = Reader(
        seed=reading.seed,
        micro_batch_size=reading.micro_batch_size,
        global_batch_size=reading.global_batch_size,
    )
    first = read(loader(batches(lock, folders, reader)), reader.batches_per_step)
    parts = [one for batch in first for one in documents_of(batch, peer)]
    losses, tokens = zip(*(loss_of(peer, one) for one in parts), strict=True)
    loss, _, counted = found.alone.steps[1]
    assert counted == sum(tokens)
    assert len(losses) > 10
    assert loss == pytest.approx(sum(losses) / sum(tokens), abs=2e-5)


def documents_of(batch: dict[str, Any], peer: Any) -> Iterator[dict[str, Any]]:
    """What lies between the boundaries of a batch, as transformers takes it."""
    grids = batch.get("image_grid_thw", [])
    seen = patches = 0
    for start, stop in pairwise(batch["cu_seqlens_q"].tolist()):
        made = {name: batch[name][:, start:stop] for name in ("tokens", "labels", "loss_mask")}
        places = 4 * int((made["tokens"] == peer.config.image_token_id).sum())
        if places:
            of, count = 0, 0
            while of < places:
                of += int(grids[seen + count].prod())
                count += 1
            made["image_grid_thw"] = grids[seen : seen + count]
            made["pixel_values"] = batch["pixel_values"][patches : patches + places]
            seen, patches = seen + count, patches + places
        yield made
    assert patches == len(batch.get("pixel_values", ()))


def loss_of(peer: Any, document: dict[str, Any]) -> tuple[float, int]:
    """The loss of a document, summed, and how many of its tokens carry one."""
    import torch

    tokens, labels, mask = (document.pop(name) for name in ("tokens", "labels", "loss_mask"))
    of_image = (tokens == peer.config.image_token_id).int()
    with torch.no_grad():
        logits = peer(input_ids=tokens, mm_token_type_ids=of_image, **document).logits
    each = torch.nn.functional.cross_entropy(logits[0], labels[0], reduction="none")
    return float((each * mask[0]).sum()), int(mask.sum())


@KINDS
def test_what_was_killed_goes_on_exactly(trained, kind):
    """Losses and gradient norms to the last digit, and every batch with its pixels by its hash."""
    found = trained[kind]
    assert SAVED <= found.went_on_from <= found.killed_at < STEPS
    assert found.killed == found.alone


@KINDS
def test_images_are_counted_as_the_data_have_them(site, trained, kind):
    """Counted again from the shards alone, without a model."""
    from factory.observe.mixture.files import ledger_of, lock_of, reading_of
    from factory.observe.mixture.replay import differences, replayed

    run = trained[kind].run.path
    lines, lock = ledger_of(run), lock_of(run)
    (source,) = lines[-1].sources
    assert 0.1 * source.tokens < source.image_tokens < 0.5 * source.tokens
    assert source.distinct == len(samples())
    folders = {one.key: site.namespace.version(KEY, one.version).path for one in lock.sources}
    found = replayed(lock, folders, reading_of(run), [one.step for one in lines], _silent)
    assert differences(lines, found) == []


def _silent(*_: object) -> None:
    return None


@KINDS
def test_the_export_has_the_weights_and_says_the_same(trained, kind, pairs, tmp_path: Path):
    """From the checkpoint to transformers, and from there back to Megatron."""
    import torch

    pair = pairs[kind]
    step = checkpoint_path(trained[kind].run, STEPS)
    with warnings.catch_warnings():  # Bridge builds with what it calls deprecated
        warnings.simplefilter("ignore")
        (model,) = pair.bridge.load_megatron_model(str(step), wrap_with_ddp=False)
    pair.bridge.save_hf_pretrained([model], str(tmp_path), show_progress=False)
    exported = pair_of(tmp_path)
    before, after, again = (
        dict(one.named_parameters()) for one in (pair.model, model, exported.model)
    )
    assert before.keys() == after.keys() == again.keys()
    assert not any(torch.equal(before[name], after[name]) for name in after)
    assert all(torch.equal(again[name], after[name]) for name in after)
    for images in (0, 2):
        document = pair.document(3, images)
        difference = exported.logits(document) - exported.peer_logits(document)
        assert difference.abs().max() < (1e-4 if images else 1e-5)
