"""The step `clean`: the rows of each shard of the raw files, to samples, rejected rows and images.

How one row becomes a sample is in `clean`, how rows are read in `reader`. Images of a shard are
stored once in it, and `shared_images` takes care of those that several shards have.
"""

from collections import Counter
from dataclasses import asdict, dataclass, field, replace
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from factory.data import clean, layout, reader, shared_images, table
from factory.data.content import RowsHash
from factory.data.dataset import Dataset
from factory.data.engines import Tick
from factory.data.finished import Facts, Finished
from factory.data.images import Image, allowed
from factory.data.pattern import Pattern
from factory.data.phases import Workshop
from factory.data.publish import take_over
from factory.data.sample import Sample
from factory.data.schema import REJECTED
from factory.data.shards import Shard, plan
from factory.namespace import Staging

if TYPE_CHECKING:
    from factory.data.job import Job

REASONS_COUNTED = 50
"""Different reasons that the manifest counts; errors with messages of their own are many."""

OTHER_REASONS = "(other reasons)"

SAMPLES_FILE = "samples.parquet"
REJECTED_FILE = "rejected.parquet"


def cleaned(job: "Job", staging: Staging, shop: Workshop) -> None:
    """Clean: samples, the rejected rows and the images beside them."""
    dataset = job.step.dataset
    prefix = f"{layout.RAW_FILES}/"
    sizes = {
        name.removeprefix(prefix): entry.size
        for name, entry in job.input.manifest.files.items()
        if name.startswith(prefix)
    }
    wanted = Pattern.parse(dataset.source.rows).matching(sizes)
    shards = plan((name, sizes[name]) for name in wanted)
    done = _limited(job, shop, shards) if job.limit else _all(job, shop, shards)
    total = Tally()
    for one in done:
        total.merge(Tally.from_facts(one.facts))
    total.errors.refuse(dataset, finally_=True)
    take_over(staging, layout.SAMPLES, SAMPLES_FILE, done)
    take_over(staging, layout.REJECTED, REJECTED_FILE, done)
    shared_images.take_over(staging, shop, done)
    job.licenses[:] = sorted(total.licenses) or [dataset.license]
    staging.describe(
        content_id=total.kept.hexdigest(),
        rows=total.kept.count,
        columns=table.columns(),
        facts=total.manifest_facts(),
    )


@dataclass(frozen=True)
class CleanShard:
    """Cleans the rows of one shard."""

    dataset: Dataset
    files: Path

    def __call__(self, shard: Shard, folder: Path, tick: Tick) -> Facts:
        """Write the samples, the rejected rows and the images of a shard."""
        pattern = Pattern.parse(self.dataset.source.rows)
        tally = Tally()
        policy = allowed.policy(self.dataset.images, self.files.parent)
        rows = reader.read(self.files, shard.names, pattern, tally.notes, policy)
        with (
            table.Writer(folder / SAMPLES_FILE, table.SAMPLES) as kept,
            table.Writer(folder / REJECTED_FILE, REJECTED) as rejected,
            shared_images.Writer(folder) as images,
        ):
            for outcome in clean.cleaned(islice(rows, shard.limit), self.dataset, tally.errors):
                tick(1)
                if isinstance(outcome, clean.Refused):
                    tally.rejected[outcome.reason] += 1
                    rejected.add(outcome.as_dict())
                    continue
                tally.count(outcome)
                kept.add_plain(outcome.plain, outcome.sample.characters)
                images.add(_named(outcome.sample))
        return tally.facts()


def _named(sample: Sample) -> list[Image]:
    return [sample.images[name] for name in dict.fromkeys(one.image for one in sample.pictures)]


def _all(job: "Job", shop: Workshop, shards: list[Shard]) -> list[Finished]:
    task = CleanShard(job.step.dataset, job.input.path / layout.RAW_FILES)
    return shop.every("cleaned", task, shards, what="rows read")


def _limited(job: "Job", shop: Workshop, shards: list[Shard]) -> list[Finished]:
    """The first rows, over the shards in their order: how many of a shard depends on those before.

    A shard that would give none is not read.
    """
    task = CleanShard(job.step.dataset, job.input.path / layout.RAW_FILES)
    left = job.limit or 0
    done: list[Finished] = []
    for shard in shards:
        if left > 0:
            cut = replace(shard, limit=left)
            done += shop.every("cleaned", task, [cut], what="rows read")
            left -= Tally.from_facts(done[-1].facts).errors.read
    return done


@dataclass
class Tally:
    """What was seen while cleaning, in one shard or in several."""

    kept: RowsHash = field(default_factory=RowsHash)
    errors: clean.Errors = field(default_factory=clean.Errors)
    rejected: Counter[str] = field(default_factory=Counter[str])
    licenses: Counter[str] = field(default_factory=Counter[str])
    kinds: Counter[str] = field(default_factory=Counter[str])
    characters: int = 0
    notes: reader.Notes = field(default_factory=reader.Notes)

    def count(self, outcome: clean.Kept) -> None:
        """Count a sample in."""
        self.kept.add_line(outcome.line)
        self.licenses[outcome.plain["license"]] += 1
        self.kinds[outcome.sample.kind] += 1
        self.characters += outcome.sample.characters

    def merge(self, other: "Tally") -> None:
        """Count in what was seen in a later shard."""
        self.kept.merge(other.kept)
        self.errors.merge(other.errors)
        self.rejected += other.rejected
        self.licenses += other.licenses
        self.kinds += other.kinds
        self.characters += other.characters
        self.notes.merge(other.notes)

    def facts(self) -> dict[str, Any]:
        """As JSON; `from_facts` reads it."""
        return {
            "kept": self.kept.facts(),
            "errors": asdict(self.errors),
            "rejected": self.rejected,
            "licenses": self.licenses,
            "kinds": self.kinds,
            "characters": self.characters,
            "notes": self.notes.facts(),
        }

    @classmethod
    def from_facts(cls, facts: Facts) -> Self:
        """The inverse of `facts`."""
        return cls(
            kept=RowsHash.from_facts(facts["kept"]),
            errors=clean.Errors(**facts["errors"]),
            rejected=Counter(facts["rejected"]),
            licenses=Counter(facts["licenses"]),
            kinds=Counter(facts["kinds"]),
            characters=facts["characters"],
            notes=reader.Notes.from_facts(facts["notes"]),
        )

    def manifest_facts(self) -> dict[str, Any]:
        """What the manifest says of all shards together."""
        # Ties in the order of their words, so that no order of shards can be told from it.
        common = sorted(self.rejected.items(), key=lambda item: (-item[1], item[0]))
        reasons = dict(common[:REASONS_COUNTED])
        others = self.rejected.total() - sum(reasons.values())
        return {
            "rows_read": self.errors.read,
            "rejected": reasons | ({OTHER_REASONS: others} if others else {}),
            "licenses": dict(sorted(self.licenses.items())),
            "kinds": dict(sorted(self.kinds.items())),
            "characters": self.characters,
            "reading": self.notes.facts(),
        }
