"""The code location: what it holds in each deployment, what it refuses, what it does without."""

import dagster as dg
import pytest
from dagster._core.snap.job_snapshot import JobSnap
from dagster._core.snap.snap_to_yaml import default_values_yaml_from_type_snap
from syrupy.assertion import SnapshotAssertion

from definitions.jobs.smoke import smoke
from factory.spec import RunSpec
from tests.definitions.conftest import KEYS, Copy

HEAVY = (
    "datasets", "kubernetes", "lxml", "matplotlib", "megatron", "mlflow", "numpy", "pandas",
    "pyarrow", "ray", "torch", "transformers",
)  # fmt: skip

HAND_WRITTEN = '''"""An asset that is no dataset."""

import dagster as dg


@dg.asset(key={key}, deps=[{deps}])
def written() -> None:
    """Nothing."""
'''


def hand_written(key: list[str], *deps: list[str]) -> str:
    listed = ", ".join(f"dg.AssetKey({dep})" for dep in deps)
    return HAND_WRITTEN.format(key=key, deps=listed)


def test_asset_keys_are_the_same_in_every_deployment(
    definitions: Copy, snapshot: SnapshotAssertion
) -> None:
    keys = {
        deployment: definitions.facts(KEYS, FACTORY_DEPLOYMENT=deployment)
        for deployment in ("laptop", "dev", "prod")
    }
    assert keys["laptop"] == keys["dev"] == keys["prod"]
    assert keys["laptop"] == snapshot


def test_loading_needs_nothing_heavy_and_no_network(definitions: Copy) -> None:
    code = f"print(json.dumps([name for name in {HEAVY} if name in sys.modules]))"
    assert definitions.facts(code) == []


def test_loading_does_not_warn(definitions: Copy) -> None:
    done = definitions.python("")
    assert done.returncode == 0
    assert done.stderr == ""


def test_file_that_does_not_import_is_named(definitions: Copy) -> None:
    definitions.write("assets/broken.py", "import dagster as dg\n\nx = undefined_name\n")
    error = definitions.error()
    assert error.rstrip().endswith(
        "DeclarationError: definitions/assets/broken.py, line 3: x = undefined_name\n"
        "NameError: name 'undefined_name' is not defined"
    )
    assert "├──" not in error, "Dagster's tree of every file hides the line that matters"


def test_syntax_error_is_named(definitions: Copy) -> None:
    definitions.write("jobs/broken.py", "def job(:\n")
    assert "DeclarationError: definitions/jobs/broken.py, line 1" in definitions.error()


def test_dataset_that_does_not_import_is_named(definitions: Copy) -> None:
    definitions.write("datasets/public/text/broken.py", "raise ValueError('not today')\n")
    error = definitions.error()
    assert "definitions/datasets/public/text/broken.py" in error
    assert "not today" in error


def test_mix_that_cannot_be_used_is_named(definitions: Copy) -> None:
    definitions.write("mixes/none.py", "from factory.data.mix import Mix\n\nnone = Mix()\n")
    assert "definitions/mixes/none.py, line 3: A mix without" in definitions.error()


def test_asset_of_ours_that_fails_names_the_call(definitions: Copy) -> None:
    definitions.write(
        "jobs/other.py",
        "from factory.control.training import training_job\n\nother = training_job('other', 1)\n",
    )
    error = definitions.error()
    assert (
        "definitions/jobs/other.py, line 3" in error
        or "called at definitions/jobs/other.py" in error
    )


def test_public_asset_that_reads_a_private_one(definitions: Copy) -> None:
    definitions.write(
        "assets/leak.py",
        hand_written(
            ["public", "text", "letters"], ["private", "text", "discharge_letters", "clean"]
        ),
    )
    assert (
        "ClassificationError: public/text/letters reads private/text/discharge_letters/clean, "
        "so it must be private.\n"
        'Write key=private("text/letters") and move the file to '
        "definitions/datasets/private/text/letters.py."
    ) in definitions.error()


def test_private_asset_that_reads_both(definitions: Copy) -> None:
    definitions.write(
        "assets/fine.py",
        hand_written(
            ["private", "text", "letters"],
            ["private", "text", "discharge_letters", "clean"],
            ["public", "text", "plos", "clean"],
        ),
    )
    assert "private/text/letters" in definitions.facts(KEYS)


def test_asset_in_neither_tree(definitions: Copy) -> None:
    definitions.write("assets/stray.py", hand_written(["text", "letters"]))
    assert "DeclarationError: Asset text/letters is in neither tree" in definitions.error()


def test_check_of_a_public_asset_that_reads_a_private_one(definitions: Copy) -> None:
    definitions.write(
        "assets/leak.py",
        '''"""A check that is a leak."""
import dagster as dg


@dg.asset_check(
    asset=dg.AssetKey(["public", "text", "plos", "clean"]),
    additional_deps=[dg.AssetKey(["private", "text", "discharge_letters", "clean"])],
)
def leak() -> dg.AssetCheckResult:
    """Compare."""
    return dg.AssetCheckResult(passed=True)
''',
    )
    assert (
        "ClassificationError: public/text/plos/clean reads private/text/discharge_letters/clean"
        in definitions.error()
    )


def test_asset_selection_parses() -> None:
    """Older hydra-core and omegaconf bring an ANTLR with which this raises."""
    selection = dg.AssetSelection.from_string('key:"public/text/plos/*" and kind:parquet')
    assert isinstance(selection, dg.AssetSelection)


def test_launchpad_shows_every_field_with_its_default() -> None:
    snap = JobSnap.from_job_def(smoke)
    root = snap.config_schema_snapshot.get_config_snap(snap.mode_def_snaps[0].root_config_key or "")
    text = default_values_yaml_from_type_snap(snap.config_schema_snapshot, root)
    for name in RunSpec.model_fields:
        assert f"{name}:" in text
    assert "recipe: debug.pretrain" in text
    assert "mix: smoke" in text


def test_launchpad_explains_every_field() -> None:
    config = smoke.run_config_schema.config_type
    assert {name: field.description for name, field in config.fields.items()} == {
        name: field.description for name, field in RunSpec.model_fields.items()
    }


@pytest.mark.parametrize("job", ["smoke"])
def test_jobs_are_found(definitions: Copy, job: str) -> None:
    code = "print(json.dumps([job.name for job in loaded.get_repository_def().get_all_jobs()]))"
    assert job in definitions.facts(code)
