"""Files of clusters: what they may say, and how a wrong one is refused by file, field and value."""

import contextlib
import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from factory.control.clusters import FOLDER, Kubernetes, Local, cluster
from factory.control.clusters.schema import schema
from factory.control.kube.refusals import spec_refusals
from factory.errors import DeclarationError, SpecError
from factory.spec import RunSpec
from tests.conftest import CHECKOUT
from tests.control.a_cluster import CPU, a_cluster, file, read

SECRET = "s3cr3t-0123456789"  # noqa: S105  of nobody


def refused(folder: Path, text: str, name: str = "gpu-west") -> str:
    (folder / f"{name}.yaml").write_text(text)
    with pytest.raises(DeclarationError) as caught:
        cluster(name, folder)
    assert str(caught.value).startswith(f"definitions/clusters/{name}.yaml")
    assert SECRET not in f"{caught.value!r} {caught.value.__cause__!r}"
    return str(caught.value)


def test_local_is_declared() -> None:
    found = cluster("local")
    assert isinstance(found, Local)
    assert found.profile == "cpu"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("name: a\nkind: k8s\nprofile: h100\n", "is of kind 'k8s'; known kinds: kubernetes, local"),
        ("name: a\nkind: [local]\nprofile: h100\n", "known kinds: kubernetes, local"),
        ("name: a\nprofile: h100\n", "has no `kind`; known kinds: kubernetes, local"),
        ("name: b\nkind: local\nprofile: cpu\n", "names its cluster 'b'"),
        ("name: a\nkind: local\nprofile: tpu\n", "profile is 'tpu': write one of cpu, h100"),
        ("name: a\nkind: local\nprofile: cpu\ncpus: 3\n", "cpus: no such field. Did you mean num"),
        ("- a\n", "holds a list, not fields of a cluster."),
        ("", "holds nothing, not fields of a cluster."),
        ("name: [\n", "line 2, is not YAML"),
    ],
)
def test_wrong_files(tmp_path: Path, text: str, message: str) -> None:
    assert message in refused(tmp_path, text, "a")


def test_an_unknown_name_lists_the_known(tmp_path: Path) -> None:
    (tmp_path / "west.yaml").write_text("name: west\nkind: local\nprofile: cpu\n")
    with pytest.raises(SpecError, match=r"No cluster .east..*Known: west"):
        cluster("east", tmp_path)


def test_a_kubernetes_cluster_has_defaults_that_are_strict(tmp_path: Path) -> None:
    found = read(tmp_path)
    assert (found.pod_security, found.dashboard.route, found.grace_seconds) == (
        "restricted",
        "service_proxy",
        30,
    )
    assert found.queues["smoke"].name == "smoke"
    assert found.queues["smoke"].preemptible
    assert found.address == "https://gpu-west.example:6443"


def test_the_one_that_the_page_shows_is_a_cluster(tmp_path: Path) -> None:
    page = (CHECKOUT / "docs" / "add-a-cluster.md").read_text()
    (shown,) = re.findall(r"```yaml\n(.*?)```", page, re.DOTALL)
    (tmp_path / "gpu-west.yaml").write_text(shown)
    found = cluster("gpu-west", tmp_path)
    assert isinstance(found, Kubernetes)
    spec = RunSpec(recipe="r", mix="m", cluster="gpu-west", workers=40, gpus_per_worker=8)
    (refusal,) = spec_refusals(spec, found)
    assert f"`{refusal}`" in page


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"nodes": {"gpus": 80}}, "nodes.gpus is '80': write 16 or less"),
        ({"nodes": {"gpus": 0}}, "profile is h100 and nodes.gpus is 0: write how many"),
        ({"profile": "cpu"}, "profile is cpu and nodes.gpus is 8: the cpu profile refuses"),
        ({"nodes": {"count": 0}}, "nodes.count is '0'"),
        ({"nodes": {"cpus": 2}}, "of which the head takes 2 and 8"),
        ({"nodes": {"memory_gib": 8}}, "nothing is left for a worker. Lower `head`"),
        ({"nodes": {"shared_memory_gib": 1892}}, "leaves a worker no other memory"),
        ({"nodes": {"network_devices": {"rdma/hca": 0}}}, "nodes.network_devices.rdma/hca is '0'"),
        ({"nodes": {"network_devices": {"a b": 1}}}, "nodes.network_devices.a b is 'a b'"),
        ({"nodes": {"labels": {"a": "b c"}}}, "nodes.labels: a: 'b c' is no label"),
        ({"nodes": {"gpu": 8}}, "nodes.gpu: no such field. Did you mean gpus"),
        ({"nodes": {"topology": {"name": "t", "levels": []}}}, "nodes.topology.levels"),
        (
            {"nodes": {"topology": {"name": "t", "levels": ["rack"], "required": "zone"}}},
            "required is zone, which is none of its levels",
        ),
        ({"nodes": {"topology": {"name": "t", "levels": ["rack"]}}}, "write `required`"),
        (
            {
                "scheduler": "default",
                "nodes": {"topology": {"name": "t", "levels": ["r"], "required": "r"}},
            },
            "nodes.topology is KAI's, and scheduler is default",
        ),
        ({"multi_node_without_gang": True}, "multi_node_without_gang is for `scheduler: default`"),
        (
            {"queues": {"trainign": "x"}},
            "queues.trainign is 'trainign': write one of training, smoke, probe",
        ),
        ({"queues": {"smoke": {"name": "Smoke_1"}}}, "queues.smoke.name is 'Smoke_1'"),
        ({"queues": {"smoke": {"name": "a", "submission": "k8s"}}}, "submission is 'k8s'"),
        ({"queues": {"smoke": {"name": "a", "submission": "sidecar"}}}, "`pod_security: baseline`"),
        ({"queues": {"probe": {"nodes": 0}}}, "queues.probe.nodes is '0'"),
        ({"scheduler": "kay"}, "scheduler is 'kay': write one of kai, default."),
        ({"namespace": "Foo"}, "namespace is 'Foo': write at most 63 small letters, digits, and -"),
        ({"namespace": "a" * 64}, "write at most 63 small letters"),
        ({"nodes": [1]}, "nodes: write fields below it."),
        ({"nodes": {"memory_gib": "1900Gi"}}, "'1900Gi': write a number, without a unit."),
        ({"nodes": {"count": "x"}}, "nodes.count is 'x': write a whole number."),
        ({"nodes": {"labels": 3}}, "nodes.labels is '3': write fields below it."),
        ({"token": {"in_cluster": False}}, "token.in_cluster: write true."),
        ({"token": {"secret": {"name": "a", "key": "/"}}}, "key: write letters, digits, - _ and ."),
        ({"tolerations": {}}, "tolerations: write a list."),
        ({"multi_node_without_gang": "so"}, "is 'so': write true or false."),
        ({"api_server": "http://gpu-west"}, "write https://HOST:PORT: the token goes to it"),
        ({"api_server": "https://gpu-west/?a=b"}, "host, port and path only"),
        ({"api_server": None}, "api_server is missing"),
        ({"dashboard": {"route": "template"}}, "dashboard: write {route: template, template"),
        ({"dashboard": {"template": "http://{service}"}}, "dashboard: write {route: template"),
        ({"tolerations": [{"operator": "Equal", "key": "gpu"}]}, "tolerations.0: write `operator"),
        ({"tolerations": [{"effects": "NoSchedule"}]}, "effects: no such field. Did you mean effe"),
        ({"run_as": {"user": 0}}, "run_as.user is '0': write"),
        ({"pull_secrets": ["A B"]}, "pull_secrets.0 is 'A B': write small letters"),
        ({"grace_seconds": -1}, "grace_seconds is '-1'"),
        ({"grace_seconds": "nan"}, "grace_seconds is 'nan': write"),
        ({"limits": {"run_hours": 0}}, "limits.run_hours is '0'"),
        ({"rank_environment": {"RANK": "0"}}, "RANK: the factory sets these for each rank itself"),
        ({"environment": {"FACTORY_ROOT": "/private"}}, "FACTORY_ROOT: the factory sets this"),
        ({"environment": {"RAY_AUTH_MODE": "no"}}, "RAY_AUTH_MODE: the factory sets this itself"),
        ({"environment": {"A B": "1"}}, "'A B' is no name of a variable"),
        ({"pod_security": "none"}, "pod_security is 'none'"),
    ],
)
def test_a_wrong_field_is_named_with_its_value(
    tmp_path: Path, changes: dict[str, Any], message: str
) -> None:
    assert message in refused(tmp_path, yaml.safe_dump(file(**changes)))


@pytest.mark.parametrize("value", [None, [], {}, [1], {"x": 1}, "x y", -1, 0.5, 1e400, True, ""])
def test_whatever_is_wrong_is_said_without_the_jargon_of_types(tmp_path: Path, value: Any) -> None:
    messages: list[str] = []
    for field in sorted(set(Kubernetes.model_fields) - {"name", "kind"}):
        (tmp_path / "gpu-west.yaml").write_text(yaml.safe_dump({**file(), field: value}))
        try:
            cluster("gpu-west", tmp_path)
        except DeclarationError as error:
            messages.append(str(error))
    assert messages
    jargon = re.compile(r"Input|[Ss]hould|valid |instance|NoneType|\bdict|validation|pattern|pars")
    assert not [one for one in messages if jargon.search(one) or "\n" in one]


def test_at_least_one_queue(tmp_path: Path) -> None:
    text = yaml.safe_dump({**file(), "queues": {}})
    assert "queues: write at least one." in refused(tmp_path, text)


@pytest.mark.parametrize(
    "template",
    ["ray.example", "ftp://{service}", "http://{service.__class__}", "http://{x}", "http://{", "h"],
)
def test_a_template_of_the_dashboard_is_an_address(tmp_path: Path, template: str) -> None:
    changes = {"dashboard": {"route": "template", "template": template}}
    assert "is no address" in refused(tmp_path, yaml.safe_dump(file(**changes)))


def test_a_template_tells_runs_apart(tmp_path: Path) -> None:
    changes = {"dashboard": {"route": "template", "template": "http://ray.{namespace}"}}
    assert "put {cluster} or {service} in it" in refused(tmp_path, yaml.safe_dump(file(**changes)))


def test_the_dashboard_is_reached_through_the_api_server_or_at_an_address() -> None:
    assert a_cluster().dashboard_address("run-1-abcde") == (
        "https://gpu-west.example:6443/api/v1/namespaces/training/services/"
        "http:run-1-abcde-head-svc:dashboard/proxy"
    )
    template = "http://{service}.{namespace}.svc.cluster.local:8265"
    inside = a_cluster(dashboard={"route": "template", "template": template})
    assert inside.dashboard_address("run-1-abcde") == (
        "http://run-1-abcde-head-svc.training.svc.cluster.local:8265"
    )


def test_in_a_pod_the_api_server_is_known() -> None:
    inside = a_cluster(api_server=None, ca=None, token={"file": None, "in_cluster": True})
    assert inside.address == "https://kubernetes.default.svc"


class TestTokens:
    @pytest.mark.parametrize(
        "token",
        [
            {"exec": {"command": ["get-token", "--cluster", "west"]}},
            {"secret": {"name": "gpu-west-token"}},
            {"in_cluster": True},
        ],
    )
    def test_where_it_is_read_from(self, tmp_path: Path, token: dict[str, Any]) -> None:
        assert read(tmp_path, token={"file": None, **token}).token.model_fields_set == token.keys()

    @pytest.mark.parametrize(
        ("token", "message"),
        [
            (SECRET, "token: holds a token itself"),
            ({"value": SECRET}, "token: holds a token itself"),
            ({"token": SECRET}, "write where it is read from: {file: PATH}"),
            ({"file": SECRET}, "token.file: write an absolute path"),
            ({"bearer": SECRET}, "token.bearer: no such field"),
            ({"secret": {"name": f"{SECRET}_"}}, "token.secret.name"),
            ({"file": "/a", "in_cluster": True}, "token: write exactly one of file"),
            ({"in_cluster": False}, "token.in_cluster"),
            ({}, "token: write exactly one of file"),
            ({"exec": {"command": []}}, "token.exec.command"),
        ],
    )
    def test_one_that_is_written_down_is_refused_and_not_repeated(
        self, tmp_path: Path, token: Any, message: str
    ) -> None:
        fields = {**file(), "token": token}
        assert message in refused(tmp_path, yaml.safe_dump(fields))

    def test_the_model_does_not_repeat_one_either(self) -> None:
        for token in (SECRET, {"file": SECRET}, {"bearer": SECRET}):
            with pytest.raises(ValidationError) as caught:
                Kubernetes.model_validate({**file(), "token": token})
            assert SECRET not in f"{caught.value} {caught.value!r}"

    @pytest.mark.parametrize(
        "line",
        [
            "namespace: eyJhbGciOiJSUzI1NiIsImtpZCI6.eyJpc3MiOiJrdWJlcm5ldGVzL3",
            "# eyJhbGciOiJSUzI1NiIsImtpZCI6.eyJpc3MiOiJrdWJlcm5ldGVzL3",
            f"api_server: https://admin:{SECRET}@gpu-west:6443",
            "ca: {inline: '-----BEGIN RSA PRIVATE KEY-----'}",
        ],
    )
    def test_nothing_that_looks_like_one_is_in_the_file(self, tmp_path: Path, line: str) -> None:
        said = refused(tmp_path, f"name: gpu-west\n{line}\n: [\n")
        assert "line 2, holds what looks like a token, a key or a password" in said
        assert "eyJ" not in said

    def test_a_file_that_is_not_yaml_is_not_quoted(self, tmp_path: Path) -> None:
        assert "line 2, is not YAML" in refused(tmp_path, f"name: a\ntoken: a: {SECRET}\n")

    def test_a_field_that_does_not_exist_is_not_quoted(self, tmp_path: Path) -> None:
        assert "bearer: no such field" in refused(
            tmp_path, yaml.safe_dump({**file(), "bearer": SECRET})
        )


class TestVolumes:
    @pytest.mark.parametrize(
        ("public", "private"),
        [
            ({"claim": "one"}, {"claim": "one"}),
            ({"claim": None, "host_path": "/mnt/n"}, {"claim": None, "host_path": "/mnt/n"}),
            ({"claim": None, "host_path": "/mnt"}, {"claim": None, "host_path": "/mnt/private"}),
            ({"claim": None, "host_path": "/n/private/x"}, {"claim": None, "host_path": "/n"}),
        ],
    )
    def test_the_private_tree_is_a_volume_apart(
        self, tmp_path: Path, public: dict[str, Any], private: dict[str, Any]
    ) -> None:
        changes = {"pod_security": "privileged", "tree": {"public": public, "private": private}}
        said = refused(tmp_path, yaml.safe_dump(file(**changes)))
        assert "public and private are one volume, or one lies in the other" in said

    @pytest.mark.parametrize(
        ("mount", "message"),
        [
            ({"claim": "namespace-private"}, "would show the private tree to public runs"),
            ({"host_path": "/mnt/tree/private"}, "would show the private tree to public runs"),
            ({"host_path": "/mnt/tree/private/text"}, "would show the private tree"),
            ({"host_path": "/mnt"}, "would show the private tree"),
            ({"host_path": "/"}, "would show /dev of a node, through which one reaches"),
            ({"host_path": "/mnt/tree/public/../private"}, "write a path without .."),
            ({"host_path": "/mnt/tree/public/"}, "and a / at the end"),
            ({"host_path": "mnt"}, "write an absolute path"),
            ({"claim": "a", "host_path": "/b"}, "write one of claim and host_path"),
            ({}, "write one of claim and host_path"),
            ({"claim": "a", "path": "/namespace"}, "covers the namespace at /namespace"),
            ({"claim": "a", "path": "/namespace/private"}, "covers the namespace at /namespace"),
            ({"claim": "a", "path": "/"}, "of a pod is taken; choose another path"),
            ({"claim": "a", "path": "/etc/ssl"}, "/etc of a pod is taken"),
            ({"claim": "a", "sub_path": "../private"}, "mounts.0.sub_path: no such field"),
        ],
    )
    def test_a_mount_cannot_show_it(
        self, tmp_path: Path, mount: dict[str, Any], message: str
    ) -> None:
        private = (
            {"claim": "namespace-private"}
            if mount.get("claim") == "namespace-private"
            else {"claim": None, "host_path": "/mnt/tree/private"}
        )
        changes = {
            "pod_security": "privileged",
            "tree": {"private": private},
            "mounts": [{"path": "/opt/more", **mount}],
        }
        assert message in refused(tmp_path, yaml.safe_dump(file(**changes)))

    def test_a_mount_cannot_show_what_lies_around_the_public_tree(self, tmp_path: Path) -> None:
        changes = {
            "pod_security": "privileged",
            "tree": {"private": None, "public": {"claim": None, "host_path": "/mnt/tree/public"}},
            "mounts": [{"path": "/opt/more", "host_path": "/mnt/tree/private"}],
        }
        said = refused(tmp_path, yaml.safe_dump(file(**changes)))
        assert "/opt/more would show /mnt/tree, where the namespace lies" in said

    def test_two_mounts_need_two_paths(self, tmp_path: Path) -> None:
        changes = {"mounts": [{"path": "/opt/a", "claim": one} for one in ("b", "c")]}
        assert "mounts has /opt/a twice" in refused(tmp_path, yaml.safe_dump(file(**changes)))

    def test_directories_of_nodes_need_a_privileged_namespace(self, tmp_path: Path) -> None:
        changes = {
            "mounts": [{"path": "/opt/a", "host_path": "/opt/a"}],
            "pod_security": "baseline",
        }
        said = refused(tmp_path, yaml.safe_dump(file(**changes)))
        assert "host_path /opt/a is admitted with `pod_security: privileged` only" in said


class TestSchema:
    def test_it_takes_what_the_model_takes(self) -> None:
        for path in FOLDER.glob("*.yaml"):
            jsonschema.validate(yaml.safe_load(path.read_text()), schema())
        jsonschema.validate(file(), schema("kubernetes"))
        jsonschema.validate(file(**CPU), schema("kubernetes"))

    @pytest.mark.parametrize("field", ["token", "queues", "nodes", "tree", "namespace"])
    def test_it_refuses_a_file_without_what_it_needs(self, field: str) -> None:
        with pytest.raises(jsonschema.ValidationError, match=f"'{field}' is a required property"):
            jsonschema.validate(file(**{field: None}), schema("kubernetes"))

    def test_every_field_says_what_it_is(self) -> None:
        found = schema("kubernetes")
        for part in (found, *found["$defs"].values()):
            for name, field in part.get("properties", {}).items():
                reference = field.get("$ref", "").rpartition("/")[2]
                assert "description" in field or "description" in found["$defs"][reference], name

    def test_it_is_printed(self) -> None:
        command = [sys.executable, "-m", "factory.control.clusters.schema", "kubernetes"]
        printed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
        assert json.loads(printed) == schema("kubernetes")


@settings(max_examples=40)
@given(
    st.dictionaries(
        st.sampled_from(sorted(Kubernetes.model_fields)),
        st.none() | st.integers() | st.text(max_size=8) | st.lists(st.text(max_size=4), max_size=2),
        max_size=3,
    )
)
def test_any_file_is_a_cluster_or_refused_in_words(
    tmp_path_factory: pytest.TempPathFactory, changes: dict[str, Any]
) -> None:
    folder = tmp_path_factory.mktemp("clusters")
    (folder / "gpu-west.yaml").write_text(yaml.safe_dump({**file(), **changes}))
    with contextlib.suppress(DeclarationError):
        assert cluster("gpu-west", folder).name == "gpu-west"
