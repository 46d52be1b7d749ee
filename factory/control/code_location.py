"""The one code location: everything in `definitions/`, refused whole if one asset is misplaced.

Outside `definitions/` because Dagster's loader imports every module in there. Loading needs no
torch, no Ray, no network and no cluster. How a dataset becomes assets is in `assets`.
"""

import traceback
import warnings
from collections.abc import Iterator
from pathlib import Path

import dagster as dg

from factory.control.specs import check
from factory.control.training import SPEC_METADATA
from factory.errors import ClassificationError, DeclarationError, FactoryError, SpecError
from factory.settings import CHECKOUT
from factory.spec import RunSpec

DECLARING = ("definitions/datasets/", "definitions/mixes/", "definitions/jobs/")
"""Where each file stands for itself: an error that comes from one names it."""


@dg.definitions
def defs() -> dg.Definitions:
    """Load `definitions/` and check the whole asset graph."""
    return load(CHECKOUT)


def load(checkout: Path) -> dg.Definitions:
    """Load the definitions of a checkout.

    Raises:
        DeclarationError: a file does not import; the message names it.
        ClassificationError: an asset in the public tree reads a private one.
    """
    try:
        loaded = _folder(checkout)
    except Exception as error:
        readable = _readable(error)
    else:
        validate(loaded)
        _validate_jobs(loaded)
        return loaded
    raise readable  # outside of `except`: Dagster's tree of a thousand files is not worth reading


def _folder(checkout: Path) -> dg.Definitions:
    """What `dg.load_from_defs_folder` gives, but for schemas of Dagster's own components.

    They are a fifth of a second of every load, for a page of the UI that shows components: we
    declare none.
    """
    tree = dg.ComponentTree.for_project(checkout)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", dg.PreviewWarning)  # of calls within Dagster
        return tree.build_defs(Path())


def validate(definitions: dg.Definitions) -> None:
    """Check every edge of the asset graph, hand-written assets and checks included.

    Raises:
        ClassificationError: private data would reach a public asset.
        DeclarationError: an asset is in neither tree.
    """
    for key, inputs in _edges(definitions):
        tree = key.path[0]
        if tree not in {"public", "private"}:
            raise DeclarationError(
                f"Asset {_name(key)} is in neither tree, so nobody can say who may read it. "
                "Start its key with public/ or private/."
            )
        if tree == "public":
            for read in inputs:
                if read.path[0] == "private":
                    raise _leak(key, read)


def _validate_jobs(definitions: dg.Definitions) -> None:
    """Check that every training job names what exists, with every cluster file read.

    Raises:
        DeclarationError: a cluster file is none, or a job names an unknown recipe, mix or cluster.
    """
    for job in definitions.jobs or ():
        stated = (job.metadata or {}).get(SPEC_METADATA)
        if stated is None:
            continue
        try:
            check(RunSpec.model_validate(stated.value))
        except SpecError as error:
            raise DeclarationError(f"The job {job.name!r} cannot run: {error}") from error


def _edges(definitions: dg.Definitions) -> Iterator[tuple[dg.AssetKey, list[dg.AssetKey]]]:
    for asset in definitions.assets or ():
        if isinstance(asset, dg.AssetsDefinition):
            for key, inputs in asset.asset_deps.items():
                yield key, list(inputs)
        elif isinstance(asset, dg.AssetSpec):
            yield asset.key, [dep.asset_key for dep in asset.deps]
    for checks in definitions.asset_checks or ():
        for spec in checks.check_specs:
            yield spec.asset_key, [dep.asset_key for dep in spec.additional_deps]


def _leak(key: dg.AssetKey, read: dg.AssetKey) -> ClassificationError:
    name = "/".join(key.path[1:])
    return ClassificationError(
        f"{_name(key)} reads {_name(read)}, so it must be private.\n"
        f'Write key=private("{name}") and move the file to definitions/datasets/private/{name}.py.'
    )


def _name(key: dg.AssetKey) -> str:
    return "/".join(key.path)


def _readable(error: BaseException) -> BaseException:
    """The error under Dagster's, with the place in `definitions/` that it comes from."""
    cause = error
    while cause.__cause__ is not None and not isinstance(cause, FactoryError):
        cause = cause.__cause__
    places = _places(cause)
    if isinstance(cause, FactoryError):
        return _placed(cause, places)
    if not places:
        return error
    what = "".join(traceback.format_exception_only(cause)).strip()
    called = "".join(f"\n  called at {place}" for place in reversed(places[:-1]))
    return DeclarationError(f"{places[-1]}\n{what}{called}")


def _placed(error: FactoryError, places: list[str]) -> FactoryError:
    """The error with the line of `definitions/` that it comes from, unless it names a file."""
    here = [place for place in places if place.startswith(DECLARING)]
    if not here or any(folder in str(error) for folder in DECLARING):
        return error
    file, _, _ = here[-1].partition(": ")
    return type(error)(f"{file}: {error}")


def _places(error: BaseException) -> list[str]:
    """Lines of `definitions/`, and of the factory that they called, outermost first."""
    if isinstance(error, SyntaxError) and error.filename:
        return [f"{_relative(error.filename)}, line {error.lineno}"]
    frames = traceback.extract_tb(error.__traceback__)
    start = next((i for i, f in enumerate(frames) if "/definitions/" in f.filename), len(frames))
    return [
        f"{_relative(frame.filename)}, line {frame.lineno}: {frame.line}"
        for frame in frames[start:]
        if not _is_foreign(frame.filename)
    ]


def _is_foreign(filename: str) -> bool:
    return "site-packages" in filename or not filename.endswith(".py")


def _relative(filename: str) -> str:
    for package in ("definitions", "factory"):
        head, found, tail = filename.rpartition(f"/{package}/")
        if head and found:
            return f"{package}/{tail}"
    return filename
