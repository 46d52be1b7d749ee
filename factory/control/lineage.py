"""Which version a step reads, and how Dagster is told which it read.

A step reads what its own run materialized upstream, else what is current: a limited version is
never current, yet flows through the run that made it. Versions are in the namespace; Dagster's
event log only says which of them belong to a run.
"""

import hashlib
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import dagster as dg
from dagster import DagsterEventType, DagsterInstance

from factory.data.sample import canonical
from factory.errors import StepError
from factory.keys import Key

if TYPE_CHECKING:
    from factory.namespace import Namespace, Version

DATA_VERSION_TAG = "dagster/data_version"
CODE_VERSION_TAG = "dagster/code_version"
USER_PROVIDED_TAG = "dagster/data_version_is_user_provided"
INPUT_VERSION_TAG = "dagster/input_data_version"
INPUT_POINTER_TAG = "dagster/input_event_pointer"


def asset_key(key: Key) -> dg.AssetKey:
    """Dagster's name of a key."""
    return dg.AssetKey(list(key.parts))


def inputs_of(
    keys: tuple[Key, ...], namespace: "Namespace", instance: DagsterInstance, run_id: str
) -> "dict[Key, Version]":
    """The version of each upstream key that a step of this run reads.

    Raises:
        StepError: an upstream key has neither a version of this run nor a current one.
    """
    found = {
        key: version_of_run(key, namespace, instance, run_id) or namespace.current(key)
        for key in keys
    }
    missing = [str(key) for key, version in found.items() if version is None]
    if missing:
        raise StepError(
            f"Nothing is current at {', '.join(missing)}, and this run did not make it. "
            "Materialize it first, or select it together with this asset."
        )
    return {key: version for key, version in found.items() if version is not None}


def version_of_run(
    key: Key, namespace: "Namespace", instance: DagsterInstance, run_id: str
) -> "Version | None":
    """What this run, or the run that it is a retry of, materialized at the key."""
    for run in _run_and_parents(instance, run_id):
        for entry in reversed(instance.all_logs(run, DagsterEventType.ASSET_MATERIALIZATION)):
            made = entry.asset_materialization
            if made is not None and made.asset_key == asset_key(key):
                return namespace.version(key, (made.tags or {})[DATA_VERSION_TAG])
    return None


def version_to_check(
    key: Key, namespace: "Namespace", instance: DagsterInstance, run_id: str
) -> "Version":
    """What a check of this run looks at: what the run made, else a newest one that never passed.

    A version that passed once and is not current was rolled back on purpose: checks that run on
    their own look at the current one then, and do not bring the other back.

    Raises:
        StepError: no version exists.
    """
    made = version_of_run(key, namespace, instance, run_id)
    if made is not None:
        return made
    versions = namespace.versions(key)
    newest = next((v for v in versions if v.manifest.limit is None), None)
    if newest is not None and namespace.not_passed(newest):
        return newest
    version = namespace.current(key) or newest or next(iter(versions), None)
    if version is None:
        raise StepError(f"Nothing was ever materialized at {key}, so there is nothing to check.")
    return version


def code_tag(code: str, parameters: Mapping[str, Any]) -> str:
    """One word for step source and parameters: what Dagster compares to tell stale from fresh."""
    value = {"code": code, "parameters": parameters}
    return hashlib.sha256(canonical(value)).hexdigest()[:20]


def event_tags(version: "Version") -> Mapping[str, str]:
    """The tags by which Dagster knows a version, its code and its inputs.

    Given explicitly because Dagster would name the latest materialization of each input, which is
    not what was read where that one failed its checks, was limited, or was rolled back.
    """
    tags = {
        DATA_VERSION_TAG: version.id,
        CODE_VERSION_TAG: code_tag(version.manifest.code, version.manifest.parameters),
        USER_PROVIDED_TAG: "true",
    }
    for key, read in version.manifest.inputs.items():
        tags[f"{INPUT_VERSION_TAG}/{key}"] = read
        tags[f"{INPUT_POINTER_TAG}/{key}"] = "NULL"
    return tags


def _run_and_parents(instance: DagsterInstance, run_id: str) -> Iterator[str]:
    current: str | None = run_id
    while current is not None:
        yield current
        run = instance.get_run_by_id(current)
        current = run.parent_run_id if run is not None else None
