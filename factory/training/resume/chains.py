"""Chains: what the ranks of a run have written of what they read. `chain` writes them."""

import json

from factory.errors import RunFailed
from factory.namespace import RunDirectory

CHAINS = "chain"
"""In a run's directory."""


def chain_of(run: RunDirectory, data_rank: int) -> dict[int, str]:
    """The chain of a data-parallel rank at every step, over all attempts.

    Where an attempt has begun its data anew, only its lines count from then on.

    Raises:
        RunFailed: an attempt has read something else at a step that an earlier one had reached.
    """
    path = run.path / CHAINS / f"rank-{data_rank:04d}.jsonl"
    found: dict[int, str] = {}
    begun = 0
    for text in path.read_text(encoding="utf-8").splitlines():
        try:
            line = json.loads(text)
        except ValueError:
            continue  # the last line of an attempt that was killed while it wrote
        step, chain = line["step"], line["chain"]
        if line["begun"] != begun:
            begun = line["begun"]
            found = {earlier: known for earlier, known in found.items() if earlier < step}
        if found.setdefault(step, chain) != chain:
            raise RunFailed(
                f"{path}: attempt {line['attempt']} has read other batches up to step {step} than "
                "an attempt before it. It did not go on exactly, so the run cannot be compared "
                "with others. This is a defect: report it with that file."
            )
    return dict(sorted(found.items()))
