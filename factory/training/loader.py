"""Loader: the blend of a run as the dataset provider that Megatron-Bridge asks for.

Bridge's own Energon configuration hands out a bare iterator, whose position it then cannot save;
this one hands out the loader itself. Sequences come from `factory.data.encoder`.
"""

from dataclasses import dataclass
from typing import Any

from megatron.bridge.data.base import DatasetBuildContext, DatasetProvider

SHUFFLE_BUFFER_SAMPLES = 100


@dataclass(kw_only=True)
class BlendProvider(DatasetProvider):
    """Training batches from an Energon blend. Every rank of a data-parallel group reads its own."""

    path: str
    seq_length: int
    micro_batch_size: int
    seed: int
    dataloader_type: Any = "external"
    num_workers: int = 0
    pin_memory: bool = False

    def build_datasets(
        self, context: DatasetBuildContext
    ) -> tuple[Any | None, Any | None, Any | None]:
        """The training loader; validation is not part of a run yet."""
        from megatron.bridge.data.energon.base_energon_datamodule import EnergonDataloader
        from megatron.energon import WorkerConfig, get_savable_loader, get_train_dataset
        from megatron.energon.errors import reraise_exception

        from factory.data.encoder import task_encoder

        groups = context.pg_collection
        if groups is None:
            raise RuntimeError("Bridge built the datasets before its process groups; a defect.")
        workers = WorkerConfig(
            rank=groups.dp.rank(),  # not dp_cp: context-parallel ranks share their sequences
            world_size=groups.dp.size(),
            num_workers=self.num_workers,
            data_parallel_group=groups.dp,
            seed_offset=self.seed,
            global_error_handler=reraise_exception,  # Energon's default logs and skips the sample
        )
        dataset = get_train_dataset(
            self.path,
            worker_config=workers,
            batch_size=self.micro_batch_size,
            shuffle_buffer_size=SHUFFLE_BUFFER_SAMPLES,
            max_samples_per_sequence=SHUFFLE_BUFFER_SAMPLES,
            task_encoder=task_encoder(self.seq_length),
        )
        return EnergonDataloader(get_savable_loader(dataset)), None, None
