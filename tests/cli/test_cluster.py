"""`factory cluster list | check` and `factory manifest`, on files and servers of the test's own."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from factory.control import check_local
from factory.control.check_local import Machine, local_lines
from factory.control.checklist import any_failed
from factory.control.clusters import Kubernetes, Local, reading
from factory.spec import RunSpec
from tests.cli.conftest import Factory
from tests.control.a_cluster import CPU, OWN_SCHEDULER, read
from tests.control.kube.a_server import Reply, Request, Server, serving
from tests.control.kube.submissions import IMAGE

CANARY = "canary-77ab-token"
MACHINE = Machine(
    ray="2.60.0",
    cpus=8,
    memory_bytes=16 * 2**30,
    free_bytes=50 * 2**30,
    has_gpu_driver=False,
    state_is_writable=True,
    state=Path("/state"),
    image=None,
)
LOCAL = Local(name="local", kind="local", profile="cpu")


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    folder = tmp_path / "server"
    folder.mkdir()
    with serving(folder) as running:
        running.answer = as_a_server
        yield running


@pytest.fixture
def west(server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Kubernetes:
    """The one declared cluster, whose server allows everything and has nothing."""
    (tmp_path / "token").write_text(CANARY)
    folder = tmp_path / "clusters"
    folder.mkdir()
    one = read(
        folder,
        api_server=server.address,
        ca={"file": str(server.ca)},
        token={"file": str(tmp_path / "token")},
        **OWN_SCHEDULER,
        **CPU,
    )
    for reader in (reading.cluster, reading.declared):
        monkeypatch.setattr(reader, "__defaults__", (folder,))
    monkeypatch.setenv("FACTORY_IMAGE", IMAGE)
    return one


def as_a_server(request: Request) -> Reply:
    if request.path.startswith("/apis/authorization"):
        return Reply(201, {"status": {"allowed": True}})
    if request.path.startswith("/apis/authentication"):
        return Reply(201, {"status": {"userInfo": {"username": "factory"}}})
    if request.path == "/version":
        return Reply(body={"gitVersion": "v1.34.2"})
    if request.method == "POST":
        return Reply(201, request.body)
    return Reply(404, {"message": "not found"})


def test_the_declared_cluster_can_be_checked(factory: Factory) -> None:
    found = factory("cluster", "check", "local", "--json")
    assert found.code == 0, found
    assert {line["what"] for line in found.facts} >= {"address", "Ray", "CPUs", "disk", "image"}
    shown = factory("cluster", "check", "local")
    assert "none: runs use the working tree" in shown.out


def test_an_unknown_cluster_is_a_usage_error(factory: Factory) -> None:
    found = factory("cluster", "check", "lokal")
    assert found.code == 2
    assert "Did you mean local?" in found.err


def test_clusters_are_listed(factory: Factory, west: Kubernetes) -> None:
    (row,) = factory("cluster", "list", "--json").facts
    assert row["cluster"] == "gpu-west"
    assert row["address"] == west.api_server
    assert (row["nodes"], row["GPUs"]) == (4, 0)


def test_a_wrong_file_is_a_row_and_stops_nothing_else(
    factory: Factory, west: Kubernetes, tmp_path: Path
) -> None:
    assert "problem" not in factory("cluster", "list").out
    (tmp_path / "clusters" / "east.yaml").write_text("name: 2024-13-45\n")
    found = factory("cluster", "list", "--json")
    assert found.code == 0
    rows = {row["cluster"]: row for row in found.facts}
    assert rows["gpu-west"]["problem"] is None
    assert rows["east"]["problem"].startswith("definitions/clusters/east.yaml, line 1: name is")
    assert rows["east"].keys() == rows["gpu-west"].keys()
    shown = factory("cluster", "list")
    assert "east.yaml, line 1" in " ".join(shown.out.split())
    assert factory("manifest", "smoke", "--cluster", "gpu-west").code == 0
    wrong = factory("cluster", "check", "east")
    assert wrong.code != 0
    assert "taken for a date" in wrong.err


def test_a_cluster_without_kuberay(factory: Factory, west: Kubernetes, server: Server) -> None:
    found = factory("cluster", "check", "gpu-west", "--json")
    assert found.code == 1
    failing = {line["what"]: line["action"] for line in found.facts if line["state"] == "failed"}
    assert failing.keys() == {
        "KubeRay",
        "nodes",
        "claim namespace-public",
        "claim namespace-private",
    }
    assert all(failing.values())
    assert {request.token for request in server.requests} == {CANARY}
    shown = factory("cluster", "check", "gpu-west")
    assert shown.code == 1
    assert "Install KubeRay" in shown.out
    assert CANARY not in found.out + found.err + shown.out + shown.err


def test_what_the_checks_ask_changes_nothing(
    factory: Factory, west: Kubernetes, server: Server
) -> None:
    factory("cluster", "check", "gpu-west")
    made = {request.path for request in server.requests if request.method != "GET"}
    assert made == {
        "/apis/authentication.k8s.io/v1/selfsubjectreviews",
        "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews",
    }


@pytest.mark.parametrize(
    ("status", "what", "words"),
    [(401, "token", "is not taken (401)"), (302, "address", "sends elsewhere")],
)
def test_a_server_that_cannot_be_asked_ends_the_table(
    factory: Factory, west: Kubernetes, server: Server, status: int, what: str, words: str
) -> None:
    server.answer = lambda _: Reply(status)
    found = factory("cluster", "check", "gpu-west", "--json")
    assert found.code == 1
    (line,) = found.facts
    assert line["what"] == what
    assert words in line["action"]


def test_an_authority_that_is_not_there_ends_the_table(
    factory: Factory, west: Kubernetes, server: Server
) -> None:
    server.ca.unlink()
    (line,) = factory("cluster", "check", "gpu-west", "--json").facts
    assert (line["what"], line["state"]) == ("access", "failed")
    assert "certificate authority cannot be read" in line["action"]


def test_a_manifest_is_printed(factory: Factory, west: Kubernetes, server: Server) -> None:
    found = factory("manifest", "smoke", "--cluster", "gpu-west")
    assert found.code == 0, found.err
    made: dict[str, Any] = yaml.safe_load(found.out)
    assert made["kind"] == "RayJob"
    assert IMAGE in found.out
    assert server.requests == []
    urgent = factory("manifest", "smoke", "--cluster", "gpu-west", "--set", "run_limit_hours=3")
    assert (
        yaml.safe_load(urgent.out)["spec"]["activeDeadlineSeconds"]
        != (made["spec"]["activeDeadlineSeconds"])
    )
    wrong = factory("manifest", "smoke", "--cluster", "gpu-west", "--set", "run_limit=3")
    assert (wrong.code, wrong.out) == (2, "")
    assert "Did you mean run_limit_hours?" in wrong.err


def test_a_manifest_is_for_one_cluster(factory: Factory, west: Kubernetes) -> None:
    other = factory("manifest", "smoke", "--cluster", "gpu-west", "--set", "cluster=local")
    assert (other.code, other.out) == (2, "")
    assert "--set cluster=local says another cluster than --cluster gpu-west." in other.err
    same = factory("manifest", "smoke", "--cluster", "gpu-west", "--set", "cluster=gpu-west")
    assert same.code == 0, same.err


def test_a_manifest_is_validated_without_making_it(
    factory: Factory, west: Kubernetes, server: Server, tmp_path: Path
) -> None:
    spec = tmp_path / "spec.json"
    spec.write_text(RunSpec(recipe="debug.pretrain", mix="smoke", workers=1).model_dump_json())
    found = factory("manifest", str(spec), "--cluster", "gpu-west", "--server")
    assert found.code == 0, found.err
    (request,) = server.requests
    where = "/apis/ray.io/v1/namespaces/training/rayjobs"
    assert request.path == f"{where}?dryRun=All&fieldValidation=Strict"
    server.answer = lambda _: Reply(422, {"message": "spec.x: Invalid value"})
    refused = factory("manifest", "smoke", "--cluster", "gpu-west", "--server")
    assert (refused.code, refused.out) == (1, "")
    assert "spec.x: Invalid value" in refused.err


def test_a_manifest_of_what_is_not_there(
    factory: Factory, west: Kubernetes, tmp_path: Path
) -> None:
    for job, words in (
        ("smok", "Did you mean smoke?"),
        (str(tmp_path / "none.json"), "cannot be read: No such file"),
    ):
        found = factory("manifest", job, "--cluster", "gpu-west")
        assert found.code == 2
        assert words in found.err


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (
            '{"recipe": "debug.pretrain", "mix": "smoke", "workers": "many"}',
            "workers='many': write a whole number.",
        ),
        ('{"recipe": "debug.pretrain", "mix": "smoke", "nodes": 2}', "has no field 'nodes'. "),
        ('{"mix": "smoke"}', "recipe is missing."),
        ("{", "is not JSON: EOF while parsing"),
        ("[" * 100_000, "is not JSON: recursion limit"),
        ('{"mix": "smoke\\ud800"}', "is not JSON: "),
        ("[]", "holds a list, not the fields of a run spec"),
        ('{"recipe": "debug.pretrian", "mix": "smoke"}', "Did you mean debug.pretrain or"),
        ('{"recipe": "debug.pretrain", "mix": "smok"}', "Did you mean smoke?"),
        (
            '{"recipe": "debug.pretrain", "mix": "smoke", "overrides": {"no.such": "1"}}',
            "no.such",
        ),
    ],
)
def test_a_manifest_of_a_wrong_spec(
    factory: Factory, west: Kubernetes, tmp_path: Path, text: str, words: str
) -> None:
    (tmp_path / "odd.json").write_text(text)
    found = factory("manifest", str(tmp_path / "odd.json"), "--cluster", "gpu-west")
    assert (found.code, found.out) == (2, "")
    assert words in found.err


def test_a_manifest_without_an_image_is_refused(
    factory: Factory, west: Kubernetes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("FACTORY_IMAGE")
    found = factory("manifest", "smoke", "--cluster", "gpu-west")
    assert found.code == 2
    assert "Set FACTORY_IMAGE" in found.err


def test_this_machine_has_no_manifest(factory: Factory) -> None:
    found = factory("manifest", "smoke", "--cluster", "local")
    assert found.code == 2
    assert "a run is no RayJob" in found.err


@pytest.mark.parametrize(
    ("changes", "what", "state"),
    [
        ({"ray": None}, "Ray", "failed"),
        ({"has_gpu_driver": True}, "profile", "note"),
        ({"memory_bytes": 2**30}, "memory", "note"),
        ({"free_bytes": 2**29}, "disk", "failed"),
        ({"state_is_writable": False}, "state", "failed"),
    ],
)
def test_what_a_machine_lacks(changes: dict[str, Any], what: str, state: str) -> None:
    lines = {line.what: line for line in local_lines(LOCAL, replace(MACHINE, **changes))}
    assert lines[what].state == state
    assert lines[what].action
    assert any_failed(lines.values()) == (state == "failed")
    assert not any_failed(local_lines(LOCAL, MACHINE))


def test_what_a_file_asks_of_a_machine() -> None:
    gpu = {
        line.what: line
        for line in local_lines(LOCAL.model_copy(update={"profile": "h100"}), MACHINE)
    }
    assert gpu["profile"].state == "failed"
    many = {
        line.what: line for line in local_lines(LOCAL.model_copy(update={"num_cpus": 9}), MACHINE)
    }
    assert many["CPUs"].state == "note"


def test_a_state_directory_is_looked_for_where_it_would_be(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from factory.settings import Settings

    file = tmp_path / "file"
    file.touch()
    for state, writable in ((tmp_path / "a" / "b", True), (file / "below", False)):
        settings = Settings.from_environment({"FACTORY_STATE": str(state)})
        assert check_local.this_machine(settings).state_is_writable == writable
    assert not (tmp_path / "a").exists()
