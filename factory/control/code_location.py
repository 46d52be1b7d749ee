"""The one code location: everything in `definitions/`, refused whole if one asset is misplaced.

Outside `definitions/` because Dagster's loader imports every module in there. Loading needs no
torch, no Ray, no network and no cluster. How a dataset becomes assets is in `assets`.
"""

import traceback
from collections.abc import Iterator
from pathlib import Path

import dagster as dg

from factory.errors import ClassificationError, DeclarationError, FactoryError
from factory.settings import CHECKOUT


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
        loaded = dg.load_from_defs_folder(path_within_project=checkout)
    except FactoryError:
        raise
    except Exception as error:
        raise _readable(error) from error
    validate(loaded)
    return loaded


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


def _readable(error: BaseException) -> FactoryError:
    """The error under Dagster's: its tree of all components hides the one line that matters."""
    cause = error
    while cause.__cause__ is not None and not isinstance(cause, FactoryError):
        cause = cause.__cause__
    if isinstance(cause, FactoryError):
        return cause
    frames = traceback.extract_tb(cause.__traceback__)
    own = [f for f in frames if "/definitions/" in f.filename and "site-packages" not in f.filename]
    if isinstance(cause, SyntaxError) and cause.filename:
        place = f"{_relative(cause.filename)}, line {cause.lineno}"
    elif own:
        place = f"{_relative(own[-1].filename)}, line {own[-1].lineno}: {own[-1].line}"
    else:
        place = "definitions/"
    what = "".join(traceback.format_exception_only(cause)).strip()
    return DeclarationError(f"{place}\ncannot be imported: {what}")


def _relative(filename: str) -> str:
    _, _, tail = filename.rpartition("/definitions/")
    return f"definitions/{tail}"
