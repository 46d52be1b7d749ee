"""Every check has a mutation that it catches, and passes without it."""

import inspect
import shutil
from collections import Counter
from pathlib import Path

import pytest

from factory.data import checks
from factory.data.checks import FREE_CHECK_NAMES, Check
from factory.data.free_checks import run_one
from factory.data.steps import steps
from tests.data.mutations import healthy
from tests.data.mutations.of_checks import MUTATIONS, Mutation


@pytest.fixture(scope="module")
def healthy_versions(tmp_path_factory: pytest.TempPathFactory) -> healthy.Healthy:
    return healthy.made(tmp_path_factory.mktemp("healthy"), "split")


@pytest.fixture(scope="module")
def healthy_shards(tmp_path_factory: pytest.TempPathFactory) -> healthy.Healthy:
    return healthy.made(tmp_path_factory.mktemp("healthy"), "energon/train")


@pytest.mark.parametrize(
    "mutation", [one for one in MUTATIONS if one.step != "energon"], ids=lambda one: one.id
)
def test_a_table_or_file(healthy_versions, mutation: Mutation, tmp_path: Path) -> None:
    is_caught(healthy_versions, mutation, tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize(
    "mutation", [one for one in MUTATIONS if one.step == "energon"], ids=lambda one: one.id
)
def test_a_shard(healthy_shards, mutation: Mutation, tmp_path: Path) -> None:
    is_caught(healthy_shards, mutation, tmp_path)


def is_caught(versions: healthy.Healthy, mutation: Mutation, tmp_path: Path) -> None:
    """The check passes, and fails once the version is damaged."""
    check = versions.checks[mutation.step, mutation.check]
    copy = tmp_path / "version"
    shutil.copytree(versions.versions[mutation.step], copy)
    before = run_one(check, copy)
    assert before.passed, before.summary
    mutation.damage(copy)
    after = run_one(check, copy)
    assert not after.passed, f"the check lets pass that {mutation.broken}"
    assert mutation.says in after.summary


CHECKS = [(step.kind, check) for step in steps(healthy.DECLARED) for check in step.checks]


def test_every_check_has_one() -> None:
    mutated = {(one.step, one.check) for one in MUTATIONS}
    declared = {(step, check.name) for step, check in CHECKS}
    assert mutated == declared, "tests/data/mutations/of_checks.py has the mutations"
    assert set(FREE_CHECK_NAMES) <= {name for _, name in mutated}


def test_what_can_be_declared_has_one() -> None:
    kinds = {one for one in vars(checks).values() if _makes_a_check(one)}
    used = {type(one.function) for _, one in CHECKS}
    for maker in kinds:
        example = maker(0, 1) if maker is checks.rows else maker("x", at_most=0)
        assert type(example.function) in used, f"declare checks.{maker.__name__} in healthy.py"


def _makes_a_check(value: object) -> bool:
    return inspect.isfunction(value) and value.__annotations__.get("return") in (Check, "Check")


def test_all_of_them_block() -> None:
    assert all(one.blocking for _, one in CHECKS)


def test_mutations_differ() -> None:
    assert max(Counter(one.id for one in MUTATIONS).values()) == 1
