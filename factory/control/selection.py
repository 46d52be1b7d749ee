"""From what a person names to steps: a dataset's key means all of its steps, an asset's one."""

from collections.abc import Iterable, Sequence

from factory.control.nearest import naming
from factory.data.dataset import Dataset
from factory.data.steps import Step, steps
from factory.discovery import datasets
from factory.errors import SpecError
from factory.keys import Key, parse


def dataset_of(key: Key) -> Dataset:
    """The declared dataset of that key.

    Raises:
        SpecError: none is declared.
    """
    known = datasets()
    if key.path not in known:
        raise SpecError(f"No dataset {key} under definitions/datasets. {naming(key.path, known)}")
    return known[key.path]


def select(names: Sequence[str], declared: Iterable[Dataset]) -> list[Step]:
    """The steps that these keys name, in the order in which they run.

    Raises:
        SpecError: a name is neither a dataset nor one of its assets.
    """
    every = [step for dataset in declared for step in steps(dataset)]
    whole = {step.dataset.key.path for step in every}
    wanted = {parse(name).path for name in names}
    for name in sorted(wanted - whole - {step.key.path for step in every}):
        raise SpecError(f"{name} is neither a dataset nor an asset of one. {naming(name, whole)}")
    return [step for step in every if step.key.path in wanted or step.dataset.key.path in wanted]
