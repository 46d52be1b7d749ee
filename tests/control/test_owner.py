"""One word for a Dagster instance, in all its processes."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import cast

import dagster as dg
import pytest

from factory.control.clusters.words import is_label_value
from factory.control.instance import ensure
from factory.control.owner import owner
from factory.errors import SettingsError
from tests.control.conftest import settings_in


def test_it_stays_with_the_storage_of_the_runs(tmp_path: Path) -> None:
    settings = settings_in(tmp_path)
    with ensure(settings) as instance:
        first = owner(instance)
    with ensure(settings) as instance:
        assert owner(instance) == first
    assert first
    assert is_label_value(first)


def test_another_instance_is_another_owner() -> None:
    with dg.DagsterInstance.ephemeral() as one, dg.DagsterInstance.ephemeral() as other:
        assert owner(one) != owner(other)


def test_those_who_ask_first_at_once_hear_one_answer(tmp_path: Path) -> None:
    settings = settings_in(tmp_path)
    opened = [ensure(settings) for _ in range(4)]
    with ThreadPoolExecutor(len(opened)) as several:
        heard = set(several.map(owner, opened))
    for instance in opened:
        instance.dispose()
    assert len(heard) == 1


def test_a_storage_without_an_id_is_refused_with_what_to_do() -> None:
    class Elsewhere:
        run_storage = object()

    with pytest.raises(SettingsError, match=r"in a object, which has no id.*PostgreSQL"):
        owner(cast("dg.DagsterInstance", Elsewhere()))
