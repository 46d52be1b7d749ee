"""Running a step: find the version that its input gives, or write it.

What fills a version is in `making` and in the module of each step; what decides that it is the
same one is `steps.input_id`.
"""

from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass

from factory.data import (
    cleaning,
    content,
    deduplicating,
    dividing,
    engines,
    intake,
    making,
    preparing,
)
from factory.data.fetch import file_mirror
from factory.data.job import Job
from factory.data.phases import Workshop
from factory.data.progress import Say
from factory.data.sources import LocalFiles, PartnerDrop
from factory.data.steps import Step, StepResult, input_id
from factory.data.template import holes
from factory.errors import BadFile, StepError, StepInterrupted
from factory.keys import Key
from factory.namespace import Namespace, Provenance, Staging, Version
from factory.settings import Settings

type Fill = Callable[[Job, Staging], None]

_OVER_SHARDS: dict[str, Callable[[Job, Staging, Workshop], None]] = {
    "clean": cleaning.cleaned,
    "deduplicated": deduplicating.deduplicated,
    "split": dividing.divided,
    "energon": preparing.prepared,
}


def _over_shards(job: Job, staging: Staging) -> None:
    """Fill a version shard by shard; what is finished of it outlives this process."""
    fill = _OVER_SHARDS[job.step.kind]
    with engines.opened(job.engine) as engine:
        try:
            fill(job, staging, Workshop(staging.work.open(), engine, job.say))
        except StepInterrupted:
            raise
        except (BadFile, StepError):
            staging.work.drop()  # it would come to the same end again
            raise


@dataclass
class Work:
    """One step, about to be done."""

    step: Step
    namespace: Namespace
    inputs: Mapping[Key, Version]
    settings: Settings
    provenance: Provenance
    limit: int | None
    say: Say
    engine: str

    def do(self) -> StepResult:
        """Make the version, unless it is there."""
        self._refuse_holes()
        self._refuse_missing_inputs()
        job = Job(self.step, self.inputs, self.settings, self.limit, self.say, self.engine)
        source = self.step.dataset.source
        if self.step.kind == "raw" and isinstance(source, LocalFiles):
            folder, names = making.delivered(job, source)
            state = content.files_hash(folder, names)
            return self._made(job, making.Taken(folder, names, state), state)
        if self.step.kind == "raw" and isinstance(source, PartnerDrop):
            state = intake.state(job, source)
            return self._made(job, intake.Intake(source, state), state)
        if self.step.kind == "raw":
            mirrored = file_mirror.state(source, self.settings.mirrors)
            return self._made(job, making.fetched, mirrored)
        return self._made(job, _over_shards)

    def _refuse_holes(self) -> None:
        file = self.step.dataset.declared_in
        left = holes(file) if file.suffix == ".py" else []
        if left:
            listed = "\n".join(f"  {line}" for line in left)
            raise StepError(f"{self.step.dataset.key} is not filled in yet, in {file}:\n{listed}")

    def _refuse_missing_inputs(self) -> None:
        missing = [key.path for key in self.step.inputs if key not in self.inputs]
        if missing:
            raise StepError(
                f"{self.step.key} reads {', '.join(missing)}, which has no current version. "
                "Materialize it first, and let its checks pass."
            )

    def _refuse_damaged_inputs(self) -> None:
        """What is made of damage would be current and intact for ever, also after the repair."""
        for version in self.inputs.values():
            if damage := self.namespace.verify(version):
                first = damage[0]
                raise StepError(
                    f"{version} is damaged ({first.path}: {first.problem}), so nothing is made "
                    f"from it. Materialize {version.key} first: that makes it again."
                )

    def _made(self, job: Job, fill: Fill, source_state: str = "") -> StepResult:
        identity = input_id(self.step, self.inputs, self.limit, source_state)
        known = self.namespace.find(self.step.key, identity)
        if known is not None and self.namespace.verify(known):
            self.say(f"{known} is damaged: it is made again")
        elif known is not None and self.namespace.renew(known):
            self.say(f"{known} is there already: nothing that it depends on has changed")
            return StepResult(known, reused=True)
        self._refuse_damaged_inputs()
        with self._writing(job, identity) as staging:
            fill(job, staging)
        return StepResult(staging.version, reused=staging.reused)

    @contextmanager
    def _writing(self, job: Job, identity: str) -> Generator[Staging]:
        step = self.step
        first = step.kind == "raw"
        with self.namespace.write(
            step.key,
            inputs=list(self.inputs.values()),
            input_id=identity,
            provenance=self.provenance,
            source=step.dataset.source.classification if first else None,
            private_on_purpose=first and step.dataset.private_on_purpose,
            parameters=dict(step.parameters),
            code=step.code_version,
            checks=[check.name for check in step.checks if check.blocking],
            licenses=job.licenses,  # filled while the rows are read, and read when they all are
            limit=self.limit if step.kind == "clean" else None,
        ) as staging:
            yield staging
