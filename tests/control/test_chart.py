"""The chart of a compute plane takes its schema and its rights from here; the platform its pins."""

import re
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

from factory.control.clusters import Kubernetes, chart
from factory.control.clusters.plane import Plane
from factory.control.kube.check_lines import LEAST_KUBERAY
from factory.control.kube.rights import needed
from tests.cluster.builds import KUBERAY
from tests.conftest import CHECKOUT
from tests.control.a_cluster import CPU, a_cluster, file

CHARTS = CHECKOUT / "charts"
VALUES: dict[str, Any] = yaml.safe_load((chart.FOLDER / "values.yaml").read_text())
ROUTES = ({"route": "service_proxy"}, {"route": "template", "template": "https://{service}"})


def wrong(plane: dict[str, Any], **fields: Any) -> str:
    """What the schema says of values with something wrong in them."""
    with pytest.raises(jsonschema.ValidationError) as caught:
        jsonschema.validate({**file(), "plane": plane, **fields}, chart.schema())
    return caught.value.message


@pytest.mark.parametrize(("path", "content"), chart.files().items(), ids=lambda one: Path(one).name)
def test_what_is_made_is_not_stale(path: Path, content: str) -> None:
    assert path.read_text() == content, "run `python -m factory.control.clusters.chart`"


def test_the_defaults_of_the_values_are_those_of_the_model() -> None:
    assert Plane().model_dump(exclude_none=True) == VALUES["plane"]
    assert list(VALUES) == ["plane"]


def test_every_value_is_named_in_the_file_with_the_defaults() -> None:
    text = (chart.FOLDER / "values.yaml").read_text()
    parts = chart.schema()["$defs"]
    for part in ("Plane", "Account", "Share", "Shares", "Storage", "Storages", "Network", "Quota"):
        for name, field in parts[part]["properties"].items():
            assert re.search(rf"\b{name}:", text), f"{part}.{name}"
            assert "description" in field, f"{part}.{name}"


@pytest.mark.parametrize("fields", [file(), file(**CPU)], ids=["gpus", "cpu"])
def test_the_file_of_a_cluster_is_a_file_of_values(fields: dict[str, Any]) -> None:
    jsonschema.validate(fields | VALUES, chart.schema())


def test_the_schema_is_that_of_the_file_and_one_field_more() -> None:
    of_file, of_values = Kubernetes.model_json_schema(), chart.schema()
    plane = of_values["properties"].pop("plane")
    assert plane["$ref"] == "#/$defs/Plane"
    assert of_values["properties"] == of_file["properties"]
    assert of_values["required"] == of_file["required"]
    assert of_values["$defs"].items() >= of_file["$defs"].items()


def test_wrong_values_are_refused() -> None:
    assert "'qouta' was unexpected" in wrong({"qouta": {}})
    assert "100 is greater than" in wrong({"shares": {"training": {"priority": 100}}})
    assert "'10.0.0.1' does not match" in wrong({"network": {"dashboard_cidrs": ["10.0.0.1"]}})
    assert "0 is less than" in wrong({"quota": {"pods": 0}})
    csi = {"driver": "a", "volumeHandle": "b"}
    two = {"nfs": {"server": "a", "path": "/"}, "csi": csi}
    storage = {"public": {"capacity": "1Ti", "source": two}}
    assert "has too many properties" in wrong({"storage": storage})
    jsonschema.validate(
        {**file(), "plane": {"storage": {"public": {"capacity": "1Ti", "source": {"csi": csi}}}}},
        chart.schema(),
    )
    assert "'kay' is not one of" in wrong({}, scheduler="kay")
    assert "'nodes' was unexpected" in wrong({"nodes": {}})


@pytest.mark.parametrize(
    ("cidr", "is_one"),
    [
        *((one, True) for one in ("0.0.0.0/0", "255.249.99.1/32", "::/0", "fe80::1/10")),
        *(
            (one, True)
            for one in ("1:2:3:4:5:6:7:8/128", "1:2:3:4:5:6:7::/99", "::2:3:4:5:6:7:8/9")
        ),
        *((one, True) for one in ("1::3:4:5:6:7:8/64", "1:2:3:4:5:6::8/100", "AB::/119")),
        *((one, False) for one in ("999.1.1.1/99", "256.0.0.0/8", "10.0.0.0/33", "10.0.0/8")),
        *((one, False) for one in ("10.0.0.0", "10.0.0.00/8", "01.0.0.0/8", "10.0.0.0/08", "/8")),
        *((one, False) for one in ("::/129", ":/0", ":::/0", "1::2::3/64", "12345::/64", "g::/8")),
        *((one, False) for one in ("1:2:3:4:5:6:7/64", "1:2:3:4:5:6:7:8:9/64", "1:2/8")),
    ],
)
def test_addresses_of_networks(cidr: str, is_one: bool) -> None:
    if is_one:
        jsonschema.validate({**file(), "plane": _open_to(cidr)}, chart.schema())
    else:
        assert f"{cidr!r} does not match" in wrong(_open_to(cidr))


def _open_to(cidr: str) -> dict[str, Any]:
    return {"network": {"egress": [{"cidr": cidr}]}}


@pytest.mark.parametrize("scheduler", ["kai", "default"])
@pytest.mark.parametrize("route", ROUTES, ids=lambda one: one["route"])
def test_the_rules_are_the_rights_that_are_checked(scheduler: str, route: dict[str, str]) -> None:
    cluster = a_cluster(scheduler=scheduler, dashboard=route)
    rules = chart.rules()
    given = [
        *rules["always"],
        *(rules["kai"] if scheduler == "kai" else []),
        *(rules["service_proxy"] if route["route"] == "service_proxy" else []),
    ]
    granted = {(rule["apiGroups"][0], rule["resources"][0]): rule["verbs"] for rule in given}
    assert len(given) == len(granted)
    assert granted == {
        (right.group, right.resource): list(right.verbs) for right in needed(cluster)
    }


def test_the_platform_is_what_is_checked_and_tested() -> None:
    pinned = yaml.safe_load((CHARTS / "platform" / "Chart.yaml").read_text())["dependencies"]
    versions = {one["name"]: one["version"].removeprefix("v") for one in pinned}
    assert versions["kuberay-operator"] == LEAST_KUBERAY == KUBERAY.version
    kai = tuple(map(int, versions["kai-scheduler"].split(".")))
    assert (0, 14) <= kai < (0, 16, 2), "0.16.2 to 0.17.0 can evict a gang that finishes"
    page = (CHARTS / "platform" / "README.md").read_text()
    assert all(version in page for version in versions.values())


def test_the_platform_leaves_gangs_and_queues_to_the_factory() -> None:
    values = yaml.safe_load((CHARTS / "platform" / "values.yaml").read_text())
    assert values["kuberay-operator"]["batchScheduler"] == {"enabled": False, "name": ""}
    assert values["kai-scheduler"]["defaultQueue"] == {"createDefaultQueue": False}
    assert values["global"]["gpuSharing"] is False
    watched = values["kuberay-operator"]["watchNamespace"]
    assert watched == [file()["namespace"]]
