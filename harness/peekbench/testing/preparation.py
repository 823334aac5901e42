"""Prepares methods and audits before their checks, as a run does."""

from __future__ import annotations

from pathlib import Path

from peekbench.cache import cache_folder
from peekbench.plugins.exceptions import one_line_errors
from peekbench.records.data import Folders
from peekbench.spec.components import AuditSpec, MethodSpec


def prepare_entry(spec: MethodSpec | AuditSpec, folder: Path) -> None:
    """Check the options against the files on this machine, then download or build all that the entry needs.

    Parameters
    ----------
    spec
        A method or an audit with its options.
    folder
        Folder that relative paths in the options start from.

    Raises
    ------
    PeekbenchError
        If something is unavailable, of the kind that the plugin raised.
    PluginError
        If the code of the plugin raises another exception.
    """
    folders = Folders(spec=folder, cache=cache_folder())
    for name, function in (("check", spec.entry.preparation.check), ("prefetch", spec.entry.preparation.prefetch)):
        if function is not None:
            with one_line_errors(f"{spec.use}: `{name}`", spec.use, spec.options):
                function(options=spec.options, folders=folders)
    if isinstance(spec, MethodSpec) and spec.entry.preparation.resources is not None:
        with one_line_errors(f"{spec.use}: `resources`", spec.use, spec.options):
            spec.entry.preparation.resources(options=spec.options)
