"""What a step is given, while it runs. Who runs it is `run`."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from factory.data.engines import LOCAL
from factory.data.fetch.errand import Errand
from factory.data.fetch.mirrors import mirror_of
from factory.data.progress import Say
from factory.data.shards import Shard, one_each
from factory.data.steps import Step
from factory.keys import Key
from factory.namespace import Version
from factory.settings import Settings


@dataclass
class Job:
    """What a step is given."""

    step: Step
    inputs: Mapping[Key, Version]
    settings: Settings
    limit: int | None
    say: Say
    engine: str = LOCAL
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

    def table(self, name: str) -> list[Shard]:
        """The files of a table of the input: each is a shard of this step's work."""
        files = self.input.manifest.files
        named = [(one, entry.size) for one, entry in files.items() if one.startswith(f"{name}/")]
        return one_each(sorted(named, key=lambda item: (len(item[0]), item[0])))

    def errand(self, scratch: Path) -> Errand:
        """What a fetcher needs to know."""
        return Errand(
            scratch=scratch,
            mirror=mirror_of(self.step.dataset.source.address, self.settings.mirrors),
            drops=self.settings.drops,
            closed=tuple(
                one for one in (self.settings.root, self.settings.drops) if one is not None
            ),
            inputs=self.inputs,
            say=self.say,
        )
