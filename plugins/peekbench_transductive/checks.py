"""Check of the encoder before a run. Unlike `provision`, this module imports no library."""

from __future__ import annotations

from peekbench import Folders
from peekbench_encoders import provision
from peekbench_transductive import OnFeatures


def check(*, options: OnFeatures, folders: Folders) -> None:
    """Check, without a download, that an encoder that is built in or in a folder exists.

    Parameters
    ----------
    options
        Options of the method.
    folders
        Folders of the spec and of the cache.

    Raises
    ------
    DataError
        If the encoder does not exist or has code of its own.
    """
    if options.encoder is not None:
        provision.check(options=options.encoder, folders=folders)
