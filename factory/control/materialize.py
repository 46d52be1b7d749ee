"""What an asset and its checks do when they run.

An asset publishes a version; its checks then run on that version and, when all that block have
passed, make it current. So a failed check leaves the old version current. The definitions are in
`assets`, the work itself in `factory.data.steps`, versions in `factory.namespace`.
"""

from collections.abc import Callable, Iterator
from typing import Any

import dagster as dg

from factory.control.confidential import Progress, in_confidence
from factory.control.freshness import report
from factory.control.lineage import asset_key, event_tags, inputs_of, version_to_check
from factory.control.metadata import check_metadata, made_metadata
from factory.control.resources import Factory
from factory.data.steps import Step
from factory.errors import StepError
from factory.keys import Key, PrivateKey
from factory.namespace import CheckRecord, Namespace, Version

CONFIDENTIAL = "What it saw may hold private data: `_checks.json` of the version has it."


def materialize(
    context: dg.OpExecutionContext, step: Step, limit: int | None, engine: str
) -> dg.MaterializeResult:
    """Run one step, or reuse what the same input already gave, and report the version."""
    from factory.data.steps import run_step

    if limit is not None and limit < 1:
        raise StepError(f"limit is {limit}; it is the number of rows to read, so 1 or more.")
    factory: Factory = context.resources.factory
    namespace = factory.namespace
    inputs = inputs_of(step.inputs, namespace, context.instance, context.run.run_id)

    def work(progress: Progress) -> tuple[Version, dict[str, Any]]:
        result = run_step(
            step,
            namespace,
            inputs,
            settings=factory.settings,
            provenance=factory.provenance(context.run.run_id),
            limit=limit,
            engine=engine,
            progress=progress,
        )
        shown = made_metadata(step, result.version, reused=result.reused, inputs=inputs)
        return result.version, shown

    version, metadata = _discreetly(work, step.key, namespace, context)
    return dg.MaterializeResult(
        asset_key=asset_key(step.key),
        metadata=metadata,
        data_version=dg.DataVersion(version.id),
        tags=event_tags(version),
    )


def check(context: dg.AssetCheckExecutionContext, step: Step) -> Iterator[dg.AssetCheckResult]:
    """Run all checks of one asset on one version; if those that block passed, it is current.

    All of them, whichever were asked for in the UI: a version is judged as a whole.
    """
    from factory.data.free_checks import run_checks

    factory: Factory = context.resources.factory
    namespace = factory.namespace
    version = version_to_check(step.key, namespace, context.instance, context.run.run_id)

    def work(progress: Progress) -> dict[str, CheckRecord]:
        return run_checks(step, version, namespace)

    records = _discreetly(work, step.key, namespace, context)
    limit = version.manifest.limit
    if limit is not None:
        context.log.info(f"{version} is of the first {limit:,} rows: it does not become current")
    elif not namespace.not_passed(version):
        namespace.promote(version)
        context.log.info(f"{version} is current")
    asked_for = {key.name for key in context.selected_asset_check_keys}
    for name, record in records.items():
        if name in asked_for:
            yield _result(step.key, name, record, version)
    current = namespace.current(step.key)
    if limit is not None and current is not None:
        report(context.instance, current)


def _result(key: Key, name: str, record: CheckRecord, version: Version) -> dg.AssetCheckResult:
    confidential = isinstance(key, PrivateKey)
    return dg.AssetCheckResult(
        asset_key=asset_key(key),
        check_name=name,
        passed=record.passed,
        severity=dg.AssetCheckSeverity.ERROR if record.blocking else dg.AssetCheckSeverity.WARN,
        description=CONFIDENTIAL if confidential else record.summary,
        metadata=check_metadata(record, version, confidential=confidential),
    )


def _discreetly[T](
    work: Callable[[Progress], T],
    key: Key,
    namespace: Namespace,
    context: dg.OpExecutionContext | dg.AssetCheckExecutionContext,
) -> T:
    if isinstance(key, PrivateKey):
        return in_confidence(work, key=key, namespace=namespace, run_id=context.run.run_id)
    return work(context.log.info)
