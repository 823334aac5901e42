"""Check of the encoder before a run. Unlike `provision`, this module imports no library."""

from __future__ import annotations

from peekbench import Folders
from peekbench_encoders import provision
from peekbench_transductive import OnFeatures


def check(*, options: OnFeatures, folders: Folders) -> None:
    """Check, without a download, that the encoder exists, if there is one.

    The errors are those of `peekbench_encoders.provision.check`.
    """
    if options.encoder is not None:
        provision.check(options=options.encoder, folders=folders)
