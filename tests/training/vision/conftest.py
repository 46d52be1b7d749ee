"""Tiny models in Megatron-Bridge and in transformers, from the same directory."""

import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest

from tests.training.vision import documents, tiny
from tests.training.vision.documents import Document


@dataclass(frozen=True)
class Pair:
    """One model twice."""

    folder: Path
    bridge: Any
    model: Any
    peer: Any
    """Of transformers, with its eager attention."""

    def document(self, number: int, images: int) -> Document:
        """A conversation about so many images, each of another size."""
        shown = [
            documents.picture(40 + 13 * number + 20 * one, 30 + 5 * number + 7 * one, seed=one)
            for one in range(images)
        ]
        return documents.document(self.folder, documents.conversation(number, shown))

    def logits(self, *pack: Document, **options: Any) -> Any:
        """What Bridge's model says behind every token of a pack."""
        import torch

        with torch.no_grad():
            return self.model(**documents.inputs(pack, **options))[0]

    def peer_logits(self, document: Document) -> Any:
        """What transformers' model says of a document by itself."""
        import torch

        tokens = torch.tensor(document.sequence.tokens, dtype=torch.long)[None]
        of_image = tokens == self.peer.config.image_token_id
        seen = documents.shown([document])
        with torch.no_grad():
            return self.peer(input_ids=tokens, mm_token_type_ids=of_image.int(), **seen).logits[0]


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory, bridge: None) -> Callable[[tiny.Kind], Path]:
    """The directory of a tiny model."""
    base = tmp_path_factory.mktemp("tiny")

    def written(kind: tiny.Kind) -> Path:
        target = base / kind
        return target if target.exists() else tiny.write(target, kind)

    return written


@pytest.fixture(scope="module")
def hardware(bridge: None) -> Iterator[None]:
    from factory.training import profiles

    with profiles.hardware("cpu"):
        yield


@pytest.fixture(scope="module")
def pairs(hardware: None, folder: Callable[[tiny.Kind], Path]) -> Iterator[Mapping[str, Pair]]:
    """Both kinds, in a process group of one."""
    import torch.distributed
    from megatron.core import parallel_state

    with ExitStack() as stack:
        stack.enter_context(patch.dict("os.environ", LOCAL_RANK="0"))
        store = torch.distributed.HashStore()
        torch.distributed.init_process_group("gloo", store=store, rank=0, world_size=1)
        stack.callback(torch.distributed.destroy_process_group)
        parallel_state.initialize_model_parallel()
        stack.callback(parallel_state.destroy_model_parallel)
        yield {kind: pair_of(folder(kind)) for kind in tiny.KINDS}


def built(folder: Path, **options: Any) -> tuple[Any, Any]:
    """Bridge's own bridge, and the model in the folder with its weights."""
    from megatron.bridge import AutoBridge

    with warnings.catch_warnings():  # Bridge builds with what it calls deprecated
        warnings.simplefilter("ignore")
        bridge = AutoBridge.from_hf_pretrained(str(folder))
        provider = bridge.to_megatron_provider(load_weights=True)
        tiny.for_cpu(provider)
        provider.finalize()
        (model,) = provider.provide_distributed_model(**options)
    return bridge, model


def pair_of(folder: Path) -> Pair:
    """The model in the folder, twice."""
    import transformers

    bridge, model = built(folder, wrap_with_ddp=False)
    peer = transformers.AutoModelForImageTextToText.from_pretrained(
        folder, attn_implementation="eager"
    )
    return Pair(folder, bridge, model.eval(), peer.eval())
