"""Making: what fills the directory of a version, for each step.

The work is done by `fetch` and `raw`, `reader` and `clean`, `deduplicate`, `split`, `energon`; this
module carries files to them and from them, and says what they saw.
"""

import hashlib
import shutil
from collections import Counter
from collections.abc import Iterable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any

from factory.data import clean, content, deduplicate, energon, layout, raw, reader, split, table
from factory.data.fetch import fetch
from factory.data.fetch.errand import Errand
from factory.data.fetch.mirrors import mirror_of
from factory.data.progress import Say, Ticker
from factory.data.row import Pattern
from factory.data.sample import Sample, canonical
from factory.data.schema import REJECTED
from factory.data.sources import Derived, LocalFiles
from factory.data.statistics import Statistics
from factory.data.steps import SAMPLES_PER_SHARD, Step
from factory.errors import SourceError
from factory.keys import Key
from factory.namespace import Staging, Version
from factory.settings import Settings

REASONS_COUNTED = 50
"""Different reasons that the manifest counts; errors with messages of their own are many."""

OTHER_REASONS = "(other reasons)"


@dataclass
class Job:
    """What a step is given."""

    step: Step
    inputs: Mapping[Key, Version]
    settings: Settings
    limit: int | None
    say: Say
    licenses: list[str] = field(init=False)
    """Every licence in the content: first what the inputs say, then what the rows say."""

    def __post_init__(self) -> None:
        inherited = [name for one in self.inputs.values() for name in one.manifest.licenses]
        self.licenses = [] if self.step.kind in ("raw", "clean") else inherited
        self.licenses = self.licenses or [self.step.dataset.license]

    @property
    def input(self) -> Version:
        """The version that is read."""
        (version,) = self.inputs.values()
        return version

    def errand(self, scratch: Path) -> Errand:
        """What a fetcher needs to know."""
        return Errand(
            scratch=scratch,
            mirror=mirror_of(self.step.dataset.source.address, self.settings.mirrors),
            drops=self.settings.drops,
            inputs=self.inputs,
            say=self.say,
        )


def fetched(job: Job, staging: Staging) -> None:
    """Raw, from a source that a hash or a version pins."""
    source = job.step.dataset.source
    files = staging.path / layout.RAW_FILES
    if isinstance(source, Derived):
        files.mkdir()
        fetch(source, job.errand(files))
        _describe_files(files, raw.wanted(files, source.rows), staging)
        return
    scratch = job.settings.state / "downloads" / "__".join(job.step.key.parts)
    scratch.mkdir(parents=True, exist_ok=True)
    found = fetch(source, job.errand(scratch))
    names = raw.wanted(found.folder, source.rows)
    raw.take(found.folder, names, files, Ticker(job.say, "files taken"))
    _describe_files(files, names, staging, partial=found.partial)
    shutil.rmtree(scratch)


def delivered(job: Job, source: LocalFiles) -> tuple[Path, list[str]]:
    """The drop folder of a partner, and the files in it that count."""
    folder = fetch(source, job.errand(job.settings.state)).folder
    return folder, raw.wanted(folder, source.rows)


@dataclass(frozen=True)
class Taken:
    """Raw, from a drop folder whose contents were hashed before."""

    folder: Path
    names: list[str]
    state: str

    def __call__(self, job: Job, staging: Staging) -> None:
        """Copy the files, and see that nobody changed them meanwhile."""
        files = staging.path / layout.RAW_FILES
        raw.take(self.folder, self.names, files, Ticker(job.say, "files taken"))
        if content.files_hash(files, self.names) != self.state:
            raise SourceError(
                f"The drop folder {self.folder} changed while it was read. Is a delivery under "
                "way? Run the step again when it is finished."
            )
        _describe_files(files, self.names, staging)


def cleaned(job: Job, staging: Staging) -> None:
    """Clean: samples, and the rejected rows beside them."""
    dataset = job.step.dataset
    pattern = Pattern.parse(dataset.source.rows)
    prefix = f"{layout.RAW_FILES}/"
    files = job.input.manifest.files
    names = [name.removeprefix(prefix) for name in files if name.startswith(prefix)]
    notes = reader.Notes()
    rows = reader.read(job.input.path / prefix, pattern.matching(names), pattern, notes)
    tally = _Tally()
    ticker = Ticker(job.say, "rows read")
    with (
        table.Writer(_new(staging, layout.SAMPLES), table.SAMPLES) as kept,
        table.Writer(_new(staging, layout.REJECTED), REJECTED) as rejected,
    ):
        for outcome in ticker.over(clean.cleaned(islice(rows, job.limit), dataset)):
            tally.count(outcome)
            if isinstance(outcome, Sample):
                kept.add_sample(outcome)
            else:
                rejected.add(outcome.as_dict())
    job.licenses[:] = sorted(tally.licenses) or [dataset.license]
    staging.describe(
        content_id=tally.kept.hexdigest(),
        rows=tally.kept.count,
        columns=table.columns(),
        facts=tally.facts() | {"reading": notes.facts()},
    )


@dataclass
class _Tally:
    """What was seen while cleaning."""

    kept: content.RowsHash = field(default_factory=content.RowsHash)
    rejected: Counter[str] = field(default_factory=Counter[str])
    licenses: Counter[str] = field(default_factory=Counter[str])
    kinds: Counter[str] = field(default_factory=Counter[str])
    characters: int = 0

    def count(self, outcome: Sample | clean.Refused) -> None:
        if isinstance(outcome, clean.Refused):
            self.rejected[outcome.reason] += 1
            return
        self.kept.add(outcome)
        self.licenses[outcome.license] += 1
        self.kinds[outcome.kind] += 1
        self.characters += outcome.characters

    def facts(self) -> dict[str, Any]:
        reasons = dict(self.rejected.most_common(REASONS_COUNTED))
        others = self.rejected.total() - sum(reasons.values())
        return {
            "rows_read": self.kept.count + self.rejected.total(),
            "rejected": reasons | ({OTHER_REASONS: others} if others else {}),
            "licenses": dict(sorted(self.licenses.items())),
            "kinds": dict(sorted(self.kinds.items())),
            "characters": self.characters,
        }


def deduplicated(job: Job, staging: Staging) -> None:
    """Deduplicated: the samples that stay, and beside them which ones went, and for which."""
    file = job.input.path / layout.SAMPLES
    compared = Ticker(job.say, "samples compared").over(table.samples(file))
    policy = job.step.dataset.deduplicate
    removed = deduplicate.removed(compared, policy, staging.path / "signatures.arrow")
    deduplicate.write(removed, staging.path / layout.REMOVED)
    gone = deduplicate.ids(removed)
    kept = content.RowsHash()
    counted = Statistics(job.input.manifest.rows or 0)
    with table.Writer(_new(staging, layout.SAMPLES), table.SAMPLES) as writer:
        for sample in Ticker(job.say, "samples sorted").over(table.samples(file)):
            if sample.id not in gone:
                writer.add_sample(sample)
                kept.add(sample)
                counted.add(sample)
    seen = layout.facts_of(job.input.path)
    duplicates: dict[str, Any] = dict(deduplicate.counts(removed))
    staging.describe(
        content_id=kept.hexdigest(),
        rows=kept.count,
        columns=table.columns(),
        facts={
            "duplicates": duplicates,
            "clean_rows": job.input.manifest.rows,
            "rows_read": seen["rows_read"],
            "rejected_rows": sum(seen["rejected"].values()),
            "statistics": counted.facts(),
        },
    )


def divided(job: Job, staging: Staging) -> None:
    """Split: one file of samples per split."""
    shares = job.step.dataset.split
    file = job.input.path / layout.SAMPLES
    assignment = split.assign(table.column(file, "group"), shares)
    hashes = {name: content.RowsHash() for name in shares}
    with ExitStack() as stack:
        writers = {
            name: stack.enter_context(
                table.Writer(_new(staging, layout.split_table(name)), table.SAMPLES)
            )
            for name in shares
        }
        for sample in Ticker(job.say, "samples split").over(table.samples(file)):
            name = assignment.split_of[sample.group]
            writers[name].add_sample(sample)
            hashes[name].add(sample)
    groups = Counter(assignment.split_of.values())
    staging.describe(
        content_id=_hash({name: one.hexdigest() for name, one in hashes.items()}),
        rows=sum(one.count for one in hashes.values()),
        columns=table.columns(),
        facts={
            "rows": {name: one.count for name, one in hashes.items()},
            "groups": {name: groups[name] for name in shares},
            "filled": dict(assignment.filled),
            "input_rows": job.input.manifest.rows,
            "input_content": job.input.manifest.content_id,
        },
    )


def prepared(job: Job, staging: Staging) -> None:
    """Energon: the samples of one split in shards, with Energon's index."""
    name = job.step.split
    samples = energon.in_order(table.samples(job.input.path / layout.split_table(name)))
    ticker = Ticker(job.say, "entries written")
    shards = energon.write_shards(samples, staging.path, SAMPLES_PER_SHARD, ticker)
    energon.prepare(staging.path, len(shards), job.say)
    energon.write_loss(staging.path, job.step.dataset.loss)
    staging.describe(
        content_id=energon.content_id(samples, SAMPLES_PER_SHARD),
        rows=len(samples),
        facts={
            "shards": len(shards),
            "split_rows": layout.facts_of(job.input.path)["rows"][name],
            "characters": sum(sample.characters for sample in samples),
        },
    )


def _new(staging: Staging, name: str) -> Path:
    (staging.path / name).mkdir()
    return table.file(staging.path / name, 0)


def _describe_files(
    files: Path, names: Iterable[str], staging: Staging, *, partial: bool = False
) -> None:
    names = list(names)
    total = sum((files / name).stat().st_size for name in names)
    staging.describe(
        content_id=content.files_hash(files, names),
        facts={"files": len(names), "bytes": total},
        partial=partial,
    )


def _hash(value: Mapping[str, Any]) -> str:
    return hashlib.sha256(canonical(value)).hexdigest()
