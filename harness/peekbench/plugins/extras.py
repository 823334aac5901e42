"""Finds the extra of a distribution that installs a library which a plugin needs."""

from __future__ import annotations

import re
from collections import Counter
from importlib.metadata import Distribution, entry_points

REQUIREMENT = re.compile(r"(?P<name>[\w.-]+).*\bextra *== *['\"](?P<extra>[\w.-]+)")


def find_extra(library: str, module: str) -> str:
    """Return the requirement that installs a library for a plugin; empty if no extra lists the library.

    Nothing installed says which distribution contains a missing module. It is taken to have the module's name, which
    holds for most libraries.

    Parameters
    ----------
    library
        Name of a module that is not installed, such as 'torch'.
    module
        Module that imports it. If it is in no plugin's package, it is taken to be part of peekbench.

    Examples
    --------
    >>> find_extra("torch", "peekbench_finetune.methods")
    'peekbench[lm]'
    """
    package = module.partition(".")[0]
    distribution = _find_distribution(package)
    if distribution is None:
        return ""
    requirements = [
        (match["extra"], _normalize(match["name"]))
        for requirement in distribution.requires or ()
        if (match := REQUIREMENT.match(requirement))
    ]
    sizes = Counter(extra for extra, _ in requirements)
    extras = [extra for extra, name in requirements if name == _normalize(library)]
    if not extras:
        return ""
    # Of several extras, that of the plugin's name, or the one that installs least.
    extra = min(extras, key=lambda extra: (extra not in package, sizes[extra]))
    return f"{distribution.name}[{extra}]"


def _find_distribution(package: str) -> Distribution | None:
    """Return the distribution of the plugin in a package, otherwise peekbench itself."""
    points = entry_points(group="peekbench")
    own = [point.dist for point in points if point.dist and point.module.partition(".")[0] == package]
    core = [point.dist for point in points if point.dist and point.dist.name == "peekbench"]
    return next(iter(own + core), None)


def _normalize(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()
