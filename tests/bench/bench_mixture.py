"""What packing and the ledger cost: CPU-seconds a step over the step's wall time.

The run is a real one: Megatron-Bridge's `pretrain` on the debug recipe, with its loader, packer,
ledger, chain, writers and MLflow, each of their functions timed by its own thread's CPU clock. The
loaders are run alone on the same data: ours beside Energon's with its own packing, the same buffer,
tokenizer and cuts, and Bridge's first-fit-decreasing to choose what is packed together.

    python -m tests.bench bench_mixture
"""

import contextlib
import json
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

from factory.data import Sample
from factory.keys import parse, private
from factory.namespace import Namespace
from factory.settings import CHECKOUT, Settings
from factory.spec import CodeIdentity, Launch, RunSpec

STEPS, INTERVAL, WARM_UP = 60, 5, 10
CONTEXT, BUFFER, GLOBAL_BATCH = 1_024, 1_024, 8
ROUNDS = 3
LETTERS = private("text/discharge_letters/energon/train")

TIMED = {
    "packing": ("groups", "lay_out"),
    "account and hash of a batch": ("counts", "digest_of"),
    "ledger and chain": ("on_batch", "step_end"),
    "writing lines, MLflow": ("writer",),
}


def run() -> str:
    """Both measurements, and the section."""
    with tempfile.TemporaryDirectory() as folder:
        settings = _settings(Path(folder))
        _publish(Namespace(settings.root))
        trained = _in_process("train", settings)
        alone = _in_process("loaders", settings)
    return _section(trained, min(alone["bare"]), min(alone["ours"]))


def _section(trained: dict[str, Any], bare: float, ours: float) -> str:
    wall, whole = trained["wall"], trained["whole"]

    def row(name: str, seconds: float) -> str:
        return f"| {name} | {1e3 * seconds:.2f} | {seconds / whole:.2%} | {seconds / wall:.2%} |"

    total = sum(trained["cpu"].values())
    documents, tokens = trained["documents"], trained["tokens"]
    return "\n".join(
        [
            "## Packing and the ledger",
            "",
            f"A run of the debug recipe, {STEPS} steps of {GLOBAL_BATCH} sequences of "
            f"{CONTEXT:,} positions, buffer {BUFFER:,}, two datasets, a line every {INTERVAL} "
            f"steps. A step holds {documents:.0f} documents with {tokens:,.0f} tokens and takes "
            f"{1e3 * whole:.0f} ms of CPU time on one thread (mean), {1e3 * wall:.0f} ms by the "
            "clock (median); on a machine that others use as well the first is about what the "
            "second would be alone.",
            "",
            "| | CPU-ms a step | of the step's CPU time | of its wall time |",
            "|---|---|---|---|",
            *(
                row(name, sum(trained["cpu"][one] for one in parts))
                for name, parts in TIMED.items()
            ),
            row("all of it", total),
            "",
            f"Goal: at most 1% of the wall time. All of it is {1e6 * total / documents:.0f} µs a "
            "document; ranks share the documents of a step.",
            "",
            f"| loader alone, the best of {ROUNDS} rounds in turn | CPU-ms a step |",
            "|---|---|",
            f"| ours: exact shares, packing, account, hash | {1e3 * ours:.2f} |",
            f"| Energon with its packing, same buffer | {1e3 * bare:.2f} |",
        ]
    )


def _settings(folder: Path) -> Settings:
    (folder / "namespace").mkdir(exist_ok=True)
    return Settings.from_environment(
        {"FACTORY_ROOT": str(folder / "namespace"), "FACTORY_STATE": str(folder / "state")}
    )


def _publish(namespace: Namespace) -> None:
    from tests.training.conftest import KEY, publish

    publish(namespace, _documents("article", 900, (60, 400)))
    publish(namespace, _documents("letter", 1_500, (5, 60)), LETTERS)
    assert namespace.current(KEY) is not None


def _documents(name: str, count: int, words: tuple[int, int]) -> list[Sample]:
    from tests.training.conftest import WORDS

    chance = random.Random(name)
    return [
        Sample.document(
            id=f"{name}-{number}",
            title=f"{name} {number}",
            sections=[("Results", " ".join(chance.choices(WORDS, k=chance.randint(*words))))],
            license="CC-BY-4.0",
        )
        for number in range(count)
    ]


def _in_process(what: str, settings: Settings) -> dict[str, Any]:
    done = subprocess.run(
        [sys.executable, "-m", "tests.bench.bench_mixture", what],
        env={
            **os.environ,
            **settings.environment(),
            "TORCHDYNAMO_DISABLE": "1",
            "OMP_WAIT_POLICY": "PASSIVE",
            "OMP_NUM_THREADS": "1",
            "HF_HUB_OFFLINE": "1",
        },
        cwd=CHECKOUT,
        stdout=subprocess.PIPE,
        check=True,
    )
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    print(found, file=sys.stderr)
    return found


def _launch(namespace: Namespace) -> Launch:
    from tests.training.conftest import KEY

    versions = {key.path: namespace.current(key) for key in (KEY, LETTERS)}
    overrides = {
        "train.train_iters": str(STEPS),
        "train.global_batch_size": str(GLOBAL_BATCH),
        "train.micro_batch_size": "1",
        "model.seq_length": str(CONTEXT),
        "dataset.buffer": str(BUFFER),
        "logger.log_interval": str(INTERVAL),
        "checkpoint.save_interval": str(STEPS),
    }
    return Launch(
        run_id="bench",
        attempt=1,
        classification="private",
        spec=RunSpec(recipe="debug.pretrain", mix="letters", overrides=overrides),
        profile="cpu",
        datasets={key: version.id for key, version in versions.items() if version},
        image=None,
        code=CodeIdentity(commit=None, tree="bench", lock="bench"),
    )


class Clock:
    """CPU time of functions, each in the thread that calls it."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {one: 0.0 for parts in TIMED.values() for one in parts}

    def timed(self, name: str, owner: Any, attribute: str) -> None:
        """Time an attribute from now on."""
        function: Callable[..., Any] = getattr(owner, attribute)

        def around(*given: Any, **named: Any) -> Any:
            before = time.thread_time()
            try:
                return function(*given, **named)
            finally:
                self.seconds[name] += time.thread_time() - before

        setattr(owner, attribute, around)


def train() -> dict[str, Any]:
    """A real run with everything timed."""
    from factory.namespace.attempts import Attempt
    from factory.observe.mixture.files import ledger_of
    from factory.observe.mixture.writer import Writer
    from factory.training.cpu import stand_ins
    from factory.training.reading import write_lock
    from factory.training.train import Job, build
    from factory.training.train import train as on_rank

    settings = Settings.from_environment()
    namespace = Namespace(settings.root)
    launch = _launch(namespace)
    run = namespace.open_run(launch.classification, launch.run_id)
    attempt = Attempt(run, launch.attempt)
    attempt.claim()
    write_lock(namespace, launch, run)
    os.environ.update(RANK="0", WORLD_SIZE="1", LOCAL_RANK="0")
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT="29511")
    job = Job(launch, attempt, settings.state, time.time())
    clock = Clock()
    with stand_ins():
        from factory.data.stream import batches, collate
        from factory.observe.mixture.callback import Mixture
        from factory.training.resume.chain import ChainLog

        for name in ("groups", "lay_out", "digest_of"):
            clock.timed(name, batches, name)
        clock.timed("counts", collate.Collated, "counts")
        for owner in (Mixture, ChainLog):
            clock.timed("on_batch", owner, "on_batch")
            clock.timed("step_end", owner, "on_train_step_end")
        for owner in (Writer, ChainLog):
            clock.timed("writer", owner, "_write")
        ends = _ends(Mixture)
    before_end = _without_the_end(Writer)
    on_rank(job, build(job), rank=0)
    lines = ledger_of(run.path)
    clock.seconds["writer"] -= before_end[0]
    return {
        "wall": statistics.median(b - a for (a, _), (b, _) in pairwise(ends[WARM_UP:])),
        "whole": statistics.mean(b - a for (_, a), (_, b) in pairwise(ends[WARM_UP:])),
        "cpu": {name: seconds / STEPS for name, seconds in clock.seconds.items()},
        "documents": sum(one.documents for one in lines[-1].sources) / STEPS,
        "tokens": sum(one.tokens for one in lines[-1].sources) / STEPS,
    }


def _ends(mixture: Any) -> list[tuple[float, float]]:
    """Wall and CPU time at the end of each step."""
    ends: list[tuple[float, float]] = []
    step_end = mixture.on_train_step_end

    def around(*given: Any) -> None:
        step_end(*given)
        ends.append((time.perf_counter(), time.process_time()))

    mixture.on_train_step_end = around
    return ends


def _without_the_end(writer: Any) -> list[float]:
    """CPU time of the files of the end, which a run writes once."""
    spent = [0.0]
    finish = writer._finish

    def around(self: Any) -> None:
        before = time.thread_time()
        finish(self)
        spent[0] += time.thread_time() - before

    writer._finish = around
    return spent


def loaders() -> dict[str, Any]:
    """CPU-seconds a step of our loader and of Energon's, in turn."""
    from factory.data.stream.build import batches, loader
    from factory.data.stream.reader import Reader
    from factory.observe.mixture.files import lock_of
    from factory.training.cpu import stand_ins

    with stand_ins():
        from tests.bench.bare_energon import bare_loader
    settings = Settings.from_environment()
    namespace = Namespace(settings.root)
    lock = lock_of(namespace.open_run("private", "bench").path)
    folders = {
        one.key: namespace.version(parse(one.train), one.version).path for one in lock.sources
    }
    reader = Reader(seed=1, micro_batch_size=1, global_batch_size=GLOBAL_BATCH)
    ours = iter(loader(batches(lock, folders, reader)))
    with tempfile.TemporaryDirectory() as scratch:
        bare = iter(bare_loader(lock, folders, Path(scratch)))
        spent: dict[str, list[float]] = {"bare": [], "ours": []}
        for _ in range(1 + ROUNDS):
            for name, stream in (("bare", bare), ("ours", ours)):
                spent[name].append(_cpu(stream, GLOBAL_BATCH * STEPS) / STEPS)
    return {name: rounds[1:] for name, rounds in spent.items()}


def _cpu(stream: Iterator[Any], count: int) -> float:
    before = time.process_time()
    for _ in range(count):
        next(stream)
    return time.process_time() - before


if __name__ == "__main__":
    with warnings.catch_warnings(), contextlib.redirect_stdout(sys.stderr):
        warnings.simplefilter("ignore")
        found = {"train": train, "loaders": loaders}[sys.argv[1]]()
    print(json.dumps(found))
