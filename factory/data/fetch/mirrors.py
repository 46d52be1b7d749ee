"""Mirrors: local copies that stand in for sources, where a site has no way to the internet.

`FACTORY_MIRRORS` names a TOML file; paths in it are relative to the file::

    [mirrors]
    "allofplos==0.11.0" = "wheels/allofplos-0.11.0-py3-none-any.whl"
    "https://github.com/abachaa/MedQuAD" = "git/MedQuAD.git"

A mirror is held to the same hash or revision as the source that it stands in for.
"""

import tomllib
from pathlib import Path
from typing import Any, cast

from factory.errors import SettingsError, SourceError


def mirror_of(address: str, file: Path | None) -> Path | None:
    """The local copy of what is at that address; none where no mirror is named.

    Raises:
        SettingsError: the file is missing or says something else than mirrors.
        SourceError: the copy that it names is not there.
    """
    if file is None:
        return None
    target = _mirrors(file).get(address)
    if target is None:
        return None
    path = file.parent / Path(target).expanduser()
    if not path.exists():
        raise SourceError(
            f"{file} redirects {address} to {path}, which is not there. "
            "Put the copy there, or take the line out to fetch from the source."
        )
    return path


def _mirrors(file: Path) -> dict[str, str]:
    try:
        content: dict[str, Any] = tomllib.loads(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise SettingsError(
            f"FACTORY_MIRRORS names {file}, which cannot be read: {error.strerror}."
        ) from error
    except ValueError as error:
        raise SettingsError(f"FACTORY_MIRRORS names {file}, which is not TOML: {error}.") from error
    unknown = sorted(set(content) - {"mirrors"})
    table: Any = content.get("mirrors", {})
    if unknown or not isinstance(table, dict):
        raise SettingsError(
            f"{file} holds {', '.join(unknown) or 'mirrors as something else than a table'}; "
            'it may hold one table, [mirrors], with lines like "name==version" = "path".'
        )
    mirrors = cast(dict[str, Any], table)
    wrong = [name for name, path in mirrors.items() if not isinstance(path, str)]
    if wrong:
        raise SettingsError(f"{file}: the mirror of {wrong[0]!r} is not a path.")
    return mirrors
