"""`training_job(spec)`: a Dagster job that gates a spec and runs it.

Two ops. `gate` pins what the run reads, or refuses; `train` gives the result to the client of the
run's cluster, follows it, and shows on the run's page what came of it. Every field of the spec is
in the launchpad with its default. What the gate demands is in `gates`.
"""

import copy
from typing import TYPE_CHECKING, Any

import dagster as dg
from pydantic import Field, create_model

from factory.control.abandoned import owner_tags
from factory.control.resources import RESOURCE, Factory
from factory.errors import GateRefused
from factory.spec import Launch, RunSpec

if TYPE_CHECKING:
    from factory.control.backend import Backend
    from factory.namespace import RunDirectory

SPEC_METADATA = "spec"
"""Job metadata that holds the spec's defaults."""


class RunConfig(dg.Config, RunSpec, frozen=True):
    """The spec as Dagster's run config: there is one definition of a run."""

    overrides: dict[str, Any | None] = Field(  # pyright: ignore[reportIncompatibleVariableOverride]  wider
        default_factory=dict[str, Any | None],
        description=RunSpec.model_fields["overrides"].description,
    )
    """Of any type here: people write `200` in the launchpad, and the spec reads it as text."""

    purpose: str = Field(  # pyright: ignore[reportIncompatibleVariableOverride]  wider
        default="training", description=RunSpec.model_fields["purpose"].description
    )
    """Text here: Dagster's configuration knows no literals, and the gate names a wrong one."""


def training_job(name: str, spec: RunSpec, *, description: str | None = None) -> dg.JobDefinition:
    """A job that trains what the spec says, each field of it a default in the launchpad."""

    def to_ops(given: dict[str, Any]) -> dict[str, Any]:
        # As it was given: a value out of range is for the gate to name. An error in here would
        # reach a person as a failure of Dagster's.
        return {"ops": {op: {"config": given} for op in ("gate", "train")}}

    schema: Any = _with_defaults(name, spec).to_config_schema()

    @dg.job(
        name=name,
        description=description or f"Train {spec.recipe} on the mix {spec.mix}.",
        config=dg.ConfigMapping(config_fn=to_ops, config_schema=schema),
        executor_def=dg.in_process_executor,
        metadata={SPEC_METADATA: dg.MetadataValue.json(spec.model_dump())},
    )
    def job() -> None:
        train_op(gate_op())

    return job


_SCHEMA: Any = RunConfig.to_config_schema()


@dg.op(name="gate", required_resource_keys={RESOURCE}, config_schema=_SCHEMA, out=dg.Out(dict))
def gate_op(context: dg.OpExecutionContext) -> dict[str, Any]:
    """Refuse the run, or pin the version of everything that it reads."""
    from factory.control.mix_metadata import mix_metadata

    context.instance.add_run_tags(context.run_id, owner_tags())  # the gate may take its time
    launch = gated(context)
    factory: Factory = context.resources.factory
    context.add_output_metadata(
        {
            **mix_metadata(factory.namespace.run(launch.run_id).path),
            "classification": launch.classification,
            "versions": _pins(launch),
            "commit": launch.code.commit or "none: not a checkout",
        }
    )
    context.log.info(f"gate passed: {len(launch.datasets)} dataset versions pinned")
    return launch.model_dump()


@dg.op(
    name="train", required_resource_keys={RESOURCE}, config_schema=_SCHEMA, out=dg.Out(dg.Nothing)
)
def train_op(context: dg.OpExecutionContext, launch: dict[str, Any]) -> None:
    """Run what the gate let through on its cluster, to the end."""
    from factory.control.adoption import acting_on_the_end
    from factory.control.pipes import FactoryPipesClient
    from factory.control.places import place
    from factory.namespace.attempts import last_attempt
    from factory.namespace.specs import keep_spec

    factory: Factory = context.resources.factory
    context.instance.add_run_tags(context.run_id, owner_tags())
    gate_let = Launch.model_validate(launch)
    backend = place(gate_let.spec, factory.settings, context)
    resolved = backend.adopted(gate_let.spec) or _begins(context, gate_let, backend)
    directory = factory.namespace.open_run(resolved.classification, resolved.run_id)
    if resolved.attempt == 1 and last_attempt(directory) == 0:
        keep_spec(directory, 1, resolved.spec)
    with acting_on_the_end(context, factory.settings.deployment):
        FactoryPipesClient(factory.settings, backend).run(
            context=context, launch=resolved, run_directory=directory
        )
        context.add_output_metadata(outcome(resolved, directory))


def _begins(context: dg.OpExecutionContext, launch: Launch, backend: "Backend") -> Launch:
    """A new attempt, of a number that no earlier execution of this step has used."""
    from factory.control.resuming import RESUMES

    if launch.run_id != context.run.tags.get(RESUMES, context.run.run_id):
        launch = gated(context)  # this op alone is run again, in another run
    attempt = max(launch.attempt, backend.next_attempt())
    return launch.model_copy(update={"attempt": attempt})


def gated(context: dg.OpExecutionContext) -> Launch:
    """The launch of this run, if the gate lets it through."""
    from factory.control.gates import gate
    from factory.control.going_on import refuse_while_going_on
    from factory.control.kube.chain import adopts
    from factory.control.places import place
    from factory.control.resuming import RESUMES, resumed
    from factory.control.specs import completed, parsed

    spec = completed(parsed(context.op_config))
    # Said of the run, not of its job, whose defaults the launchpad may have changed.
    tags = {"recipe": spec.recipe, "mix": spec.mix}
    context.instance.add_run_tags(context.run_id, tags)
    if before := adopts(context.run):
        adopted = place(spec, context.resources.factory.settings, context).adopted(spec)
        if adopted is None:
            raise GateRefused(
                f"Run {before} has nothing that goes on without its process. "
                "`factory resume` goes on from its last checkpoint."
            )
        return adopted
    if RESUMES in context.run.tags:
        refuse_while_going_on(context.instance, context.run.tags[RESUMES], of=context.run)
        return resumed(spec, context.run.tags, context.resources.factory)
    return gate(spec, run_id=context.run.run_id, factory=context.resources.factory)


def outcome(launch: Launch, directory: "RunDirectory") -> dict[str, Any]:
    """What the run's page shows of it."""
    from factory.control import came_of

    return {
        "run directory": dg.MetadataValue.path(str(directory.path)),
        "versions": _pins(launch),
        **came_of.shown(directory),
    }


def _with_defaults(name: str, spec: RunSpec) -> type[dg.Config]:
    fields: dict[str, Any] = {}
    for field, info in RunConfig.model_fields.items():
        changed = copy.copy(info)
        changed.default = getattr(spec, field)
        changed.default_factory = None
        fields[field] = (info.annotation, changed)
    return create_model(f"RunConfig_{name}", __base__=RunConfig, **fields)


def _pins(launch: Launch) -> dg.TableMetadataValue:
    return dg.MetadataValue.table(
        records=[
            dg.TableRecord({"asset": key, "version": version})
            for key, version in sorted(launch.datasets.items())
        ]
    )
