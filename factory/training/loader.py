"""Loader: the stream of a run as the dataset provider that Megatron-Bridge asks for.

Bridge's own Energon configuration hands out a bare iterator, whose position it then cannot save;
this one hands out the loader itself. What a batch is made of is in `factory.data.stream`.
"""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol, cast

from megatron.bridge.data.base import DatasetBuildContext, DatasetProvider
from megatron.bridge.data.energon.base_energon_datamodule import EnergonDataloader

from factory.data.encoding.encoder import Chat
from factory.data.mixing import MixLock
from factory.data.packing import Regime
from factory.data.stream.account import BatchAccount
from factory.data.stream.build import batches, loader
from factory.data.stream.reader import Reader
from factory.errors import SpecError

ACCOUNT = "account"


class Observer(Protocol):
    """Something that is told of every batch that a rank trains on."""

    def on_batch(self, account: BatchAccount) -> None:
        """Take note; on the training thread, so it must be cheap."""
        ...


@dataclass(kw_only=True)
class MixProvider(DatasetProvider):
    """Training batches of a mix. A recipe says how it reads; a run says what, and where.

    Ranks of a data-parallel group read parts of their own; others read the same as one of those.
    """

    tokenizer: str
    """`bytes`, `tekken_240911`, or a path, see `factory.data.encoding.load`."""

    chat: Chat = "template"
    """How conversations are written: by the tokenizer's own template, or in labelled lines."""

    regime: Regime = "boundary_aware"
    buffer: int = 1024
    """Sequences that are packed together."""

    shuffle: int = 100
    """Samples of a source that are shuffled together."""

    seq_length: int = 0
    micro_batch_size: int = 0
    global_batch_size: int = 0
    seed: int = 0
    lock: str = ""
    """Path of the lock of the mix."""

    folders: dict[str, str] = field(default_factory=dict[str, str])
    """Directory of every `<key>/energon/train`, by the key of its dataset."""

    dataloader_type: Any = "external"
    num_workers: int = 0
    pin_memory: bool = False
    dataloader_save: str | None = None
    """Directory of the checkpoints: Bridge puts the loader's state into each."""

    dataloader_load: str | None = None
    """Where it finds that state; an empty path where there is none to go on from."""

    def __post_init__(self) -> None:
        # No field: it is no part of the configuration that is written down.
        self._observers: list[Observer] = []

    def __setattr__(self, name: str, value: Any) -> None:
        # Bridge puts a tokenizer of its own, which we do not use, where a dataset has that field.
        if name != "tokenizer" or isinstance(value, str):
            super().__setattr__(name, value)

    def observe(self, observer: Observer) -> None:
        """Tell an observer of every batch; before the datasets are built."""
        self._observers.append(observer)

    def locked(self) -> MixLock:
        """The lock of the mix.

        Raises:
            SpecError: it is none, or the recipe reads otherwise than it says.
        """
        lock = MixLock.from_json(Path(self.lock).read_bytes(), self.lock)
        for name, now, then in (
            ("dataset.tokenizer", self.tokenizer, lock.tokenizer),
            ("dataset.chat", self.chat, lock.chat),
            ("dataset.regime", self.regime, lock.packing.regime),
            ("dataset.buffer", self.buffer, lock.packing.buffer),
            ("dataset.shuffle", self.shuffle, lock.packing.shuffle),
        ):
            if now != then:
                raise SpecError(
                    f"{name} is {now!r}, but the mix of this run was locked with {then!r}. A run "
                    "keeps how it reads; launch a new one."
                )
        if lock.context > self.seq_length:
            raise SpecError(
                f"The mix was locked with sequences of {lock.context} tokens, but the model takes "
                f"{self.seq_length}. Set model.seq_length to {lock.context}."
            )
        return lock

    def build_datasets(
        self, context: DatasetBuildContext
    ) -> tuple[Any | None, Any | None, Any | None]:
        """The training loader; validation is not part of a run yet."""
        groups = context.pg_collection
        if groups is None:
            raise RuntimeError("Bridge built the datasets before its process groups; a defect.")
        if groups.pp.size() > 1 and self.micro_batch_size > 1:
            raise SpecError(
                f"train.micro_batch_size is {self.micro_batch_size}: the sequences of a batch lie "
                "in one row, and stages of a pipeline pass on rows of one sequence. Set it to 1; "
                "longer sequences hold as many documents."
            )
        reader = Reader(
            seed=self.seed,
            micro_batch_size=self.micro_batch_size,
            global_batch_size=self.global_batch_size,
            rank=groups.dp.rank(),  # not dp_cp: context-parallel ranks share their sequences
            ranks=groups.dp.size(),
            workers=self.num_workers,
        )
        folders = {key: Path(folder) for key, folder in self.folders.items()}
        dataset = batches(self.locked(), folders, reader, group=groups.dp)
        return Feed(loader(dataset), self._observers), None, None


class Feed(EnergonDataloader):
    """Batches as Bridge takes them, of which observers are told before they are trained on.

    What a loader has made ahead counts for nobody: after a restart it is made again.
    """

    def __init__(self, batches: Any, observers: list[Observer]) -> None:
        super().__init__(batches)
        self.observers = observers

    def __iter__(self) -> Any:
        """Itself: Bridge's gives away a bare generator, without a state."""
        return self

    def __next__(self) -> dict[str, Any]:
        """The next batch, without its account."""
        batch = cast("dict[str, Any]", super().__next__())
        account: BatchAccount = batch.pop(ACCOUNT)
        for observer in self.observers:
            observer.on_batch(account)
        return batch
