"""Which assets of a dataset need work, and telling Dagster when a version is current again.

Answers come from the namespace alone, by input id and by check results of the version: Dagster's
own staleness says the same in the UI, through the tags of `lineage`.
"""

from collections.abc import Iterable, Mapping

import dagster as dg

from factory.control.lineage import DATA_VERSION_TAG, asset_key, event_tags
from factory.control.metadata import plain_metadata
from factory.data.check_form import form
from factory.data.dataset import Dataset
from factory.data.sources import LocalFiles, PartnerDrop
from factory.data.steps import Step, input_id, steps
from factory.keys import Key, parse
from factory.namespace import Namespace, Version
from factory.settings import Settings

EVENTS_SEARCHED = 100
"""Materializations of an asset that are looked through for what was shown of a version."""


def stale(datasets: Iterable[Dataset], settings: Settings) -> list[Key]:
    """The assets that would be made or checked anew, upstream first."""
    namespace = Namespace(settings.root)
    found: dict[Key, None] = {}
    for dataset in datasets:
        for step in steps(dataset):
            upstream = any(key in found for key in step.inputs)
            if upstream or not _is_fresh(step, namespace, settings):
                found[step.key] = None
    return list(found)


def stale_steps(key: Key, settings: Settings) -> list[Key]:
    """The assets of one declared dataset that need work.

    Raises:
        SpecError: no such dataset is declared.
    """
    from factory.control.selection import dataset_of

    return stale([dataset_of(key)], settings)


def report(instance: dg.DagsterInstance, version: Version) -> None:
    """Tell Dagster that this version is what the key holds now, as when it was made.

    The event has the data version, the code and the inputs of that version, so staleness in the UI
    is judged by them, and what its page showed when it was made.
    """
    key = asset_key(parse(version.manifest.key))
    instance.report_runless_asset_event(
        dg.AssetMaterialization(
            asset_key=key,
            description="Current again; nothing was made.",
            metadata=_shown_before(instance, key, version) or plain_metadata(version),
            tags=event_tags(version),
        )
    )


def _shown_before(
    instance: dg.DagsterInstance, key: dg.AssetKey, version: Version
) -> Mapping[str, dg.MetadataValue]:
    """The metadata of an earlier event of that version; empty where Dagster has none at hand."""
    for record in instance.fetch_materializations(key, limit=EVENTS_SEARCHED).records:
        made = record.asset_materialization
        if made is not None and (made.tags or {}).get(DATA_VERSION_TAG) == version.id:
            return made.metadata
    return {}


def _is_fresh(step: Step, namespace: Namespace, settings: Settings) -> bool:
    current = namespace.current(step.key)
    if current is None or namespace.not_passed(current) or _unrun(step, current, namespace):
        return False
    inputs = {key: namespace.current(key) for key in step.inputs}
    read = {key: version for key, version in inputs.items() if version is not None}
    if len(read) < len(inputs):
        return False
    expected = input_id(step, read, None, _source_state(step, settings))
    return current.manifest.input_id == expected and not namespace.verify(current)


def _source_state(step: Step, settings: Settings) -> str:
    """What is in a partner's drop folder or a partial mirror now: nothing pins it beforehand."""
    source = step.dataset.source
    if step.kind != "raw":
        return ""
    from factory.data import content, intake
    from factory.data.fetch import file_mirror
    from factory.data.making import Job, delivered

    if not isinstance(source, LocalFiles | PartnerDrop):
        return file_mirror.state(source, settings.mirrors)
    job = Job(step, {}, settings, None, lambda _: None)
    if isinstance(source, PartnerDrop):
        return intake.state(job, source)
    return content.files_hash(*delivered(job, source))


def _unrun(step: Step, version: Version, namespace: Namespace) -> bool:
    """Whether a check has no result for that version, or one of an older form of the check."""
    records = namespace.checks(version)
    return any(
        check.name not in records or records[check.name].form != form(check)
        for check in step.checks
    )
