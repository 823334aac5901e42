"""What runs before a fit if the options may have an encoder: check, pin, prefetch and resources.

The parameters are those of `Check`, `Pin`, `Prefetch` and `ResourcesOf` in `peekbench.plugins.protocols`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from peekbench import Folders
from peekbench.records import Resources
from peekbench_encoders import provision
from peekbench_lm import provision as model_provision
from peekbench_transductive import OnFeatures


def pin(*, options: OnFeatures, folders: Folders) -> Mapping[str, Any]:
    """Return the option that fixes an encoder on the Hub to its current commit."""
    if options.encoder is None:
        return {}
    pinned = model_provision.pin(options=options.encoder, folders=folders)
    # A pinned value replaces all of the option.
    return {"encoder": {**options.encoder.model_dump(mode="json", exclude_unset=True), **pinned}} if pinned else {}


def prefetch(*, options: OnFeatures, folders: Folders) -> Mapping[str, Any]:
    """Download or unpack the encoder, if there is one, and describe it."""
    return {} if options.encoder is None else provision.prefetch(options=options.encoder, folders=folders)


def resources(*, options: OnFeatures, folders: Folders) -> Resources:
    """Return the resources of a fit: one CPU, or those of the encoder."""
    if options.encoder is None:
        return Resources()
    return model_provision.resources(options=options.encoder, folders=folders)


def check(*, options: OnFeatures, folders: Folders) -> None:
    """Check, without a download, that the encoder exists, if there is one."""
    if options.encoder is not None:
        provision.check(options=options.encoder, folders=folders)
