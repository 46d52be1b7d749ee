"""A document in a pack is as alone, and what a step learns does not depend on how it was packed."""

import random
import warnings
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from itertools import cycle
from typing import Any
from unittest.mock import patch

import pytest

from factory.data.encoding import Encoder, fitted, load
from factory.data.packing import Packing, groups, lay_out
from factory.data.stream.collate import Laid, collate
from factory.data.stream.drawn import Drawn
from tests.training.conftest import WORDS

pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore:.*tp_group is None:DeprecationWarning"),  # core's layers
]

CONTEXT = 64
LENGTHS = (61, 40, 9, 22, 33, 15, 20, 12, 5, 48, 17, 26)


def documents() -> list[Drawn]:
    """Each is one sequence; of questions only answers carry loss."""
    encoder = Encoder(load("bytes"), chat="plain")
    chance = random.Random(3)
    made: list[Drawn] = []
    for number, length in enumerate(LENGTHS):
        text = " ".join(chance.choices(WORDS, k=length))[:length]
        sample = {
            "kind": "document",
            "source": "s",
            "document": {"title": "", "sections": [{"heading": "", "text": text}]},
        }
        if number % 3 == 2:
            half = text[: length // 4]
            question = {"question": half, "answer": half, "options": [], "explanation": None}
            sample = {"kind": "question", "source": "s", "question": question}
        encoded: Any = encoder.encode(sample)
        made.append(Drawn(0, number, fitted(encoded, "split", CONTEXT).sequences[:1]))
    return made


def packs(drawn: Sequence[Drawn], **packing: Any) -> list[Laid]:
    """The documents in packs, as the stream makes them of its buffer."""
    chosen = Packing(context=CONTEXT, seed=1, **packing)
    lengths = [len(one.sequences[0].tokens) for one in drawn]
    fragments = [(at, 0, 0, length) for at, length in enumerate(lengths)]
    return [
        Laid(pack, [fragments[at] for at in group], drawn)
        for group in groups(lengths, chosen)
        for pack in lay_out([lengths[at] for at in group], chosen)
    ]


def batch(laid: Sequence[Laid]) -> tuple[dict[str, Any], Any]:
    from factory.data.stream.batches import tensors

    made = collate(laid)
    return tensors(made.arrays, made.longest), made


@pytest.fixture(scope="module")
def trainer(bridge: None) -> Iterator[Any]:
    """The debug recipe's configuration and model, wrapped as Bridge trains it."""
    import torch
    from megatron.bridge.training.state import GlobalState
    from megatron.core import parallel_state

    from factory.training import profiles
    from factory.training.recipes.debug import pretrain

    with ExitStack() as stack:
        stack.enter_context(profiles.hardware("cpu"))
        stack.enter_context(patch.dict("os.environ", LOCAL_RANK="0"))
        store = torch.distributed.HashStore()
        torch.distributed.init_process_group("gloo", store=store, rank=0, world_size=1)
        stack.callback(torch.distributed.destroy_process_group)
        parallel_state.initialize_model_parallel()
        stack.callback(parallel_state.destroy_model_parallel)
        torch.manual_seed(11)
        with warnings.catch_warnings():  # Bridge builds with what it calls deprecated
            warnings.simplefilter("ignore")
            config = pretrain()
            profiles.apply(config, "cpu")
            config.model.vocab_size = 259
            config.model.finalize()
            (model,) = config.model.provide_distributed_model(ddp_config=config.ddp)
        state = GlobalState()
        state.cfg = config
        yield state, model


def logits(model: Any, given: dict[str, Any]) -> Any:
    """[positions, vocabulary] of a batch."""
    import torch
    from megatron.bridge.training.utils.packed_seq_utils import get_packed_seq_params

    with torch.no_grad():
        return model(
            input_ids=given["tokens"],
            position_ids=given["position_ids"],
            attention_mask=None,
            packed_seq_params=get_packed_seq_params(given),
        )[0]


@pytest.mark.parametrize("alignment", [1, 16])
def test_a_document_in_a_pack_has_the_logits_that_it_has_alone(trainer, alignment):
    _, model = trainer
    given, made = batch(packs(documents(), alignment=alignment))
    together = logits(model, given)
    for document in made.documents:
        length = len(document.sequence.tokens)
        alone, _ = batch(packs([document.drawn], regime="none"))
        expected = logits(model, alone)[:length]
        assert (together[document.start :][:length] - expected).abs().max() < 1e-5


def test_a_document_of_the_naive_regime_has_others(trainer):
    """Otherwise the test above would say nothing."""
    _, model = trainer
    given, made = batch(packs(documents(), regime="naive"))
    together = logits(model, given)
    document = next(one for one in made.documents if one.start % CONTEXT and one.first)
    alone, _ = batch(packs([document.drawn], regime="none"))
    length = document.read.stop
    assert (together[document.start :][:length] - logits(model, alone)[:length]).abs().max() > 1e-2


def learned(trainer: Any, batches: Sequence[dict[str, Any]]) -> tuple[float, dict[str, Any]]:
    """Mean loss and gradients of one step of Megatron's over these micro-batches."""
    from functools import partial

    import torch
    from megatron.core.distributed import finalize_model_grads
    from megatron.core.pipeline_parallel import get_forward_backward_func

    from factory.training.forward import TOKENS, step_of

    state, model = trainer
    config: Any = model.config
    config.calculate_per_token_loss = True
    config.finalize_model_grads_func = finalize_model_grads
    model.zero_grad_buffer()
    reports: Any = get_forward_backward_func()(
        forward_step_func=partial(step_of(state.cfg), state),
        data_iterator=cycle([dict(one) for one in batches]),
        model=[model],
        num_microbatches=len(batches),
        seq_length=CONTEXT,
        micro_batch_size=1,
        forward_only=False,
    )
    loss, tokens = torch.stack([report["lm loss"] for report in reports]).sum(0).tolist()
    assert tokens == sum(float(one["loss_mask"].sum()) for one in batches)
    assert tokens == sum(float(report[TOKENS][0]) for report in reports)
    gradients = {name: one.main_grad.clone() for name, one in model.named_parameters()}
    return loss / tokens, gradients


def test_a_step_learns_the_same_however_its_documents_are_packed_and_shared(trainer):
    """Unpacked, packed, aligned, and in batches of one or several sequences."""
    ways: dict[str, list[list[Laid]]] = {
        "unpacked": [[one] for one in packs(documents(), regime="none")],
        "packed": [[one] for one in packs(documents())],
        "aligned": [[one] for one in packs(documents(), alignment=16)],
        "in one batch": [packs(documents())],
    }
    steps = {
        name: learned(trainer, [batch(laid)[0] for laid in rows]) for name, rows in ways.items()
    }
    loss, gradients = steps.pop("unpacked")
    assert len(ways["packed"]) < len(ways["unpacked"])
    for name, (other, found) in steps.items():
        assert other == pytest.approx(loss, rel=1e-6), name
        for parameter, expected in gradients.items():
            difference = (found[parameter] - expected).abs().max()
            assert difference <= 1e-5 * expected.abs().max() + 1e-9, (name, parameter)
