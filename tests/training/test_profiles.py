"""The two profiles: what a recipe changes of Bridge's own, what a laptop changes of the recipe."""

import json
from typing import Any

import pytest

from factory.discovery import FIELDS, recipe_names
from factory.errors import SpecError

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module", autouse=True)
def _imported(bridge: None) -> None:
    """Bridge, importable on this machine. Nothing else of the stand-ins is in place."""


def flat(value: Any, path: str = "") -> dict[str, Any]:
    if isinstance(value, dict):
        return {
            key: leaf
            for name, item in value.items()
            for key, leaf in flat(item, f"{path}.{name}" if path else str(name)).items()
        }
    return {path: value}


def differences(before: dict[str, Any], after: dict[str, Any]) -> dict[str, list[Any]]:
    return {
        key: [before.get(key, "(absent)"), after.get(key, "(absent)")]
        for key in sorted({*before, *after})
        if before.get(key, "(absent)") != after.get(key, "(absent)")
    }


def settings(config: Any) -> dict[str, Any]:
    text = json.dumps(config.to_dict(), default=str, sort_keys=True)
    return {key: value for key, value in flat(json.loads(text)).items() if "tensorboard" not in key}


def test_the_h100_configuration_differs_from_bridges_recipe_by_what_is_listed(snapshot):
    from megatron.bridge.recipes.gpt.vanilla_gpt import vanilla_gpt_pretrain_config

    from factory.training import profiles
    from factory.training.recipes.debug import pretrain

    ours = pretrain()
    profiles.apply(ours, "h100")
    assert differences(settings(vanilla_gpt_pretrain_config()), settings(ours)) == snapshot


def test_the_h100_configuration_is_valid_for_four_gpus(monkeypatch):
    from megatron.bridge.training.config import runtime_config_update

    from factory.training import profiles
    from factory.training.recipes.debug import pretrain

    monkeypatch.setenv("WORLD_SIZE", "4")
    monkeypatch.setenv("RANK", "0")
    config = pretrain()
    config.env_vars = {}  # they would stay in the environment of the other tests
    profiles.apply(config, "h100")
    runtime_config_update(config)
    assert config.data_parallel_size == 4
    assert config.model.bf16
    assert config.dist.distributed_backend == "nccl"


def test_the_cpu_profile_differs_from_h100_by_its_table(snapshot):
    from factory.training import profiles
    from factory.training.recipes.debug import pretrain

    h100, cpu = pretrain(), pretrain()
    profiles.apply(cpu, "cpu")
    changed = differences(settings(h100), settings(cpu))
    assert set(changed) <= set(profiles.SETTINGS["cpu"])
    assert changed == snapshot


def test_every_recipe_has_every_field_of_the_table():
    import importlib

    from factory.training import profiles

    for name in recipe_names():
        module, _, function = name.partition(".")
        config = getattr(importlib.import_module(f"factory.training.recipes.{module}"), function)()
        profiles.apply(config, "cpu")


def test_the_listed_fields_are_up_to_date():
    from factory.training.recipes.fields import listed

    assert FIELDS.read_text() == listed(), "run `python -m factory.training.recipes.fields`"


def test_a_gpu_refuses_the_cpu_profile_and_is_named(monkeypatch):
    import torch

    from factory.training import profiles

    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda _: "NVIDIA H100 80GB HBM3")
    with (
        pytest.raises(SpecError, match="cpu profile was chosen but this machine has NVIDIA H100"),
        profiles.hardware("cpu"),
    ):
        pass


def test_the_h100_profile_never_imports_the_stand_ins():
    import subprocess
    import sys

    code = (
        "import sys; from factory.training import profiles\n"
        "with profiles.hardware('h100'): pass\n"
        "print([name for name in sys.modules if name.startswith('factory.training.cpu')])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60
    )
    assert done.stdout.strip() == "[]"


def test_the_stand_ins_leave_nothing_behind():
    import torch
    from megatron.core.models.gpt import gpt_layer_specs
    from megatron.core.transformer import transformer_block

    from factory.training import profiles

    before = (torch.cuda.current_device, torch.cuda.Stream, gpt_layer_specs.TESpecProvider)
    norm = transformer_block.LayerNormImpl
    with profiles.hardware("cpu"):
        assert torch.zeros(1, device="cuda").device.type == "cpu"
        assert torch.cuda.current_device() == torch.device("cpu")
    assert (
        torch.cuda.current_device,
        torch.cuda.Stream,
        gpt_layer_specs.TESpecProvider,
    ) == before
    assert transformer_block.LayerNormImpl is norm
