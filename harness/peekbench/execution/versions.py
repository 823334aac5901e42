"""Versions of distributions: of all that are installed, and of those on which methods depend."""

from __future__ import annotations

import platform
import sys
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import suppress
from functools import lru_cache
from importlib.metadata import (
    PackageMetadata,
    PackageNotFoundError,
    distribution,
    distributions,
    packages_distributions,
)
from pathlib import Path
from typing import Any

from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name

from peekbench.execution.code import absolute_imports, find_code
from peekbench.plugins import registry
from peekbench.plugins.local_code import is_code

CORE = "peekbench"
"""Distribution of the core."""


def package_versions() -> dict[str, str]:
    """Return the version of every installed distribution.

    Examples
    --------
    >>> "peekbench" in package_versions()
    True
    """
    return dict(_package_versions(_search_path()))


def relevant_versions(plugins: Iterable[str]) -> dict[str, str]:
    """Return the versions on which the results of method plugins depend.

    These are the versions of Python, of peekbench, of the plugins' distributions, and of everything that these require,
    directly or not. An extra of a plugin's distribution counts if the plugin imports what the extra installs.

    Parameters
    ----------
    plugins
        Names of plugins, such as 'classic'.

    Returns
    -------
    dict
        Versions by name of the distribution, sorted. Distributions that are required but not installed are left out.

    Examples
    --------
    >>> sorted({"Python", "peekbench", "scikit-learn"} & relevant_versions(["classic"]).keys())
    ['Python', 'peekbench', 'scikit-learn']
    """
    return dict(_relevant_versions(tuple(dict.fromkeys(plugins)), _search_path()))


def describe_version_changes(sessions: Iterable[Mapping[str, Any]]) -> str:
    """Return the versions in which sessions differ, and on which results depend, in words; empty if there are none.

    Parameters
    ----------
    sessions
        Sessions of a run, oldest first.

    Examples
    --------
    >>> describe_version_changes([{"python": "3.11.2"}, {"python": "3.11.7", "versions": {"numpy": "2.4.6"}}])
    'Python 3.11.2, then 3.11.7'
    """
    found: dict[str, dict[str, None]] = {}
    for session in sessions:
        python = {"Python": session["python"]} if "python" in session else {}
        for name, number in {**session.get("versions", {}), **python}.items():
            found.setdefault(name, {})[number] = None
    return "; ".join(f"{name} {', then '.join(versions)}" for name, versions in found.items() if len(versions) > 1)


def _search_path() -> tuple[tuple[str, int], ...]:
    """Return the folders that can contain distributions with the times of their last changes, for caches."""
    paths = [Path(entry or ".") for entry in sys.path]
    return tuple((str(path), path.stat().st_mtime_ns) for path in paths if path.is_dir())


@lru_cache(maxsize=1)
def _package_versions(_: object) -> dict[str, str]:
    versions = {dist.metadata["Name"]: dist.version for dist in distributions()}
    return dict(sorted(versions.items(), key=lambda item: item[0].lower()))


@lru_cache(maxsize=16)
def _relevant_versions(plugins: tuple[str, ...], _: object) -> dict[str, str]:
    versions: dict[str, str] = {}
    queue = [(CORE, frozenset[str]())]
    for plugin in plugins:
        own = registry.installed()[plugin][0].dist if plugin in registry.installed() else None
        if is_code(plugin):
            queue += [(name, frozenset()) for name in _imported_distributions(plugin)]
        elif own is not None:
            queue += [(own.name, frozenset()), *_imported_extras(own.metadata, plugin)]
    done: set[tuple[str, frozenset[str]]] = set()
    while queue:
        name, extras = queue.pop()
        if (name, extras) not in done:
            done.add((name, extras))
            with suppress(PackageNotFoundError):  # an incomplete installation, which `pip check` reports
                metadata = distribution(name).metadata
                versions[metadata["Name"]] = metadata["Version"]
                queue += _requirements(metadata, extras)
    versions = dict(sorted(versions.items(), key=lambda item: item[0].lower()))
    return {"Python": platform.python_version(), **versions}


def _imported_distributions(code: str) -> set[str]:
    """Return the distributions that a file or a module imports."""
    owners = packages_distributions()
    imported = {
        module.partition(".")[0] for name, path in find_code(code).items() for module in absolute_imports(name, path)
    }
    return {owner for module in imported for owner in owners.get(module, ())}


def _requirements(metadata: PackageMetadata, extras: Collection[str]) -> Iterator[tuple[str, frozenset[str]]]:
    """Iterate over what a distribution requires here, if installed with some extras: names, each with its extras."""
    for text in metadata.get_all("Requires-Dist") or ():
        if not extras and "extra" in text.partition(";")[2]:  # most requirements, which take long to parse
            continue
        with suppress(InvalidRequirement):  # of an old distribution
            requirement = Requirement(text)
            marker = requirement.marker
            if marker is None or any(marker.evaluate({"extra": extra}) for extra in ("", *extras)):
                yield canonicalize_name(requirement.name), frozenset(requirement.extras)


def _imported_extras(metadata: PackageMetadata, plugin: str) -> Iterator[tuple[str, frozenset[str]]]:
    """Iterate over the requirements for any extra of a plugin's distribution that the plugin imports.

    Nothing says which extras were installed. A distribution is taken to have the name of the module that it installs.
    """
    imported = {
        canonicalize_name(module.partition(".")[0])
        for name, path in find_code(plugin).items()
        for module in absolute_imports(name, path)
    }
    for name, extras in _requirements(metadata, metadata.get_all("Provides-Extra") or ()):
        if name in imported and name != canonicalize_name(metadata["Name"]):
            yield name, extras
