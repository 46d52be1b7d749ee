"""Manager: Bridge's own checkpoint manager, which also tells the publisher when a save begins.

Bridge's callback comes after a save, with an asynchronous one many steps after it. The states of
the data must be those of the step that is saved.
"""

from typing import TYPE_CHECKING, cast

from megatron.bridge.training.checkpointing import (
    CheckpointSaveContext,
    DefaultCheckpointManager,
)

if TYPE_CHECKING:
    from megatron.bridge.training.callbacks import CallbackManager

    from factory.training.resume.publisher import Publisher

PUBLISHER = "factory publisher"
"""Key of the publisher in Bridge's `user_state`."""


class Manager(DefaultCheckpointManager):
    """Named in `CheckpointConfig.custom_manager_class`; Bridge makes it."""

    def save(
        self, ctx: CheckpointSaveContext, callback_manager: "CallbackManager | None" = None
    ) -> None:
        """Save as Bridge does, after the states of this step were taken; each step once."""
        if callback_manager is not None and PUBLISHER in callback_manager.user_state:
            publisher = cast("Publisher", callback_manager.user_state[PUBLISHER])
            step = ctx.state.train_state.step
            if publisher.has(step):
                return
            publisher.before_save(step)
        super().save(ctx, callback_manager)
