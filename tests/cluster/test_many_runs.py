"""Ten runs at once on one API server, each followed by a process of its own.

More of them are in the benchmark `bench_many_runs`.
"""

from pathlib import Path

import pytest

from tests.cluster.api import eventually
from tests.cluster.control_plane import ControlPlane
from tests.cluster.many_runs import many_runs

pytestmark = pytest.mark.cluster

RUNS = 10
PATIENCE_SECONDS = 180.0


def test_runs_at_once_all_end_well(west: ControlPlane, tmp_path: Path) -> None:
    with many_runs(west, tmp_path, count=RUNS) as made:
        made.begin(RUNS)
        assert eventually(lambda: made.opened() == RUNS, PATIENCE_SECONDS), made.opened()
        made.go()
        found = [follower.result(PATIENCE_SECONDS) for follower in made.followers]
        assert [one.error for one in found if not one.success] == []
        assert all(one.is_whole for one in found), found
        assert len(made.stage.drivers) == RUNS
        assert made.left() == []
