"""What the factory takes, a real API server and a real operator take too. More of it: `make bench`.

And the other way round: some of what the factory refuses the server would have taken, and the
operator would never have started.
"""

from collections.abc import Callable, Iterator
from copy import deepcopy
from pathlib import Path

import pytest
import yaml

from factory.cli.app import run
from factory.control.clusters import reading
from factory.control.kube.rayjob import rayjob
from tests.cluster import dry_runs, taken_up
from tests.cluster.access import Account
from tests.cluster.api import Object
from tests.cluster.control_plane import ControlPlane
from tests.control.a_cluster import CPU, OWN_SCHEDULER, file
from tests.control.kube.random_submissions import submissions
from tests.control.kube.submissions import IMAGE, launch, submission

pytestmark = pytest.mark.cluster

SEED = 20_261_130
TRIED = 40
MADE = 5

INSIDE = "/namespace/private/text/letters"


@pytest.fixture(scope="module")
def spaces(west: ControlPlane) -> Iterator[dict[str, str]]:
    """A namespace for each level of pod security."""
    with dry_runs.namespaces(west.admin) as made:
        yield made


def test_the_server_takes_what_the_factory_takes(
    west: ControlPlane, spaces: dict[str, str]
) -> None:
    refused = {
        one.name: said
        for one in submissions(SEED, TRIED)
        if (said := dry_runs.refused(west.admin, dry_runs.placed(one, spaces)))
    }
    assert not refused


def test_a_server_that_refuses_is_heard(west: ControlPlane, spaces: dict[str, str]) -> None:
    """One namespace admits less than the file says."""
    cluster = {"mounts": [{"path": "/data", "host_path": "/data"}], "pod_security": "privileged"}
    chosen = submission(cluster={**cluster, "namespace": spaces["restricted"]})
    said = dry_runs.refused(west.admin, chosen)
    assert said.keys() == {"head as a Pod", "worker as a Pod"}
    assert all("violates PodSecurity" in one for one in said.values())


def test_the_operator_takes_them_up_and_nothing_stays(
    west: ControlPlane, spaces: dict[str, str]
) -> None:
    made = [dry_runs.placed(one, spaces) for one in submissions(SEED + 1, MADE, workers=3)]
    for one in made:
        taken_up.make(west.admin, one)
    assert {one.name: taken_up.not_as_asked(west.admin, one) for one in made} == {
        one.name: [] for one in made
    }
    for one in made:
        taken_up.remove(west.admin, one)
    assert taken_up.left(west.admin, spaces.values()) == []


def test_a_public_run_that_asks_for_the_private_tree_has_no_such_volume(
    west: ControlPlane, spaces: dict[str, str]
) -> None:
    """Not in any container of any pod, those that the operator adds included."""
    spec = {"recipe": INSIDE, "mix": "../../private", "overrides": {"data.path": "$(X)"}}
    chosen = submission(
        launch(spec=spec, rank_environment={"FACTORY_ROOT": "/namespace/private"}),
        cluster={"namespace": spaces["restricted"]},
        owner="x\nai-factory/classification: private",
        step_key=INSIDE,
    )
    taken_up.make(west.admin, chosen)
    try:
        assert taken_up.not_as_asked(west.admin, chosen) == []
        for pod in taken_up.pods(west.admin, chosen):
            assert taken_up.shown(pod) == {"namespace-public"}
            assert not [path for path in taken_up.mounted(pod) if "private" in path]
            assert pod["metadata"]["labels"]["ai-factory/classification"] == "public"
            assert not pod["spec"]["automountServiceAccountToken"]
    finally:
        taken_up.remove(west.admin, chosen)
    assert taken_up.left(west.admin, [spaces["restricted"]]) == []


def _group(job: Object) -> Object:
    (group,) = job["spec"]["rayClusterSpec"]["workerGroupSpecs"]
    return group


def _wrong_mode(job: Object) -> None:
    job["spec"]["submissionMode"] = "Kubernetes"


def _no_entrypoint(job: Object) -> None:
    del job["spec"]["entrypoint"]


def _at_least_more_than_at_most(job: Object) -> None:
    _group(job).update(minReplicas=3, maxReplicas=2)


def _a_name_of_60_characters(job: Object) -> None:
    job["metadata"]["name"] = "n" * 60


def _an_empty_image(job: Object) -> None:
    _group(job)["template"]["spec"]["containers"][0]["image"] = ""


@pytest.mark.parametrize(
    "wrong",
    [
        _wrong_mode,
        _no_entrypoint,
        _at_least_more_than_at_most,
        _a_name_of_60_characters,
        _an_empty_image,
    ],
)
def test_the_server_alone_takes_what_cannot_run(
    west: ControlPlane, spaces: dict[str, str], wrong: Callable[[Object], None]
) -> None:
    """So the factory has to see to it: `test_wrong.py` of tests/control/kube."""
    job = deepcopy(rayjob(submission(cluster={"namespace": spaces["restricted"]})))
    wrong(job)
    path = f"/apis/ray.io/v1/namespaces/{spaces['restricted']}/rayjobs"
    assert west.admin.ask("POST", path + dry_runs.STRICT, job).ok


def test_the_command_has_a_manifest_validated_and_makes_nothing(
    west: ControlPlane,
    account: Account,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    """`factory manifest JOB --cluster NAME --server`, with the factory's own token."""
    (tmp_path / "token").write_text(account.token())
    fields = file(
        api_server=west.address,
        ca={"file": str(west.ca)},
        token={"file": str(tmp_path / "token")},
        namespace=account.namespace,
        **OWN_SCHEDULER,
        **CPU,
    )
    folder = tmp_path / "clusters"
    folder.mkdir()
    (folder / "gpu-west.yaml").write_text(yaml.safe_dump(fields))
    for reader in (reading.cluster, reading.declared):
        monkeypatch.setattr(reader, "__defaults__", (folder,))
    monkeypatch.setenv("FACTORY_IMAGE", IMAGE)
    capfd.readouterr()
    code = run(["manifest", "smoke", "--cluster", "gpu-west", "--server"])
    printed = capfd.readouterr()
    assert code == 0, printed.err
    assert yaml.safe_load(printed.out)["kind"] == "RayJob"
    assert west.admin.items(f"/apis/ray.io/v1/namespaces/{account.namespace}/rayjobs") == []
