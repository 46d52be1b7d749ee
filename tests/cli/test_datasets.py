"""`factory datasets`: every declared dataset is listed, whatever is wrong with one of them."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from factory.keys import public
from factory.namespace import Namespace
from tests.cli.conftest import PROVENANCE, Factory

PLOS = public("text/plos")

AS_ANOTHER = """
import os, sys
import encodings.idna, rich.table
from factory.cli.app import run
from factory.data.steps import steps
from factory.discovery import datasets
for dataset in datasets().values():
    steps(dataset)
os.setuid(65534)
sys.exit(run(["datasets", "--json"]))
"""


def test_a_damaged_version_hides_no_other(factory: Factory, namespace: Namespace) -> None:
    with namespace.write(
        PLOS / "clean",
        inputs=[],
        input_id="x",
        provenance=PROVENANCE,
        source="public",
        parameters={},
        code="c0de",
        checks=[],
        licenses=["CC-BY-4.0"],
    ) as staging:
        (staging.path / "rows.txt").touch()
        staging.describe(content_id="x", rows=0)
    namespace.promote(staging.version)
    (staging.version.path / "_manifest.json").write_text("{")
    found = factory("datasets", "--json")
    assert found.code == 0
    states = {row["dataset"]: row["steps current"] for row in found.facts}
    assert states[str(PLOS)] == "damaged"
    assert states["public/text/medquad"] == "0/7"
    assert "_manifest.json cannot be read" in found.err


@pytest.mark.skipif(os.geteuid() != 0, reason="becoming another account needs root")
def test_who_may_read_public_data_only_sees_that(root: Path) -> None:
    (root / "private").mkdir(mode=0o700)
    for above in (root, *root.parents):
        if "pytest" in str(above):
            above.chmod(0o755)
    done = subprocess.run(
        [sys.executable, "-c", AS_ANOTHER],
        env={**os.environ, "FACTORY_ROOT": str(root)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    states = {row["dataset"]: row["steps current"] for row in json.loads(done.stdout)}
    assert states["private/text/discharge_letters"] == "may not be read"
    assert states[str(PLOS)] == "0/7"
