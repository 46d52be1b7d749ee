"""Which version is current: the link `<key>`, and the only code that moves it.

A version is published first and becomes current when its blocking checks have passed, so a failed
check leaves the old one in place. Publishing is in `staging`, results of checks in `checks`.
"""

import errno
import uuid
from pathlib import Path

from factory.errors import ChecksNotPassed, DamagedVersion, NamespaceError
from factory.namespace.checks import not_passed
from factory.namespace.durable import replace_link
from factory.namespace.layout import Place, is_version_id
from factory.namespace.version import Version


def read_current(place: Place) -> Version | None:
    """The version that the link names; none where nothing was promoted yet.

    Raises:
        NamespaceError: the link was made by something else.
        DamagedVersion: the version is gone.
    """
    try:
        target = place.link.readlink()
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        if error.errno == errno.EINVAL:
            return None  # a directory: the key is above others
        raise
    if target.parent != Path(place.versions.name) or not is_version_id(target.name):
        raise NamespaceError(
            f"{place.link} points to {target}, which is not one of {place.versions}. "
            "Only the factory may make it; remove it and run `factory rollback`."
        )
    directory = place.version(target.name)
    if not directory.is_dir():
        raise DamagedVersion(
            f"{place.key}: the current version {target.name} is gone from {place.versions}. "
            "Materialize the key again, or `factory rollback` to another version."
        )
    return Version(place.key, target.name, directory)


def make_current(place: Place, version: Version) -> None:
    """Repoint the link; the caller holds the `recording` lock.

    Raises:
        ChecksNotPassed: the version is limited, or a blocking check has not passed for it.
        DamagedVersion: files of it are missing.
    """
    manifest = version.manifest
    if manifest.limit is not None:
        raise ChecksNotPassed(
            f"{version} was made from the first {manifest.limit:,} rows only, so it cannot become "
            "current. Materialize without `limit`."
        )
    if wrong := not_passed(version):
        raise ChecksNotPassed(
            f"{version} cannot become current: {', '.join(wrong)}. The current version stays. "
            "Its results are in _checks.json beside its files."
        )
    if not version.is_complete():
        raise DamagedVersion(
            f"{version} has lost files since it was published, so it cannot become current. "
            f"`factory verify {version.key}` names them; materialize the key again."
        )
    target = place.target(version.id)
    if place.link.is_symlink() and str(place.link.readlink()) == target:
        return
    place.refuse_conflict()
    replace_link(place.link, target, place.scratch("link", uuid.uuid4().hex))


def refuse_damaged(version: Version) -> None:
    """Read all of a version before it is rolled back to.

    Raises:
        DamagedVersion: with the first differences.
    """
    if damage := version.verify():
        more = f" and {len(damage) - 3} more" if len(damage) > 3 else ""
        raise DamagedVersion(
            f"{version} is damaged: {'; '.join(str(one) for one in damage[:3])}{more}. "
            "Choose another version, or materialize the key again."
        )
