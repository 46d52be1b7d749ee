"""Profiles: what differs between training on a laptop's CPU and on H100s, in one table.

A recipe is written for `h100`, where nothing is changed: the settings are Megatron-Bridge's own.
`cpu` sets the fields below and installs the stand-ins of `factory.training.cpu`.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Any

from factory.errors import SpecError
from factory.spec import Profile
from factory.training.assign import assign

if TYPE_CHECKING:
    from megatron.bridge.training.config import ConfigContainer

SETTINGS: dict[Profile, dict[str, Any]] = {
    "h100": {},
    "cpu": {
        "dist.distributed_backend": "gloo",
        "mixed_precision": None,  # fp32
        "optimizer.bf16": False,
        "optimizer.params_dtype": "float32",
        "optimizer.use_distributed_optimizer": False,
        "ddp.use_distributed_optimizer": False,
        "ddp.overlap_grad_reduce": False,
        "ddp.overlap_param_gather": False,
        "ddp.average_in_collective": False,
        "model.bf16": False,
        "model.params_dtype": "float32",
        "model.use_cpu_initialization": True,
        "model.apply_rope_fusion": False,
        "model.masked_softmax_fusion": False,
        "model.bias_dropout_fusion": False,
        "model.bias_activation_fusion": False,
        "model.gradient_accumulation_fusion": False,
        "model.persist_layer_norm": False,
        "model.cross_entropy_loss_fusion": False,
        "model.moe_grouped_gemm": False,
        "model.moe_permute_fusion": False,
        "model.attention_dropout": 0.0,  # one random stream: dropout would differ from the GPU's
        "model.hidden_dropout": 0.0,
        "checkpoint.async_save": False,
        "checkpoint.load_rng": False,  # there is no CUDA random state to load
        "rerun_state_machine.check_for_nan_in_loss": True,
    },
}


def apply(config: ConfigContainer, profile: Profile) -> None:
    """Set the profile's fields on a recipe's configuration."""
    for path, value in SETTINGS[profile].items():
        assign(config, path, value)


def refuse_overrides(overrides: Mapping[str, str], profile: Profile) -> None:
    """Refuse to change what the profile sets: the hardware leaves no choice.

    Raises:
        SpecError: an override names a field of the profile's table.
    """
    for path in overrides:
        if path in SETTINGS[profile]:
            raise SpecError(
                f"{path} is set by the {profile} profile (to {SETTINGS[profile][path]}), "
                "so a run cannot override it. Leave it out, or choose another cluster."
            )


def hardware(profile: Profile) -> AbstractContextManager[None]:
    """Within: Bridge can be imported and run on the profile's hardware.

    Raises:
        SpecError: this machine is not of that kind.
    """
    if profile == "cpu":
        from factory.training.cpu import stand_ins

        return stand_ins()
    return nullcontext()
