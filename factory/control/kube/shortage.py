"""What a scheduler's own words say of a gang: how many of its pods fit, and what is too little.

KAI names everything that a node lacks, in the order of the alphabet, and a node that is full lacks
all of it. So what a person pays for comes first here, and the rest only where there is no want of
GPUs.
"""

import re

from factory.control.kube.fields import GPU

GPUS = "GPUs"

_FOUND = re.compile(r"Resources were found for (\d{1,5}) pods")
_SHORT_OF = re.compile(r"didn't have enough resources: ((?:[^.,;\n]|\.(?=[^\s.]))+)")
_INSUFFICIENT = re.compile(r"Insufficient ([\w./-]*\w)")


def fitting(said: str) -> int:
    """How many pods of a gang KAI found a place for, before it found none for the next."""
    found = _FOUND.search(said)
    return int(found[1]) if found else 0


def shortage(said: str) -> str:
    """What there is too little of: `GPUs`, or all else that is named; empty if nothing is."""
    named = {one.strip() for one in _SHORT_OF.findall(said)} | set(_INSUFFICIENT.findall(said))
    return GPUS if named & {GPUS, GPU} else ", ".join(sorted(named))
