"""`factory orphans` against a server of the test's own: shown, then removed."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from factory.control.clusters import reading
from factory.control.instance import ensure
from factory.control.owner import owner
from factory.settings import Settings
from tests.cli.conftest import Factory
from tests.control.a_cluster import read
from tests.control.kube.a_server import Reply, Request, Server, serving
from tests.control.kube.an_orphan import MADE, an_object


@pytest.fixture
def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    """The one cluster that is declared."""
    for name in ("server", "clusters"):
        (tmp_path / name).mkdir()
    (tmp_path / "token").write_text("canary-0b21-token")
    for reader in (reading.cluster, reading.declared):
        monkeypatch.setattr(reader, "__defaults__", (tmp_path / "clusters",))
    with serving(tmp_path / "server") as running:
        read(
            tmp_path / "clusters",
            api_server=running.address,
            ca={"file": str(running.ca)},
            token={"file": str(tmp_path / "token")},
        )
        yield running


@pytest.fixture
def there(root: Path, server: Server) -> list[str]:
    """Names of the RayJobs on the cluster; those of nobody's runs are orphans of this Dagster."""
    with ensure(Settings.from_environment()) as instance:
        mine = owner(instance)
    names = ["run-a"]
    others = [an_object(name="theirs", owner="that-dagster")]

    def answer(request: Request) -> Reply:
        path, _, query = request.path.partition("?")
        called = path.rpartition("/")[2]
        if request.method == "DELETE":
            if "stuck" not in names:
                names.remove(called)
            return Reply()
        jobs = [an_object(name=name, owner=mine, run="gone", root_run=None) for name in names]
        if query:
            return Reply(body={"items": [*jobs, *others] if called == "rayjobs" else []})
        found = [job for job in jobs if job["metadata"]["name"] == called]
        return Reply(body=found[0]) if found else Reply(404, {"message": "not found"})

    server.answer = answer
    return names


def test_they_are_shown_with_why_and_since_when(
    factory: Factory, there: list[str], server: Server
) -> None:
    shown = factory("orphans")
    assert shown.code == 0, shown
    for word in ("gpu-west", "RayJob", "run-a", "gone", "Dagster knows no such run"):
        assert word in shown.out
    assert f"{MADE:%Y-%m-%d %H:%M} UTC" in shown.out
    assert "1 object of another Dagster, or of nobody, left alone" in shown.err
    assert {request.method for request in server.requests} == {"GET"}
    assert "theirs" not in shown.out


def test_they_are_removed_and_what_came_of_each_is_said(factory: Factory, there: list[str]) -> None:
    removed = factory("orphans", "--delete", "--json")
    assert removed.code == 0, removed
    (row,) = removed.facts["orphans"]
    assert (row["name"], row["outcome"], row["gone"]) == ("run-a", "removed", True)
    assert there == []
    again = factory("orphans", "--delete")
    assert (again.code, again.out) == (0, "Nothing was left behind.\n")


def test_what_is_still_there_ends_with_1(
    factory: Factory, there: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    there[:] = ["stuck"]
    monkeypatch.setattr("factory.cli.orphans.REMOVE_SECONDS", 0.5)
    shown = factory("orphans", "--delete")
    assert shown.code == 1
    assert "is still there" in shown.out


def test_a_longer_grace_time(factory: Factory, there: list[str]) -> None:
    year = factory("orphans", "--grace", f"{100 * 365 * 24 * 60}", "--json")
    assert year.facts["orphans"] == []
    assert "1 object of runs that are over or unknown" in year.facts["notes"][0]
    assert factory("orphans", "--grace", "-1").code == 2


def test_a_cluster_out_of_reach_is_said(factory: Factory, there: list[str], server: Server) -> None:
    server.answer = lambda _: Reply(403, {"message": "rayjobs is forbidden"})
    shown = factory("orphans")
    assert shown.code == 1
    assert shown.out == "Nothing was left behind where it could be looked at.\n"
    assert "gpu-west could not be looked at" in shown.err
    assert "rayjobs is forbidden" in shown.err
    assert "canary" not in shown.out + shown.err


def test_a_cluster_with_a_wrong_file_is_said(
    factory: Factory, there: list[str], tmp_path: Path
) -> None:
    (tmp_path / "clusters" / "east.yaml").write_text("name: [\n")
    shown = factory("orphans")
    assert shown.code == 1
    assert "run-a" in shown.out
    assert "east could not be looked at: definitions/clusters/east.yaml, line 2" in shown.err
