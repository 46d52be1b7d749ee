"""Specs of a run: `spec.json` is what it was asked for at first, `spec.3.json` its third attempt.

A launch writes the first one, so that a run which never begins has it too. Later ones are written
by the driver that has claimed its attempt, since several resumptions may wait for the same one.
"""

from pydantic import ValidationError

from factory.errors import NamespaceError, SpecError
from factory.namespace.attempts import last_attempt
from factory.namespace.manifest import wrong_fields
from factory.namespace.run_files import contents
from factory.namespace.runs import RunDirectory
from factory.spec import RunSpec


def keep_spec(run: RunDirectory, attempt: int, spec: RunSpec) -> None:
    """Write the spec of an attempt, in place of one that no driver has begun.

    Raises:
        NamespaceError: the attempt has a spec, and a driver.
    """
    name = _name(attempt)
    if last_attempt(run) < attempt:
        (run.path / name).unlink(missing_ok=True)
    run.create(name, (spec.model_dump_json(indent=2) + "\n").encode())


def last_spec(run: RunDirectory) -> RunSpec:
    """The spec of a run's last attempt that left one.

    Raises:
        SpecError: the run left none, or one that cannot be read.
    """
    for attempt in range(max(1, last_attempt(run)), 0, -1):
        name = _name(attempt)
        try:
            return RunSpec.model_validate_json(contents(run.path, name))
        except FileNotFoundError:
            continue
        except ValidationError as error:
            problem = f"wrong: {wrong_fields(error)}"
        except (OSError, NamespaceError) as error:
            problem = str(error)
        raise SpecError(f"{run.path / name} cannot be read ({problem.rstrip('.')}).")
    raise SpecError(f"{run} left no spec, so it never began. Launch it again.")


def _name(attempt: int) -> str:
    return "spec.json" if attempt == 1 else f"spec.{attempt}.json"
