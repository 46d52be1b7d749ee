"""The namespace: keys as directories, versions, and the only ways to write.

`tree.Namespace` is the way in. One idea per module: `layout` (where things are), `manifest`,
`integrity` and `version` (what a version is), `staging` and `lock` (how one is written), `checks`
and `promotion` (which one is current), `runs` and `run_files` (run directories, as they are written
and as they are read), `sweep` (what a crash leaves).
"""

from factory.namespace.checks import CheckRecord
from factory.namespace.integrity import Damage
from factory.namespace.lock import LockTimes
from factory.namespace.manifest import FileEntry, Manifest, Provenance, version_id
from factory.namespace.runs import RunDirectory
from factory.namespace.staging import Staging
from factory.namespace.tree import Namespace
from factory.namespace.version import Version

__all__ = [
    "CheckRecord",
    "Damage",
    "FileEntry",
    "LockTimes",
    "Manifest",
    "Namespace",
    "Provenance",
    "RunDirectory",
    "Staging",
    "Version",
    "version_id",
]
