"""What the harness of the clusters does before there is one; needs no Kubernetes."""

import dataclasses
import socket
from pathlib import Path

import pytest

from tests.cluster import builds
from tests.cluster.builds import RECIPES, Recipe
from tests.cluster.claims import claims
from tests.cluster.conftest import unavailable


def test_a_port_is_claimed_once(tmp_path: Path) -> None:
    with claims(tmp_path) as first, claims(tmp_path) as second:
        taken = {first.port() for _ in range(50)}
        assert len(taken) == 50
        assert taken.isdisjoint({second.port() for _ in range(50)})
        assert first.network() != second.network()


def test_a_port_on_which_something_listens_is_not_claimed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with claims(tmp_path) as held, socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        taken = other.getsockname()[1]
        monkeypatch.setattr("tests.cluster.claims.PORTS", range(taken, taken + 1))
        with pytest.raises(RuntimeError, match="Every port"):
            held.port()


def test_another_recipe_is_built_elsewhere() -> None:
    other = dataclasses.replace(builds.ETCD, version="3.6.14")
    assert other.folder() != builds.ETCD.folder()


def test_a_machine_without_go_is_told_so(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(builds, "_GO_HOMES", ())
    with pytest.raises(builds.NoGo, match="no Go"):
        builds.program("etcd")


@pytest.mark.parametrize(
    ("recipe", "library"),
    [
        (builds.ETCD, "go.etcd.io/etcd/server/v3"),
        (builds.CONTROL_PLANE, "k8s.io/kubernetes"),
        (builds.KUBERAY, "github.com/ray-project/kuberay/ray-operator"),
        (builds.DNS, "github.com/coredns/coredns"),
        (builds.HELM, "helm.sh/helm/v3"),
    ],
    ids=lambda one: getattr(one, "module", ""),
)
def test_a_recipe_builds_the_version_that_it_names(recipe: Recipe, library: str) -> None:
    """With a checksum for it, so that the same name never means something else."""
    pinned = (RECIPES / recipe.module / "go.mod").read_text(encoding="utf-8").split("\n")
    sums = (RECIPES / recipe.module / "go.sum").read_text(encoding="utf-8").split("\n")
    assert any(f"{library} v{recipe.version}" in line.split(" //")[0] for line in pinned)
    assert any(line.startswith(f"{library} v{recipe.version} h1:") for line in sums)


@pytest.mark.parametrize(
    ("value", "outcome"), [("true", pytest.fail.Exception), ("", pytest.skip.Exception)]
)
def test_what_is_missing_fails_only_in_ci(
    monkeypatch: pytest.MonkeyPatch, value: str, outcome: type[BaseException]
) -> None:
    monkeypatch.setenv("CI", value)
    with pytest.raises(outcome, match="There is no Go"):
        unavailable("There is no Go")
