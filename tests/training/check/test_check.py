"""Recipes on GPUs: counted as the published models count, refused where Megatron refuses."""

import itertools
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any
from unittest.mock import patch

import pytest
from typer.testing import CliRunner

from factory.cli.app import app
from factory.errors import SpecError
from factory.training.check import MFU, check
from factory.training.check.facts import facts

pytestmark = pytest.mark.slow

BIG = ("qwen3_vl_30b_a3b.sft", 16), ("qwen35_vl_122b_a10b.sft", 48)


@pytest.fixture(scope="module", autouse=True)
def _imported(bridge: None) -> None:
    """Bridge, importable on this machine."""


@pytest.mark.parametrize(("recipe", "gpus"), BIG)
def test_parameters_are_those_of_the_published_models_own_code(recipe, gpus):
    import torch
    from transformers import AutoConfig, AutoModelForImageTextToText

    from factory.training import published

    config = AutoConfig.from_pretrained(published.directory(recipe.partition(".")[0]))
    with torch.device("meta"):
        model = AutoModelForImageTextToText.from_config(config)
    sizes = {name: one.numel() for name, one in model.named_parameters()}
    vision = sum(size for name, size in sizes.items() if "visual" in name)
    experts = sum(size for name, size in sizes.items() if ".experts." in name)
    text = config.text_config
    looked_up = text.vocab_size * text.hidden_size
    counted = check(recipe, gpus, "h100", {}).parameters
    assert counted.total == sum(sizes.values())
    assert counted.vision == vision
    at_work = experts * text.num_experts_per_tok // text.num_experts
    assert counted.active == counted.language - experts + at_work - looked_up


def test_parameters_of_the_debug_model_are_those_that_it_trains():
    counted = check("debug.pretrain", 1, "h100", {}).parameters
    with debug_model() as model:
        assert counted.total == sum(one.numel() for one in model.parameters())


@contextmanager
def debug_model() -> Iterator[Any]:
    """The debug model itself, with a vocabulary that needs no padding."""
    import torch.distributed
    from megatron.core import parallel_state

    from factory.training import profiles
    from factory.training.quiet import quiet
    from factory.training.recipes.debug import pretrain

    with ExitStack() as stack:
        stack.enter_context(profiles.hardware("cpu"))
        stack.enter_context(quiet())
        stack.enter_context(patch.dict("os.environ", LOCAL_RANK="0"))
        store = torch.distributed.HashStore()
        torch.distributed.init_process_group("gloo", store=store, rank=0, world_size=1)
        stack.callback(torch.distributed.destroy_process_group)
        parallel_state.initialize_model_parallel()
        stack.callback(parallel_state.destroy_model_parallel)
        config = pretrain()
        profiles.apply(config, "cpu")
        config.model.vocab_size = config.tokenizer.vocab_size
        config.model.should_pad_vocab = False
        config.model.finalize()
        (model,) = config.model.provide_distributed_model(wrap_with_ddp=False)
        yield model


@pytest.mark.parametrize(("recipe", "gpus"), BIG)
def test_a_big_recipe_is_valid_and_fits_where_it_is_meant_to_run(recipe, gpus):
    found = check(recipe, gpus, "h100", {})
    assert found.broken == []
    assert found.fits
    assert found.memory is not None
    assert found.memory.total < check(recipe, gpus, "h200", {}).gpu.memory_bytes


def test_what_bridge_ships_for_48_gpus_is_refused_with_the_nearest_batch():
    shipped = {"train.global_batch_size": "36", "train.micro_batch_size": "4"}
    found = check("qwen35_vl_122b_a10b.sft", 48, "h100", shipped)
    assert found.broken[1:] == [
        "train.global_batch_size 36 is no multiple of micro batch 4 x DP 4 = 16. "
        "Set train.global_batch_size to 32 or 48."
    ]
    assert found.memory is None
    assert found.fits is None


def test_nothing_that_megatron_refuses_is_called_valid():
    """Over layouts of all kinds: where our rules see nothing, Bridge sees nothing either."""
    sizes = itertools.product((1, 2, 3), (1, 2), (1, 2), (1, 4, 5), (8, 12, 16))
    verdicts = set()
    for tensor, pipeline, context, expert, gpus in itertools.islice(sizes, 0, None, 3):
        found = check(
            "qwen3_vl_30b_a3b.sft",
            gpus,
            "h100",
            {
                "model.tensor_model_parallel_size": f"{tensor}",
                "model.pipeline_model_parallel_size": f"{pipeline}",
                "model.context_parallel_size": f"{context}",
                "model.expert_model_parallel_size": f"{expert}",
                "model.sequence_parallel": f"{tensor > 1}".lower(),
                "train.global_batch_size": "96",
                "train.micro_batch_size": "1",
            },
        )
        verdicts.add(bool(found.broken))
        refused = [rule for rule in found.broken if rule.startswith("Megatron-Bridge")]
        assert not refused, f"a rule of ours is missing: {refused}, {found.layout}"
    assert verdicts == {True, False}


def test_names_confirm_dimensions_or_say_that_they_do_not():
    named = {
        (recipe, one.what): one.confirmed
        for recipe, gpus in BIG
        for one in check(recipe, gpus, "h100", {}).named
    }
    assert named == {
        ("qwen3_vl_30b_a3b.sft", "total"): True,
        ("qwen3_vl_30b_a3b.sft", "active"): True,
        ("qwen35_vl_122b_a10b.sft", "total"): True,
        ("qwen35_vl_122b_a10b.sft", "active"): False,
    }


def test_more_gpus_hold_less_each_and_cost_the_same():
    small, large = (check("qwen3_vl_30b_a3b.pretrain", gpus, "h100", {}) for gpus in (16, 48))
    assert small.memory is not None
    assert large.memory is not None
    assert large.memory.optimizer < small.memory.optimizer
    assert large.memory.weights == small.memory.weights
    assert large.gpu_hours(1e9, MFU) == small.gpu_hours(1e9, MFU)


def test_bad_words_are_refused_by_name():
    with pytest.raises(SpecError, match=r"No GPU type 'a100'. Known: h100"):
        check("debug.pretrain", 1, "a100", {})
    with pytest.raises(SpecError, match=r"Did you mean model.seq_length"):
        check("debug.pretrain", 1, "h100", {"modl.seq_length": "1"})
    with pytest.raises(SpecError, match=r"No recipe 'debug'"):
        check("debug", 1, "h100", {})


def test_the_facts_are_json():
    import json

    found = check("qwen35_vl_122b_a10b.pretrain", 48, "h100", {})
    said = json.loads(json.dumps(facts(found, 1e9, MFU)))
    assert said["valid"]
    assert said["layout"]["data"] == 4
    assert said["parameters"]["total"] == found.parameters.total


def test_the_command_prints_the_check_and_fails_on_an_impossible_layout():
    runner = CliRunner()
    good = runner.invoke(app, ["recipe", "check", "qwen3_vl_30b_a3b.sft", "--gpus", "16"])
    assert good.exit_code == 0, good.output
    for part in ("DP 16", "30.53 B", "GPU-hours", "fits"):
        assert part in good.output
    bad = runner.invoke(app, ["recipe", "check", "qwen3_vl_30b_a3b.sft", "--gpus", "12"])
    assert bad.exit_code == 1
    assert "impossible" in bad.output
