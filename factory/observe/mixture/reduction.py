"""Reduction: the sums of all data-parallel ranks, by one message of whole numbers."""

from typing import TYPE_CHECKING, Any

import numpy as np

from factory.observe.mixture.totals import Reason, Totals

if TYPE_CHECKING:
    from torch.distributed import ProcessGroup


class Reduction:
    """Adds up the totals of the ranks of a group. Every rank of it has to call, with the same sum.

    Reasons for which samples are dropped are texts that ranks come upon at different times. All
    ranks keep one list of them in one order; a rank that knows another one says so in the message,
    and then all exchange what they know and add up again.
    """

    def __init__(self, group: "ProcessGroup") -> None:
        from torch import distributed

        self._group = group
        self._ranks: int = distributed.get_world_size(group)
        self._on_device = distributed.get_backend(group) == "nccl"
        self._reasons: list[Reason] = []

    def __call__(self, totals: Totals) -> Totals:
        """The sum over the ranks."""
        if self._ranks == 1:
            return totals
        found = self._sum(totals)
        if found is None:
            self._exchange(totals)
            found = self._sum(totals)
        if found is None:
            raise RuntimeError("Ranks disagree about reasons that all have named; a defect.")
        return found

    def _sum(self, totals: Totals) -> Totals | None:
        """None if some rank has a reason that is not on the list."""
        import torch
        from torch import distributed

        unlisted = len(totals.dropped.keys() - set(self._reasons))
        row = np.append(totals.vector(self._reasons), unlisted)
        tensor: Any = torch.from_numpy(row)
        if self._on_device:
            tensor = tensor.to(torch.device("cuda", torch.cuda.current_device()))
        distributed.all_reduce(tensor, group=self._group)
        *rest, unlisted = tensor.tolist()
        if unlisted:
            return None
        return Totals.from_vector(np.array(rest, np.int64), len(totals.counts), self._reasons)

    def _exchange(self, totals: Totals) -> None:
        from torch import distributed

        everyones: list[list[Reason]] = [[] for _ in range(self._ranks)]
        distributed.all_gather_object(everyones, list(totals.dropped), group=self._group)
        named = {reason for reasons in everyones for reason in reasons}
        self._reasons = sorted(named.union(self._reasons))
