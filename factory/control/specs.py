"""From words to a run spec: every name, field and value checked before anything starts.

The spec itself is in `factory.spec`; what a recipe lets one override is in `discovery`.
"""

from collections.abc import Mapping
from typing import Any

from pydantic import ValidationError

from factory import discovery
from factory.control.clusters import Kubernetes, cluster
from factory.control.clusters.plain import what_to_write
from factory.control.kube.refusals import spec_refusals
from factory.control.nearest import naming
from factory.errors import SpecError
from factory.spec import RunSpec

OVERRIDES = "overrides"


def with_sets(base: RunSpec, sets: Mapping[str, str]) -> RunSpec:
    """A spec with some fields changed, each given as text.

    Raises:
        SpecError: an unknown field, or a value that the field cannot have.
    """
    values: dict[str, Any] = base.model_dump()
    for name, text in sets.items():
        field, dot, path = name.partition(".")
        if field == OVERRIDES and dot:
            values[OVERRIDES] = {**values[OVERRIDES], path: text}
        elif field == OVERRIDES:
            raise SpecError(
                f"{OVERRIDES}={text!r}: name the field of the recipe, "
                f"for instance {OVERRIDES}.train.train_iters=200."
            )
        elif name not in RunSpec.model_fields:
            raise SpecError(
                f"A run spec has no field {name!r}. {naming(name, RunSpec.model_fields)}"
            )
        else:
            values[name] = text
    return parsed(values)


def parsed(values: Mapping[str, Any]) -> RunSpec:
    """A spec from the values of its fields.

    Raises:
        SpecError: a value that its field cannot have; all of them, one per line.
    """
    try:
        return RunSpec.model_validate(values)
    except ValidationError as error:
        raise SpecError(_problems(error)) from error


def completed(spec: RunSpec) -> RunSpec:
    """The spec with what it leaves to its cluster: all GPUs of a node."""
    try:
        where = cluster(spec.cluster)
    except SpecError:
        return spec  # `check` says so
    if isinstance(where, Kubernetes) and not spec.gpus_per_worker:
        return spec.model_copy(update={"gpus_per_worker": where.nodes.gpus})
    return spec


def check(spec: RunSpec) -> RunSpec:
    """Check the names in a spec against what exists; returns it completed.

    Raises:
        SpecError: an unknown recipe, mix, cluster or override; all that is wrong, one per line.
    """
    spec = completed(spec)
    problems = [
        problem
        for check_one in (_check_recipe, _check_mix, _check_cluster)
        if (problem := check_one(spec))
    ]
    if problems:
        raise SpecError("\n".join(problems))
    return spec


def _check_recipe(spec: RunSpec) -> str | None:
    known = discovery.recipe_names()
    if spec.recipe not in known:
        return (
            f"No recipe {spec.recipe!r} in factory/training/recipes. {naming(spec.recipe, known)}"
        )
    if not spec.overrides:
        return None
    try:
        discovery.check_overrides(spec.recipe, spec.overrides)
    except SpecError as error:
        return str(error)
    return None


def _check_mix(spec: RunSpec) -> str | None:
    known = discovery.mixes()
    if spec.mix not in known:
        return f"No mix {spec.mix!r} in definitions/mixes. {naming(spec.mix, known)}"
    return None


def _check_cluster(spec: RunSpec) -> str | None:
    try:
        where = cluster(spec.cluster)
    except SpecError as error:
        return str(error)
    if isinstance(where, Kubernetes):
        return "\n".join(spec_refusals(spec, where)) or None
    profile = where.profile
    if profile == "cpu" and spec.gpus_per_worker:
        return (
            f"gpus_per_worker={spec.gpus_per_worker}: cluster {spec.cluster} has the cpu profile, "
            "which has no GPUs. Leave it 0."
        )
    if profile == "h100" and not spec.gpus_per_worker:
        return f"gpus_per_worker=0: cluster {spec.cluster} has the h100 profile, which needs GPUs."
    return None


def _problems(error: ValidationError) -> str:
    return "\n".join(_problem(dict(one)) for one in error.errors(include_url=False))


def _problem(error: dict[str, Any]) -> str:
    name = ".".join(map(str, error["loc"]))
    if error["type"] == "missing":
        return f"{name} is missing."
    if error["type"] == "extra_forbidden":
        return f"A run spec has no field {name!r}. {naming(name, RunSpec.model_fields)}"
    return f"{name}={error['input']!r}: {what_to_write(error)}."
