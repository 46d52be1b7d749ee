"""Fetching: the files of a source onto this machine, verified, one module per kind of source.

Every fetcher takes its source and an `Errand` and returns a folder to read. What is taken from
that folder is decided in `factory.data.raw`.
"""

from pathlib import Path

from factory.data.fetch.errand import Errand
from factory.data.sources import Derived, Git, Http, LocalFiles, PartnerDrop, PythonPackage, Source


def fetch(source: Source, errand: Errand) -> Path:
    """The folder that holds the source's files.

    Raises:
        SourceError: they cannot be fetched, or are not what was declared.
    """
    match source:
        case PythonPackage():
            from factory.data.fetch import package

            return package.fetch(source, errand)
        case Git():
            from factory.data.fetch import git

            return git.fetch(source, errand)
        case Http():
            from factory.data.fetch import http

            return http.fetch(source, errand)
        case LocalFiles():
            from factory.data.fetch import local

            return local.fetch(source, errand)
        case PartnerDrop():
            from factory.data.fetch import partner

            return partner.take_in(source, errand, partner.state(source, errand)).folder
        case Derived():
            from factory.data.fetch import derived

            return derived.fetch(source, errand)
