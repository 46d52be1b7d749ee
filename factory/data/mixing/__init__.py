"""Mixing: which dataset the next sample comes from, and what that comes to.

`sampler` chooses source by source while a run reads, `lock` is a mix with everything resolved that
decides what a run reads. Mixes are declared in `factory.data.mix`.
"""

from factory.data.mixing.lock import LockedPacking, LockedSource, LockedStage, MixLock
from factory.data.mixing.sampler import Sampler, Supply

__all__ = ["LockedPacking", "LockedSource", "LockedStage", "MixLock", "Sampler", "Supply"]
