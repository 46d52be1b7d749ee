"""Resolve: a declared mix, the versions that it reads and a recipe's settings become a lock.

Which versions may be read is the gate's to say (`factory.control.gates`).
"""

from collections.abc import Mapping
from pathlib import Path

from factory.data.encoding import Encoder, images, load
from factory.data.mix import Mix, Weighted
from factory.data.mixing.expect import expectations
from factory.data.mixing.lock import LockedPacking, LockedSource, LockedStage, MixLock, MixRole
from factory.data.mixing.measure import Meter
from factory.data.mixing.settings import DataSettings
from factory.data.stream.build import encoder_of
from factory.data.stream.drawing import Drawing
from factory.errors import SpecError
from factory.namespace import Version


def resolve(
    name: str, mix: Mix, versions: Mapping[str, Version], settings: DataSettings
) -> MixLock:
    """The lock of a mix, without expectations.

    Args:
        name: of the mix.
        mix: as declared.
        versions: of every `<key>/energon/train`, by that key's path.
        settings: of the recipe.

    Raises:
        SpecError: a stage's sequences are longer than the recipe's model takes; or the tokenizer
            is not there.
    """
    encoder = Encoder(load(settings.tokenizer), chat=settings.chat)
    return MixLock(
        name=name,
        basis=mix.basis,
        sources=tuple(
            _source(role, one, versions[f"{one.dataset.key.path}/energon/train"])
            for role, one in mix.entries
        ),
        stages=tuple(
            LockedStage(
                from_step=stage.from_step,
                context=_context(stage.context, stage.from_step, settings),
                weights=mix.weights(stage),
            )
            for stage in mix.stages
        ),
        tokenizer=settings.tokenizer,
        tokenizer_identity=encoder.tokenizer.identity,
        chat=settings.chat,
        template_identity=encoder.identity,
        image_processor=_image_processor(settings, encoder),
        packing=LockedPacking(
            regime=settings.regime,
            buffer=settings.buffer,
            alignment=settings.alignment,
            shuffle=settings.shuffle,
        ),
    )


def with_expectations(
    lock: MixLock,
    folders: Mapping[str, Path],
    settings: DataSettings,
    state: Path | None,
) -> MixLock:
    """The lock with what to expect of a run.

    Args:
        lock: of the mix.
        folders: directory of every `<key>/energon/train`, by the key of its dataset.
        settings: of the recipe.
        state: this machine's own files, where what was measured is kept.

    Raises:
        SpecError: nothing of a dataset can be trained on.
        StepError: an entry of a dataset cannot be encoded.
    """
    processor = None if lock.image_processor is None else images.load(lock.tokenizer)
    encoder = encoder_of(lock, folders, longest=None if processor is None else 0)
    drawing = Drawing(lock=lock, encoder=encoder, images=processor)
    meter = Meter(drawing=drawing, encoder=encoder, state=state)
    by_context = {
        context: [
            meter.measured(at, folders[source.key], context)
            for at, source in enumerate(lock.sources)
        ]
        for context in {stage.context for stage in lock.stages}
    }
    measured = [by_context[stage.context] for stage in lock.stages]
    return lock.model_copy(update={"expectations": expectations(lock, settings, measured)})


def _context(declared: int | None, from_step: int, settings: DataSettings) -> int:
    context = settings.context if declared is None else declared
    if context > settings.context:
        raise SpecError(
            f"The stage from step {from_step} has sequences of {context:,} tokens, and the model "
            f"of {settings.recipe} takes {settings.context:,}. Set model.seq_length to "
            f"{context} for the run, or shorten the stage's context."
        )
    if context % settings.alignment:
        raise SpecError(
            f"The stage from step {from_step} has sequences of {context:,} tokens, which is no "
            f"multiple of {settings.alignment}: the parallel layout of {settings.recipe} divides "
            f"each sequence. The nearest below is {context - context % settings.alignment:,}."
        )
    return context


def _source(role: MixRole, one: Weighted, version: Version) -> LockedSource:
    return LockedSource(
        key=one.dataset.key.path,
        version=version.id,
        role=role,
        weight=float(one.weight),
        max_epochs=None if one.max_epochs is None else float(one.max_epochs),
        max_share=None if one.max_share is None else float(one.max_share),
        overflow=one.overflow,
        samples=version.manifest.rows or 0,
        licenses=tuple(version.manifest.licenses),
    )


def _image_processor(settings: DataSettings, encoder: Encoder) -> str | None:
    """Of the model's directory, where its tokenizer has a token for images."""
    folder = Path(settings.tokenizer)
    there = any((folder / name).is_file() for name in (images.FILE, images.JOINED))
    return images.identity(folder) if there and encoder.tokenizer.image is not None else None
