"""The sensor `orphans`: sessions of this machine, and clusters one after the other."""

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace

import dagster as dg
import pytest

from factory.control import left_behind, sweeping
from factory.control.clusters import Kubernetes, Local, reading
from factory.control.kube.api import Patience
from factory.control.kube.orphans import Fate, Judge, Known
from factory.control.left_behind import Report, on_this_machine
from factory.control.owner import owner
from factory.control.sessions import Sessions
from factory.control.sweeping import in_turn, orphans_sensor
from factory.namespace.owner import Owner, this_process
from factory.settings import Settings
from tests.control.a_cluster import a_cluster, read
from tests.control.kube.a_server import Reply, Request, Server, serving
from tests.control.kube.an_orphan import MADE, an_object

NAMES = ("gpu-east", "gpu-north", "gpu-west")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where clusters are declared: none yet."""
    made = tmp_path / "clusters"
    made.mkdir()
    for reader in (reading.cluster, reading.declared):
        monkeypatch.setattr(reader, "__defaults__", (made,))
    impatient = Patience(connect_seconds=5, answer_seconds=5, budget_seconds=0)
    monkeypatch.setattr(left_behind, "PATIENCE", impatient)
    return made


@pytest.fixture
def instance() -> Iterator[dg.DagsterInstance]:
    with dg.DagsterInstance.ephemeral() as opened:
        yield opened


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    where = tmp_path / "server"
    where.mkdir()
    with serving(where) as running:
        yield running


@pytest.fixture
def declared(server: Server, folder: Path, tmp_path: Path) -> Callable[..., None]:
    def declare(name: str, address: str = server.address) -> None:
        (tmp_path / "token").write_text("t")
        access = {"ca": {"file": str(server.ca)}, "token": {"file": str(tmp_path / "token")}}
        read(folder, name=name, api_server=address, **access)

    return declare


def tick(
    settings: Settings, instance: dg.DagsterInstance, cursor: str | None = None
) -> tuple[str, str | None]:
    """One evaluation: what it says, and the cursor behind it."""
    sensor = orphans_sensor(settings)
    repository = dg.Definitions(sensors=[sensor]).get_repository_def()
    with dg.build_sensor_context(
        instance, cursor=cursor, repository_def=repository, sensor_name=sensor.name
    ) as context:
        data = sensor.evaluate_tick(context)
    assert not data.run_requests
    return data.skip_message or "", data.cursor


def test_nothing_to_do(settings: Settings, instance: dg.DagsterInstance, folder: Path) -> None:
    assert tick(settings, instance) == ("nothing was left behind", None)


def test_one_cluster_out_of_reach_does_not_keep_the_others_from_being_swept(
    settings: Settings,
    instance: dg.DagsterInstance,
    declared: Callable[..., None],
    server: Server,
) -> None:
    declared("gpu-east", "https://127.0.0.1:1")
    declared("gpu-west")
    job = an_object(owner=owner(instance), run="run-of-nobody", root_run=None)
    there = [job]

    def answer(request: Request) -> Reply:
        if request.method == "DELETE":
            there.clear()
        if "labelSelector" in request.path:
            return Reply(body={"items": there if "/rayjobs?" in request.path else []})
        found = there if request.path.endswith("/rayjobs/run-a") else []
        return Reply(body=found[0]) if found else Reply(404)

    server.answer = answer
    said, cursor = tick(settings, instance)
    assert "gpu-east could not be looked at: " in said
    assert "See whether https://127.0.0.1:1 is up" in said
    assert "gpu-west: RayJob run-a of run run-of-nobody (Dagster knows no such run) removed" in said
    assert there == []
    assert cursor == "gpu-west"


def test_a_wrong_file_does_not_keep_the_others_from_being_swept(
    settings: Settings,
    instance: dg.DagsterInstance,
    declared: Callable[..., None],
    server: Server,
    folder: Path,
) -> None:
    declared("gpu-west")
    (folder / "gpu-east.yaml").write_text("name: [\n")
    server.answer = lambda _: Reply(body={"items": []})
    said, cursor = tick(settings, instance)
    assert "gpu-east could not be looked at: definitions/clusters/gpu-east.yaml, line 2" in said
    assert cursor == "gpu-west"


def test_clusters_take_turns_over_the_ticks(
    settings: Settings,
    instance: dg.DagsterInstance,
    declared: Callable[..., None],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name in NAMES:
        declared(name)
    clock = [0.0]
    monkeypatch.setattr(sweeping, "time", SimpleNamespace(monotonic=lambda: clock[0]))
    swept: list[tuple[str, float]] = []

    def slow(cluster: Kubernetes, judge: Judge, within: float) -> Report:
        swept.append((cluster.name, within))
        clock[0] += 15.0
        return Report()

    monkeypatch.setattr(sweeping, "on_cluster", slow)
    _, cursor = tick(settings, instance)
    assert swept == [("gpu-east", 40.0), ("gpu-north", 25.0)]
    assert cursor == "gpu-north"
    _, cursor = tick(settings, instance, cursor)
    assert [name for name, _ in swept[2:]] == ["gpu-west", "gpu-east"]
    assert cursor == "gpu-east"


@pytest.mark.parametrize(
    ("after", "first"),
    [("", "gpu-east"), ("gpu-east", "gpu-north"), ("gpu-west", "gpu-east"), ("gone", "gpu-east")],
)
def test_whose_turn_it_is(after: str, first: str) -> None:
    here = Local(name="local", kind="local", profile="cpu")
    found = in_turn([a_cluster(name=name) for name in reversed(NAMES)] + [here], after)
    assert found[0].name == first
    assert {one.name for one in found} == set(NAMES)


@pytest.mark.parametrize(("deployment", "on"), [("laptop", False), ("dev", False), ("prod", True)])
def test_it_is_on_by_itself_in_production_only(
    settings: Settings, deployment: str, on: bool
) -> None:
    sensor = orphans_sensor(settings.model_copy(update={"deployment": deployment}))
    assert sensor.default_status.name == ("RUNNING" if on else "STOPPED")
    assert sensor.minimum_interval_seconds == 300


# Sessions of this machine.

OPEN = """
import sys
from pathlib import Path
from factory.control.sessions import Sessions
Sessions(Path(sys.argv[1]), socket_root=Path(sys.argv[2])).open("run-1")
"""


@pytest.fixture
def sessions(tmp_path: Path) -> Sessions:
    return Sessions(tmp_path / "state", socket_root=tmp_path)


def by(known: Known) -> Judge:
    return Judge(owner="this-dagster", known=lambda _: known, clock=lambda: MADE)


def test_a_session_whose_owner_is_gone(sessions: Sessions, tmp_path: Path) -> None:
    arguments = [sys.executable, "-c", OPEN, str(tmp_path / "state"), str(tmp_path)]
    subprocess.run(arguments, check=True, env=dict(os.environ))
    (row,) = on_this_machine(sessions, by({})).rows
    assert (row.cluster, row.kind, row.run, row.outcome) == (
        "this machine",
        "Ray session",
        "run-1",
        "",
    )
    assert row.why.endswith("is gone")
    assert len(sessions.all()) == 1
    (row,) = on_this_machine(sessions, by({}), remove=True).rows
    assert (row.outcome, row.gone) == ("removed", True)
    assert sessions.all() == []


@pytest.mark.parametrize(
    ("fate", "orphan"),
    [
        (Fate("started", None), False),
        (Fate("failure", MADE), False),
        (Fate("failure", MADE.replace(hour=11, minute=51)), False),
        (Fate("failure", MADE.replace(hour=11, minute=50)), True),
    ],
)
def test_a_session_whose_owner_lives_goes_only_if_its_run_is_long_over(
    sessions: Sessions, fate: Fate, orphan: bool
) -> None:
    session = sessions.open("run-1")
    report = on_this_machine(sessions, by({"run-1": fate}), remove=True)
    assert (sessions.all() == []) == orphan
    assert [row.why for row in report.rows] == ["its run has ended (failure)"] * orphan
    assert report.notes == []
    sessions.close(session)


def test_a_session_of_an_unknown_run_whose_owner_lives_is_only_named(sessions: Sessions) -> None:
    session = sessions.open("run-1")
    report = on_this_machine(sessions, by({}), remove=True)
    assert report.rows == []
    assert report.notes == [
        f"this machine: session {session.id} of run run-1 is left alone: its {this_process()} lives"
    ]
    assert sessions.all() == [session]
    sessions.close(session)


def test_a_session_of_another_machine_is_not_this_ones_to_end(sessions: Sessions) -> None:
    session = sessions.open("run-1")
    there = Owner(host="else", pid=1, start_ticks=1, boot_id="b", pid_namespace="p")
    record = session.model_copy(update={"owner": there})
    path = next((session.directory.parent / "state" / "sessions").glob("*.json"))
    path.write_text(record.model_dump_json())
    assert on_this_machine(sessions, by({}), remove=True).rows == []
    sessions.close(session)
