"""Side doors: everything is run on private data, then every store outside its tree is searched.

Here a declared dataset is materialized and trained on: canaries are in rows that are kept, that are
rejected and that `clean` raises on. What is searched: Dagster's storage and logs, MLflow, the
public tree, and temporary directories, Ray's among them. Deliveries in every format are in
`leaks/test_leaks.py`, leaks of single steps in `control/test_confidential.py`.
"""

import json
import os
import random
import subprocess
import sys
from pathlib import Path

import pytest

from factory.settings import CHECKOUT
from tests.deliveries import sign
from tests.leaks.canaries import canary, holding, holds

pytestmark = pytest.mark.slow

KEPT, REJECTED, RAISING = canary("kept"), canary("rejected"), canary("raising")
LETTERS = 200


def deliver(folder: Path) -> None:
    """A partner's drop: letters of 80 patients, one in another language, one without a field."""
    chance = random.Random(3)
    words = ("the", "patient", "was", "seen", "for", "follow", "up", "given", "aspirin", "daily")
    rows = [
        {
            "letter_id": f"letter-{number}",
            "patient_pseudonym": f"patient-{number % 80}",
            "language": "en",
            "history": f"{KEPT} {' '.join(chance.choices(words, k=60))}",
            "findings": f"{KEPT} none",
            "medication": "",
            "recommendation": " ".join(chance.choices(words, k=30)),
        }
        for number in range(LETTERS)
    ]
    rows.append({**rows[0], "letter_id": "letter-de", "language": "de", "history": REJECTED})
    rows.append({"letter_id": RAISING, "patient_pseudonym": RAISING, "history": RAISING})
    folder.mkdir(parents=True)
    (folder / "letters.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    sign(folder)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A site on which the private dataset was materialized and trained on."""
    base = tmp_path_factory.mktemp("site")
    for name in ("root", "state", "dagster", "tmp"):
        (base / name).mkdir()
    deliver(base / "drops" / "discharge_letters")
    environment = {
        **os.environ,
        "FACTORY_ROOT": str(base / "root"),
        "FACTORY_STATE": str(base / "state"),
        "DAGSTER_HOME": str(base / "dagster"),
        "FACTORY_DROPS": str(base / "drops"),
        "TMPDIR": str(base / "tmp"),
    }

    def factory(*arguments: str) -> None:
        done = subprocess.run(
            [sys.executable, "-m", "factory", *arguments],
            env=environment,
            cwd=CHECKOUT,
            capture_output=True,
            text=True,
            check=False,
        )
        (base / f"{arguments[0]}.log").write_text(done.stdout + done.stderr)
        assert done.returncode == 0, done.stdout + done.stderr

    factory("materialize", "private/text/discharge_letters", "public/text/plos")
    factory(
        "launch", "smoke", "--set", "mix=letters", "--set", "overrides.train.train_iters=3",
        "--set", "overrides.scheduler.lr_warmup_iters=1", "--json",
    )  # fmt: skip
    return base


def test_the_search_finds_what_is_there(site: Path) -> None:
    assert holding(site / "root" / "private")


@pytest.mark.parametrize("store", ["dagster", "state", "tmp", "root/public"])
def test_nothing_outside_the_private_tree(site: Path, store: str) -> None:
    assert holding(site / store) == []


def test_nothing_in_what_was_printed(site: Path) -> None:
    assert [path for path in site.glob("*.log") if holds(path.read_bytes())] == []


def test_the_run_is_private_with_all_that_it_wrote(site: Path) -> None:
    assert list((site / "root" / "private" / "runs").iterdir())
    assert not (site / "root" / "public" / "runs").exists()
    assert (site / "state" / "mlflow" / "private").is_dir()
    assert not (site / "state" / "mlflow" / "public").exists()


def test_no_ray_directory_is_left(site: Path) -> None:
    left = [path for path in Path("/tmp").glob("fy-*") if holding(path)]  # noqa: S108
    assert left == []
