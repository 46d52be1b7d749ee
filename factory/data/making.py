"""Making: the files of a raw version, from wherever its source is.

Fetching is done by `fetch`, and `raw` says which files are kept; this module carries files to them
and from them, and says what they saw. What is made of the files is in the module of each step:
`cleaning`, `deduplicating`, `dividing`, `preparing`.
"""

import shutil
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from factory.data import content, layout, raw
from factory.data.fetch import fetch
from factory.data.job import Job
from factory.data.progress import Ticker
from factory.data.sources import Derived, LocalFiles
from factory.errors import SourceError
from factory.namespace import Staging


def fetched(job: Job, staging: Staging) -> None:
    """Raw, from a source that a hash or a version pins."""
    source = job.step.dataset.source
    files = staging.path / layout.RAW_FILES
    if isinstance(source, Derived):
        files.mkdir()
        fetch(source, job.errand(files))
        _describe_files(files, raw.wanted(files, source.rows), staging)
        return
    scratch = _scratch(job, staging)
    found = fetch(source, job.errand(scratch))
    names = raw.wanted(found.folder, source.rows)
    raw.take(found.folder, names, files, Ticker(job.say, "files taken"))
    _describe_files(files, names, staging, partial=found.partial)
    shutil.rmtree(scratch)


def _scratch(job: Job, staging: Staging) -> Path:
    """Where downloads lie, also after a failure: private ones only where private files may."""
    if job.step.dataset.source.classification == "private":
        return staging.work.open()
    scratch = job.settings.state / "downloads" / "__".join(job.step.key.parts)
    scratch.mkdir(parents=True, exist_ok=True)
    return scratch


def delivered(job: Job, source: LocalFiles) -> tuple[Path, list[str]]:
    """The drop folder of a partner, and the files in it that count."""
    folder = fetch(source, job.errand(job.settings.state)).folder
    return folder, raw.wanted(folder, source.rows)


@dataclass(frozen=True)
class Taken:
    """Raw, from a drop folder whose contents were hashed before."""

    folder: Path
    names: list[str]
    state: str

    def __call__(self, job: Job, staging: Staging) -> None:
        """Copy the files, and see that nobody changed them meanwhile."""
        files = staging.path / layout.RAW_FILES
        raw.take(self.folder, self.names, files, Ticker(job.say, "files taken"))
        if content.files_hash(files, self.names) != self.state:
            raise SourceError(
                f"The drop folder {self.folder} changed while it was read. Is a delivery under "
                "way? Run the step again when it is finished."
            )
        _describe_files(files, self.names, staging)


def _describe_files(
    files: Path, names: Iterable[str], staging: Staging, *, partial: bool = False
) -> None:
    names = list(names)
    total = sum((files / name).stat().st_size for name in names)
    staging.describe(
        content_id=content.files_hash(files, names),
        facts={"files": len(names), "bytes": total},
        partial=partial,
    )
