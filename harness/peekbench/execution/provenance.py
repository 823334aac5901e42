"""Describes this process and machine: the code, versions and machine on which results depend.

The code of a plugin is all files of the packages and modules that hold the plugin and the functions that its methods
name by reference, and of the packages `peekbench_*` that these import, directly or not. The code of a file without a
plugin is the file and the modules beside it that it imports in the same way. Only import statements count.
"""

from __future__ import annotations

import hashlib
import os
import platform
import subprocess
import sys
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import suppress
from datetime import UTC, datetime
from functools import lru_cache
from importlib.metadata import (
    PackageMetadata,
    PackageNotFoundError,
    distribution,
    distributions,
    packages_distributions,
    version,
)
from pathlib import Path
from typing import Any

import psutil
from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name

from peekbench.errors import PeekbenchError
from peekbench.plugins import registry
from peekbench.plugins.entries import MethodEntry
from peekbench.plugins.local_code import (
    find_files,
    find_local_files,
    find_modules,
    is_installed,
    locate,
    read_code,
    read_imports,
    root_of,
)
from peekbench.plugins.names import Code, find_reference, is_code, iterate_callables
from peekbench.plugins.work_protocols import list_gpus
from peekbench.spec.experiment import ExperimentSpec
from peekbench.store.differences import Files, Identity, files_of, plugin_of

CORE = "peekbench"
"""Package of the core, whose code is no plugin's."""
DIGITS = 16  # of the hash of a file
MAX_SECONDS = 10.0


def describe_code_of(spec: ExperimentSpec) -> dict[str, Files]:
    """Describe the code of the methods and graders of a spec, as `describe_code` does."""
    return describe_code([*(method.use for method in spec.methods), *spec.graders.values()])


def describe_code(uses: Iterable[str]) -> dict[str, Files]:
    """Return the first digits of the hashes of source files, by plugin and file.

    Parameters
    ----------
    uses
        Names such as 'plugin.thing'.

    Raises
    ------
    PluginError
        If a file cannot be read.
    """
    return {plugin: _hash_files(find_code(plugin)) for plugin in dict.fromkeys(map(plugin_of, uses))}


def identify(spec: ExperimentSpec, tasks: Mapping[str, Mapping[str, Any]], facts: Mapping[str, Any]) -> Identity:
    """Return the identity of this process, with which other machines are compared.

    Parameters
    ----------
    spec
        The spec.
    tasks
        Facts about the data, by task, as far as they are known.
    facts
        Facts of prefetched methods, by method, as far as they are known.
    """
    code = describe_code_of(spec)
    core = {CORE: _hash_files(find_files(CORE, Path(__file__).parents[1]))}
    data = {name: str(task["fingerprint"]) for name, task in tasks.items()}
    return Identity({**code, **core}, relevant_versions(code), files_of(facts), data)


def _hash_files(files: Mapping[str, Path]) -> Files:
    return {name: hashlib.sha256(read_code(path)).hexdigest()[:DIGITS] for name, path in sorted(files.items())}


def find_code(plugin: str) -> dict[str, Path]:
    """Return the files of a plugin by their path below the folder from which they are imported, sorted."""
    entries = registry.load(plugin).entries(MethodEntry)
    if isinstance(plugin, Code):
        files, names = _find_local_code(plugin), []
    else:
        files, names = {}, [registry.installed()[plugin][0].module]
    functions = [function for entry in entries.values() for _, function in iterate_callables(entry)]
    references = [reference for function in functions if (reference := find_reference(function))]
    names += [reference.target.partition(":")[0] for reference in references]
    names += _imported_libraries(files)
    done = {CORE}
    while names:
        found = locate(names.pop())
        if found is None or found[0] in done:
            continue
        done.add(found[0])
        new = find_files(*found)
        files |= new
        names += _imported_libraries(new)
    return dict(sorted(files.items()))


def _find_local_code(code: Code) -> dict[str, Path]:
    """Return the files of code and of the modules beside it that it needs, by their path below their folder."""
    if code.module is not None:
        return {}
    _, _, files = find_modules(code)
    if code.path:
        return {code.path.name: code.path, **files}
    found = locate(code.rstrip(":"))
    if files or found is None:
        return files
    if is_installed(root_of(*found)):
        return find_files(*found)
    return find_local_files(root_of(*found), [found[0]])


def _imported_libraries(files: Mapping[str, Path]) -> list[str]:
    """Return the names of what files import of the packages `peekbench_*`."""
    names = (name for path in files.values() for name in read_imports(read_code(path)))
    return [name for name in names if name.startswith(f"{CORE}_")]


def describe_session(folder: Path) -> dict[str, Any]:
    """Describe this process and machine, as far as results may depend on them.

    Parameters
    ----------
    folder
        The spec's folder. If it is in a git repository, the commit is included.

    Returns
    -------
    dict
        JSON values: start, command, versions, commit and machine.
    """
    return {
        "started": datetime.now(UTC).isoformat(timespec="seconds"),
        "command": [Path(sys.argv[0]).name, *sys.argv[1:]],
        "peekbench": version("peekbench"),
        "python": platform.python_version(),
        "packages": package_versions(),
        "commit": find_commit(folder),
        "machine": describe_machine(),
    }


def find_commit(folder: Path) -> str | None:
    """Return the commit of a folder's git repository; None without git or a commit.

    `rev-parse` runs nothing that a repository configures, which may come from elsewhere.
    """
    variables = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    command = ["git", "rev-parse", "--verify", "--quiet", "HEAD"]
    try:
        done = subprocess.run(  # noqa: S603 - constant arguments
            command, cwd=folder, env=variables, capture_output=True, text=True, check=True, timeout=MAX_SECONDS
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.strip()


def describe_machine() -> dict[str, Any]:
    """Return processor, cores, GPUs, memory in bytes, and operating system."""
    return {
        "processor": _processor(),
        "architecture": platform.machine(),
        "cores": os.cpu_count(),
        "gpus": _gpu_names(),
        "memory": psutil.virtual_memory().total,
        "system": platform.platform(),
    }


def _processor() -> str:
    """Return the processor's name. `platform` does not know it on every system, but /proc does on Linux."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        lines = []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return next(iter(names), platform.processor()) or "unknown"


def _gpu_names() -> list[str]:
    """Return the models of the GPUs that this process may use, as far as they are known."""
    try:
        return [gpu.name for gpu in list_gpus() or ()]
    except PeekbenchError:  # of a driver that does not work; trials that need a GPU report it
        return []


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
    directly or not, and of what the plugins import.

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
    versions = _relevant_versions(tuple(dict.fromkeys(plugins)), _search_path())
    return {"Python": platform.python_version(), **versions}


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
    names = [CORE]
    for plugin in plugins:
        names += _imported_distributions(plugin)
        names += [point.dist.name for point in registry.installed().get(plugin, ())[:1] if point.dist is not None]
    queue = [(name, frozenset[str]()) for name in names]
    done: set[tuple[str, frozenset[str]]] = set()
    while queue:
        name, extras = queue.pop()
        if (name, extras) not in done:
            done.add((name, extras))
            with suppress(PackageNotFoundError):  # an incomplete installation, which `pip check` reports
                metadata = distribution(name).metadata
                versions[metadata["Name"]] = metadata["Version"]
                queue += _requirements(metadata, extras)
    return dict(sorted(versions.items(), key=lambda item: item[0].lower()))


def _imported_distributions(plugin: str) -> set[str]:
    """Return the names of the distributions that a plugin, a file or a module imports.

    A distribution that an installed plugin imports is taken to have the name of its module, which is quick to tell.
    """
    modules = {name.partition(".")[0] for path in find_code(plugin).values() for name in read_imports(read_code(path))}
    if not is_code(plugin):
        return {canonicalize_name(module) for module in modules if module != CORE}
    owners = _owners(_search_path())
    return {owner for module in modules for owner in owners.get(module, ())}


@lru_cache(maxsize=1)
def _owners(_: object) -> Mapping[str, list[str]]:
    return packages_distributions()  # reads the lists of files of all distributions


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
