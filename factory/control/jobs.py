"""Jobs: the declared training jobs, and their run specs read from the files without an import.

Importing a job loads Dagster, which takes seconds. A spec that is not spelled out in its file is
left out.
"""

import ast
import importlib
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from pydantic import ValidationError

from factory import discovery
from factory.spec import RunSpec

if TYPE_CHECKING:
    import dagster as dg


def job_specs(folder: Path | None = None) -> dict[str, RunSpec]:
    """The spec of every training job by the job's name, as far as its file spells it out."""
    found: dict[str, RunSpec] = {}
    for file in sorted(((folder or discovery.definitions_folder()) / "jobs").rglob("[!_]*.py")):
        for call in _calls(ast.parse(file.read_bytes()), "training_job"):
            given = {one.arg: one.value for one in call.keywords}
            name, spec = (*call.args, given.get("name"), given.get("spec"))[:2]
            if isinstance(name, ast.Constant) and (read := _spec(spec)) is not None:
                found[str(name.value)] = read
    return found


def declared_jobs() -> "list[dg.JobDefinition]":
    """The training jobs themselves, for a sensor that starts them."""
    import dagster as dg

    folder = discovery.definitions_folder()
    found: list[dg.JobDefinition] = []
    for file in sorted((folder / "jobs").rglob("[!_]*.py")):
        parts = file.relative_to(folder.parent).with_suffix("").parts
        module = importlib.import_module(".".join(parts))
        found += [one for one in vars(module).values() if isinstance(one, dg.JobDefinition)]
    return found


def _spec(node: ast.expr | None) -> RunSpec | None:
    for call in _calls(node, "RunSpec") if node is not None else ():
        try:
            fields = {one.arg or "": ast.literal_eval(one.value) for one in call.keywords}
            return RunSpec.model_validate(fields)
        except (ValueError, ValidationError):
            return None
    return None


def _calls(tree: ast.AST, name: str) -> Iterator[ast.Call]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            function = node.func
            called = function.attr if isinstance(function, ast.Attribute) else function
            if name == (called.id if isinstance(called, ast.Name) else called):
                yield node
