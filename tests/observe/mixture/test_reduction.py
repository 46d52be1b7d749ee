"""Sums over ranks: exact, also when ranks meet different reasons for dropping samples."""

import json
import socket
import subprocess
import sys

import pytest

from factory.settings import CHECKOUT

pytestmark = pytest.mark.slow

RANK = """
import json, sys
import numpy as np
import torch.distributed as dist
from factory.observe.mixture.reduction import Reduction
from factory.observe.mixture.totals import COLUMNS, Totals

rank, ranks, port = map(int, sys.argv[1:])
dist.init_process_group("gloo", f"tcp://127.0.0.1:{port}", rank=rank, world_size=ranks)
messages = []
reduce_all, gather = dist.all_reduce, dist.all_gather_object
dist.all_reduce = lambda *given, **named: (messages.append("sum"), reduce_all(*given, **named))[1]
dist.all_gather_object = lambda *given, **named: (
    messages.append("exchange"), gather(*given, **named))[1]
reduction = Reduction(dist.group.WORLD)
large = 2**53 + 1  # no float holds it
totals = Totals(
    np.full((2, len(COLUMNS)), rank + 1), np.array([large, rank, 0]), {(0, "common"): (1, 10)}
)
for own in ({}, {(rank, f"only on {rank}"): (rank, 7)}, {(1, "late"): (5, 5)} if rank else {}):
    totals = Totals(totals.counts, totals.positions, {**totals.dropped, **own})
    found = reduction(totals)
    dropped = [[*name, *numbers] for name, numbers in sorted(found.dropped.items())]
    print(json.dumps([found.counts.tolist(), found.positions.tolist(), dropped, messages]))
    messages.clear()
again = reduction(totals)
print(json.dumps([again == found, messages]))
dist.destroy_process_group()
"""


def ranks(number: int) -> list[list[list]]:
    """What each rank has printed."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    started = [
        subprocess.Popen(
            [sys.executable, "-c", RANK, str(rank), str(number), str(port)],
            stdout=subprocess.PIPE,
            text=True,
            cwd=CHECKOUT,
        )
        for rank in range(number)
    ]
    said = [process.communicate(timeout=120)[0] for process in started]
    assert [process.returncode for process in started] == [0] * number
    return [[json.loads(line) for line in one.splitlines()] for one in said]


def test_ranks_add_up_and_exchange_reasons_only_when_one_is_new():
    first, second = ranks(2)
    assert first == second, "every rank knows the sum"
    (counts, positions, dropped, messages), known, late, (same, quiet) = first
    assert counts[0] == [3] * len(counts[0])
    assert positions == [2 * (2**53 + 1), 1, 0]
    assert dropped == [[0, "common", 2, 20]]
    assert messages == ["sum", "exchange", "sum"]
    assert known[2] == [[0, "common", 2, 20], [0, "only on 0", 0, 7], [1, "only on 1", 1, 7]]
    assert late[2] == sorted([*known[2], [1, "late", 5, 5]])
    assert same
    assert quiet == ["sum"], "one message an interval"
