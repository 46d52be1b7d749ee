"""A drop folder: read where it is, never written to. `partner` goes on from here."""

from pathlib import Path

from factory.data.fetch.errand import Errand
from factory.data.sources import LocalFiles, PartnerDrop
from factory.errors import SourceError


def fetch(source: LocalFiles | PartnerDrop, errand: Errand) -> Path:
    """The drop folder itself.

    Raises:
        SourceError: no drops are configured here, or the folder is not there or not readable.
    """
    if errand.drops is None:
        raise SourceError(
            f"The drop folder {source.folder!r} cannot be found because FACTORY_DROPS is not set. "
            "Set it to where partners' deliveries land on this machine."
        )
    folder = errand.drops / source.folder
    leads = folder.resolve()
    if leads != errand.drops.resolve() / source.folder:
        # As public, it could be another name of a folder that is declared private.
        raise SourceError(
            f"The drop folder {folder} is a link, or lies below one, and leads to {leads}. "
            "Declare the folder itself."
        )
    if not folder.is_dir():
        raise SourceError(
            f"The drop folder {folder} is not there. Has the partner delivered, and is the share "
            "mounted on this machine?"
        )
    try:
        next(folder.iterdir(), None)
    except PermissionError:
        raise SourceError(
            f"The drop folder {folder} cannot be read by this account. Ask data governance for "
            "access, or run the step where the identity has it."
        ) from None
    return folder
