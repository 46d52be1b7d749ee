"""Whose a run's directory is: its pods write it, as the user that the cluster's file names."""

import contextlib
import os
from pathlib import Path

from factory.control.clusters import Kubernetes
from factory.errors import RunFailed
from factory.namespace import RunDirectory

WRITABLE = 0o2775


def hand_over(run: RunDirectory, cluster: Kubernetes) -> None:
    """Let the pods of a run write its directory, and what is in it by now.

    Root gives it to their user. Anybody else shares it through a group, of which both are members.
    A file that goes away meanwhile, as a writer's scratch does, needs to be nobody's.

    Raises:
        RunFailed: neither is possible; says what to do.
    """
    who = cluster.run_as
    if os.geteuid() == who.user:
        return
    groups = {who.group, *who.groups}
    shared = groups & {os.getegid(), *os.getgroups()}
    for path in (run.path, *_inside(run.path)):
        with contextlib.suppress(FileNotFoundError):
            _give(path, who.user, who.group, shared=shared, run=run)


def _give(path: Path, user: int, group: int, *, shared: set[int], run: RunDirectory) -> None:
    found = path.lstat()
    if found.st_uid == user:
        return
    if os.geteuid() == 0:
        os.chown(path, user, group, follow_symlinks=False)
        return
    if not shared or found.st_uid != os.geteuid():
        raise RunFailed(
            f"The pods of the run write {run.path} as user {user}, group {group}, and this process "
            f"(user {os.geteuid()}) can give them no right to. Run the factory as that user, as "
            "root, or as a member of that group (`run_as` in the cluster's file)."
        )
    os.chown(path, -1, group if group in shared else min(shared), follow_symlinks=False)
    if path.is_dir() and not path.is_symlink():
        path.chmod(WRITABLE)


def _inside(folder: Path) -> list[Path]:
    """Everything below, links themselves and never what they point to."""
    found: list[Path] = []
    for base, folders, files in os.walk(folder):
        found += [Path(base, name) for name in (*folders, *files)]
    return found
