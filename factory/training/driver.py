"""The driver: the process that a launch starts. It opens Pipes, starts the workers, watches them.

It imports neither torch nor Bridge, so that a person sees it alive at once. The ranks are in
`workers`, what they do in `train`. What it says is in `factory.reports`. Before it writes anything
it claims its attempt of the run (`factory.namespace.attempts`).
"""

import dataclasses
import json
import signal
import sys
import time
from collections.abc import Sequence
from datetime import UTC, datetime
from types import FrameType
from typing import Any

from dagster_pipes import (
    PipesContext,
    PipesDefaultContextLoader,
    PipesEnvVarParamsLoader,
    open_dagster_pipes,
)

from factory.discovery import check_overrides, mixes, recipe_names
from factory.errors import FactoryError, SpecError, Superseded
from factory.namespace import Damage, Namespace
from factory.namespace.attempts import Attempt
from factory.namespace.checkpoints import Checkpoint
from factory.namespace.specs import keep_spec
from factory.observe.mixture.files import LEDGER
from factory.reports import MixtureLine, Phase, RunRecord, StepLine
from factory.settings import Dependencies, Settings, ray_address
from factory.spec import Launch
from factory.training import profiles, workers
from factory.training.follow import Tail
from factory.training.messages import NamespaceMessageWriter
from factory.training.reading import write_lock
from factory.training.resume.start import Start, choose, nothing_left, shares
from factory.training.resume.watch import SUPERSEDED
from factory.training.train import MONITOR, Job
from factory.training.waiting import Ended, Waiting
from factory.training.workers import Prepared

DONE, FAILED, REFUSED, PREEMPTED = 0, 1, 3, 75
"""Exit codes: done; training failed; the launch cannot be run; told to stop, and to be resumed.
`SUPERSEDED`, where another driver holds the run, is in `resume.watch`."""

type Report = Phase | StepLine | MixtureLine

CLAIM_LOOKED_AT_SECONDS = 2.0


class Ending:
    """Whether the driver was told to stop. Ray's calls break if a signal handler raises in them."""

    def __init__(self) -> None:
        self.told = False

    def listen(self) -> None:
        """Take SIGTERM as that word. To be called again when Ray has taken the signal."""
        signal.signal(signal.SIGTERM, self._hear)

    def check(self) -> None:
        """Stop here if so."""
        if self.told:
            raise Ended("It was told to stop before training had begun.")

    def _hear(self, signum: int, frame: FrameType | None) -> None:
        self.told = True


def main() -> int:
    """Run the launch that Pipes carries; returns the exit code."""
    ending = Ending()
    ending.listen()
    try:
        launch = Launch.model_validate(_launch())
        settings = Settings.from_environment()
        run = Namespace(settings.root).open_run(launch.classification, launch.run_id)
        attempt = Attempt(run, launch.attempt)
        attempt.claim()
        if launch.attempt > 1:
            keep_spec(run, launch.attempt, launch.spec)
        writer = NamespaceMessageWriter(check=attempt.check)
        with open_dagster_pipes(message_writer=writer) as pipes:
            Driver(launch, pipes, settings, attempt, ending).run(ray_address())
    except Superseded as replaced:
        sys.stdout.write(f"ended: {replaced}\n")
        return SUPERSEDED
    except SpecError as refusal:
        sys.stdout.write(f"refused: {refusal}\n")
        return REFUSED
    except FactoryError as failure:
        sys.stdout.write(f"failed: {failure}\n")
        return FAILED
    except Ended as ended:
        sys.stdout.write(f"preempted: {ended}\n")
        return PREEMPTED
    return DONE


class Driver:
    """One launch, from an empty cluster to a checkpoint."""

    def __init__(
        self,
        launch: Launch,
        pipes: PipesContext,
        settings: Settings,
        attempt: Attempt,
        ending: Ending,
    ) -> None:
        self.launch = launch
        self.ending = ending
        self.pipes = pipes
        self.attempt = attempt
        self.started = time.time()
        self.namespace = Namespace(settings.root)
        self.run_directory = attempt.run
        self.dependencies: Dependencies | None = settings.dependencies
        self.job = Job(launch, attempt, settings.state, self.started)
        self.run_directory.directory(MONITOR)
        self.tails = [
            (Tail(self.run_directory.path / name), kind)
            for name, kind in (
                (f"{MONITOR}/phases.jsonl", Phase),
                (f"{MONITOR}/steps.jsonl", StepLine),
                (f"{MONITOR}/completed.jsonl", Phase),
                (LEDGER, MixtureLine),
            )
        ]
        self.waiting = Waiting(self._relay, lambda: ending.told)
        self._claim_looked_at = time.monotonic()

    def run(self, address: str) -> None:
        """Do it all.

        Raises:
            SpecError: the launch cannot be run.
            RunFailed: a worker failed; the message is about the first one that did.
            Superseded: a later attempt has claimed the run.
            Ended: it was told to stop; the run can go on from its last checkpoint.
        """
        self.say("driver", f"attempt {self.launch.attempt} of run {self.launch.run_id}")
        self._check()
        write_lock(self.namespace, self.launch, self.run_directory)
        workers.connect(address, self.ending.check)
        self.ending.listen()
        self.say("cluster", address)
        with workers.started(self.launch, self.ending.check) as ranks:
            self.say("workers", f"{len(ranks)} starting")
            start = self._start(ranks)
            if start is not None and nothing_left(start, self.launch.spec):
                self.say("done", f"nothing left to do: step {start.checkpoint.step} was its last")
                return
            job = dataclasses.replace(self.job, start=start)
            prepared: list[Prepared] = self.waiting.all([rank.build.remote(job) for rank in ranks])
            self._write_record(prepared)
            self.say("build", f"{self.launch.spec.recipe} on the {self.launch.profile} profile")
            if job.start is not None and job.start.redistributed:
                self.waiting.all([ranks[0].redistribute.remote(job)])
                self.say("redistribute", f"the data of step {job.start.checkpoint.step}")
            port = self.waiting.all([ranks[0].free_port.remote()])[0]
            stopped = self.waiting.all(
                [rank.train.remote(job, prepared[0].address, port) for rank in ranks],
                stop=self._ask_to_save,
                grace_seconds=self.launch.grace_seconds,
            )
        self._relay()
        if any(stopped):
            self.say("preempted", "saved; the next attempt goes on from there")
            raise Ended("It was told to stop, and its ranks have saved.")
        self.say("done")

    def _start(self, ranks: Sequence[Any]) -> Start | None:
        """Where this attempt goes on; none where the run begins."""
        if self.launch.attempt == 1:
            return None

        def verify(checkpoint: Checkpoint) -> list[Damage]:
            asked = [
                rank.verify.remote(checkpoint, names)
                for rank, names in zip(
                    ranks, shares(sorted(checkpoint.marker.files), len(ranks)), strict=True
                )
            ]
            return [damage for found in self.waiting.all(asked) for damage in found]

        checkpoint = choose(self.attempt, verify, self.say)
        if checkpoint is None:
            self.say("resume", "there is no complete checkpoint, so the run begins again")
            return None
        how = ", with its data from their beginning" if self.launch.fresh_data else ""
        self.say("resume", f"from the checkpoint of step {checkpoint.step}{how}")
        fresh, moved = self.launch.fresh_data, self.launch.redistribute
        return Start(checkpoint, fresh_data=fresh, redistributed=moved and not fresh)

    def _ask_to_save(self) -> None:
        self.attempt.stop()
        self.say("stopping", f"the ranks save; they have {self.launch.grace_seconds:g} s")

    def say(self, name: str, detail: str = "") -> None:
        """Report a phase to Dagster and to the log."""
        self._report(Phase(name=name, detail=detail, seconds=time.time() - self.started))

    def _check(self) -> None:
        spec = self.launch.spec
        if spec.recipe not in recipe_names():
            raise SpecError(f"No recipe {spec.recipe!r}. Known: {', '.join(recipe_names())}.")
        if spec.mix not in mixes():
            raise SpecError(f"No mix {spec.mix!r}. Known: {', '.join(mixes())}.")
        check_overrides(spec.recipe, spec.overrides)
        profiles.refuse_overrides(spec.overrides, self.launch.profile)

    def _write_record(self, prepared: Sequence[Prepared]) -> None:
        first = prepared[0]
        record = RunRecord(
            launch=self.launch,
            started_at=datetime.fromtimestamp(self.started, UTC).isoformat(),
            dependencies=self.dependencies,
            python=first.python,
            packages=dict(first.packages),
            nodes=sorted({one.node for one in prepared}),
            world_size=len(prepared),
            config_sha256=first.config_sha256,
        )
        attempt = self.launch.attempt
        name = "record.json" if attempt == 1 else f"record.{attempt}.json"
        self.run_directory.create(name, record.model_dump_json(indent=2).encode())

    def _relay(self) -> None:
        if time.monotonic() - self._claim_looked_at > CLAIM_LOOKED_AT_SECONDS:
            self._claim_looked_at = time.monotonic()
            self.attempt.check()
        for tail, kind in self.tails:
            for line in filter(None, tail.lines()):  # empty: a line that a crash cut off, closed
                self._report(kind.model_validate_json(line))

    def _report(self, message: Report) -> None:
        self.pipes.report_custom_message(message.model_dump())
        sys.stdout.write(_readable(message) + "\n")
        sys.stdout.flush()


def _readable(message: Report) -> str:
    if isinstance(message, Phase):
        return f"[{message.seconds:6.1f} s] {message.name} {message.detail}".rstrip()
    if isinstance(message, MixtureLine):
        said = [*(f"drift: {alarm}" for alarm in message.alarms), *message.notes]
        padding = (message.ending + message.aligning) / max(1, message.slots)
        samples = sum(source.samples for source in message.sources)
        return "\n".join([f"mixture {samples:,} samples, {padding:.2%} padding", *said])
    rate = "" if message.learning_rate is None else f"  lr {message.learning_rate:.2e}"
    norm = "" if message.grad_norm is None else f"  grad norm {message.grad_norm:.2f}"
    return (
        f"step {message.step}/{message.of}  loss {message.loss:.4f}{rate}{norm}"
        f"  {message.tokens:,} tokens  {message.seconds:.1f} s"
    )


def _launch() -> Any:
    """The launch, before Pipes is opened: opening it writes."""
    params = PipesEnvVarParamsLoader().load_context_params()
    with PipesDefaultContextLoader().load_context(params) as context:
        given: Any = (context["extras"] or {})["launch"]
    return json.loads(given) if isinstance(given, str) else given
