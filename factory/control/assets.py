"""A declared dataset as Dagster assets and checks. Cheap: a location may hold a thousand of them.

What an asset does when it runs is in `materialize`, what its page shows in `metadata`. Which
steps a dataset has is decided in `factory.data.steps`.
"""

from collections.abc import Iterable, Iterator
from typing import Any

import dagster as dg

from factory.control.lineage import asset_key, code_tag
from factory.control.metadata import declared_metadata, kinds, owners, tags
from factory.control.resources import RESOURCE
from factory.data import engines
from factory.data.dataset import Dataset
from factory.data.steps import Step, steps

LIMIT = dg.Field(
    dg.Noneable(int),
    is_required=False,
    default_value=None,
    description="Read only so many rows. The result is marked, flows downstream in this run "
    "and never becomes current; no training run takes it.",
)

ENGINE = dg.Field(
    dg.Enum("Engine", [dg.EnumValue(name) for name in engines.NAMES]),
    is_required=False,
    default_value=engines.LOCAL,
    description="What does the work: this process, or a Ray cluster. The result is the same.",
)

_OVER_SHARDS = dg.Field({"engine": ENGINE})
CONFIG = {
    "clean": dg.Field({"limit": LIMIT, "engine": ENGINE}),
    "deduplicated": _OVER_SHARDS,
    "split": _OVER_SHARDS,
    "energon": _OVER_SHARDS,
}
"""What the launchpad offers, by kind of step. Built once: a large location has thousands."""


def catalog(datasets: Iterable[Dataset]) -> dg.Definitions:
    """Assets and checks of every dataset."""
    all_steps = [step for dataset in datasets for step in steps(dataset)]
    return dg.Definitions(
        assets=[_asset(step) for step in all_steps],
        asset_checks=[_checks(step) for step in all_steps if step.checks],
    )


def _asset(step: Step) -> dg.AssetsDefinition:
    spec = dg.AssetSpec(
        key=asset_key(step.key),
        deps=[asset_key(key) for key in step.inputs],
        description=step.description,
        metadata=declared_metadata(step),
        tags=tags(step),
        kinds=kinds(step),
        owners=owners(step),
        group_name=group(step),
        code_version=code_tag(step.code_version, step.parameters),
    )
    inputs = {"__".join(key.parts): asset_key(key) for key in step.inputs}

    def compute(
        context: dg.OpExecutionContext, _inputs: object
    ) -> Iterator[dg.MaterializeResult[Any]]:
        from factory.control.materialize import materialize

        config: dict[str, Any] = context.op_config or {}
        yield materialize(context, step, config.get("limit"), config.get("engine", engines.LOCAL))

    # Built directly: with `@dg.asset`, most of a large location's load is looking at functions.
    op = dg.OpDefinition(
        compute_fn=compute,
        name=op_name(step),
        ins={name: dg.In(dg.Nothing) for name in inputs},
        outs={"result": dg.Out(dg.Nothing)},
        config_schema=CONFIG.get(step.kind),
        required_resource_keys={RESOURCE},
    )
    return dg.AssetsDefinition(
        keys_by_input_name=inputs,
        keys_by_output_name={"result": spec.key},
        node_def=op,
        specs=[spec],
    )


def _checks(step: Step) -> dg.AssetChecksDefinition:
    key = asset_key(step.key)

    @dg.multi_asset_check(
        name=f"{op_name(step)}__checks",
        specs=[
            dg.AssetCheckSpec(
                check.name, asset=key, blocking=check.blocking, description=check.description
            )
            for check in step.checks
        ],
        required_resource_keys={RESOURCE},
        can_subset=True,  # else the UI offers no way to run checks alone
    )
    def check(context: dg.AssetCheckExecutionContext) -> Iterator[dg.AssetCheckResult]:
        from factory.control.materialize import check as run_checks

        yield from run_checks(context, step)

    return check


def op_name(step: Step) -> str:
    """Name of the op that makes a step, which the launchpad's `ops:` uses."""
    return "__".join(step.key.parts)


def group(step: Step) -> str:
    """One group per dataset: a box in the graph."""
    return "_".join(step.dataset.key.parts)
