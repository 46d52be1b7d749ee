"""Fetching: the files of a source onto this machine, verified, one module per kind of source.

Every fetcher takes its source and an `Errand` and returns a folder to read. A mirror that lists its
files stands in for any of them, see `file_mirror`. What is taken from the folder is decided in
`factory.data.raw`.
"""

from pathlib import Path

from factory.data.fetch.closed import refuse_closed
from factory.data.fetch.errand import Errand, Fetched
from factory.data.sources import (
    MIRRORED,
    Derived,
    Git,
    HuggingFace,
    LocalFiles,
    PartnerDrop,
    Pinned,
    PythonPackage,
    Source,
)
from factory.data.stores import Fsspec


def fetch(source: Source, errand: Errand) -> Fetched:
    """The folder that holds the source's files, and whether all of them are there.

    Raises:
        SourceError: they cannot be fetched, or are not what was declared.
    """
    if isinstance(source, MIRRORED):
        from factory.data.fetch import file_mirror

        if errand.mirror is not None:
            refuse_closed(errand.mirror, source.classification, errand)

        mirror = file_mirror.read(errand.mirror)
        return mirror.lay_out(source, errand) if mirror else Fetched(_pinned(source, errand))
    return Fetched(_unpinned(source, errand))


def _pinned(source: Pinned, errand: Errand) -> Path:
    match source:
        case PythonPackage():
            from factory.data.fetch import package

            return package.fetch(source, errand)
        case Git():
            from factory.data.fetch import git

            return git.fetch(source, errand)
        case HuggingFace():
            from factory.data.fetch import hub

            return hub.fetch(source, errand)
        case Fsspec():
            from factory.data.fetch import objects

            return objects.fetch(source, errand)
        case _:
            from factory.data.fetch import http

            return http.fetch(source, errand)


def _unpinned(source: LocalFiles | PartnerDrop | Derived, errand: Errand) -> Path:
    match source:
        case LocalFiles():
            from factory.data.fetch import local

            return local.fetch(source, errand)
        case PartnerDrop():
            from factory.data.fetch import partner

            return partner.take_in(source, errand, partner.state(source, errand)).folder
        case Derived():
            from factory.data.fetch import derived

            return derived.fetch(source, errand)
