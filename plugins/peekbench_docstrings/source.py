"""Load the tasks `docstrings.*`: find the package, and take its rows from the cache or extract them."""

from __future__ import annotations

import hashlib
import json
import os
import re
import sys
from dataclasses import dataclass, replace
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path
from statistics import quantiles
from typing import Any

from peekbench import DataError, Dataset, Folders
from peekbench.cache import read_cached, write_cached
from peekbench.data import hash_rows
from peekbench.plugins import Reference
from peekbench.records import TaskFacts
from peekbench_docstrings import DocstringOptions
from peekbench_docstrings.recipes import Recipe

extract = Reference("peekbench_docstrings.extract:extract")
"""Extracts rows, which only tasks that are not cached need."""


@dataclass(frozen=True, slots=True)
class Package:
    """The Python sources of an installed package."""

    root: Path
    """Folder of the package."""
    version: str


def load(*, options: DocstringOptions, folders: Folders, recipe: Recipe) -> Dataset:
    """Load one task: in milliseconds from the cache, or in seconds from the package's sources.

    Parameters
    ----------
    options
        Length of the texts, and which duplicates are dropped.
    folders
        Folders of the spec and the cache.
    recipe
        Package and classes of the task.

    Raises
    ------
    DataError
        If the package is not installed, or its sources are missing or damaged.
    """
    package = locate(recipe)
    path = _cache_path(recipe, package, options, folders)
    content = read_cached(path)
    if content is None:
        content = _extract_content(recipe, package, options)
        write_cached(path, content)
    return Dataset(
        inputs=tuple(content["texts"]),
        labels=tuple(content["labels"]),
        class_names=tuple(recipe.classes),
        instruction=recipe.instruction,
        fingerprint=content["fingerprint"],
        details=content["details"],
    )


def task_facts(folders: Folders, recipe: Recipe) -> TaskFacts:
    """Return facts from the recipe and, if the task is cached, from its rows.

    Parameters
    ----------
    folders
        Folders of the spec and the cache.
    recipe
        Package and classes of the task.
    """
    facts = TaskFacts(num_classes=len(recipe.classes), license=recipe.license)
    try:
        content = read_cached(_cache_path(recipe, locate(recipe), DocstringOptions(), folders))
    except DataError:  # the package is not installed
        return facts
    if content is None:
        return facts
    quarter, _, three_quarters = quantiles(map(len, content["texts"]), n=4, method="inclusive")
    return replace(facts, num_rows=len(content["texts"]), characters=(round(quarter), round(three_quarters)))


def _cache_path(recipe: Recipe, package: Package, options: DocstringOptions, folders: Folders) -> Path:
    return folders.cache / "docstrings" / f"{recipe.task}-{_cache_key(package, options)}.json"


def locate(recipe: Recipe) -> Package:
    """Find a package without importing it.

    Parameters
    ----------
    recipe
        Package and classes of the task.

    Raises
    ------
    DataError
        If the package is not installed.
    """
    if not recipe.package:
        return Package(Path(os.__file__).parent, _python_version())
    spec = find_spec(recipe.package)
    if spec is None or spec.origin is None:
        raise DataError(
            f"docstrings.{recipe.task}: {recipe.title} is not installed, but its docstrings are the data; "
            f"`pip install {recipe.distribution}`, or remove the task from the spec"
        )
    try:
        return Package(Path(spec.origin).parent, _version(recipe.distribution))
    except metadata.PackageNotFoundError as error:
        raise DataError(
            f"docstrings.{recipe.task}: {spec.origin} belongs to no installed distribution, so its version is unknown; "
            f"`pip install {recipe.distribution}`"
        ) from error


def _version(distribution: str) -> str:
    """Return the version; faster than `importlib.metadata.version`, which parses all metadata."""
    text = metadata.distribution(distribution).read_text("METADATA") or ""
    line = re.search(r"^Version: *(\S+)", text, re.MULTILINE)
    return line[1] if line else metadata.version(distribution)


def _extract_content(recipe: Recipe, package: Package, options: DocstringOptions) -> dict[str, Any]:
    """Return the rows, their hash and their origin as JSON values."""
    rows = extract(recipe, package.root, options)
    return {
        "texts": rows.texts,
        "labels": rows.labels,
        "fingerprint": hash_rows(rows.texts, rows.labels, tuple(recipe.classes)),
        "details": {
            "package": recipe.title,
            "version": package.version,
            "python": _python_version(),
            "dropped": {
                "too short": rows.too_short,
                "duplicate": rows.duplicates,
                "in several classes": rows.in_several_classes,
            },
        },
    }


def _cache_key(package: Package, options: DocstringOptions) -> str:
    """Return a hash of everything that determines the rows, including the code of this plugin and of near copies."""
    digest = hashlib.sha256(json.dumps([package.version, sys.version, options.model_dump()]).encode())
    near_copies = find_spec("peekbench.data.texts")
    assert near_copies is not None
    for module in (*sorted(Path(__file__).parent.glob("*.py")), Path(str(near_copies.origin))):
        digest.update(module.read_bytes())
    return digest.hexdigest()[:16]


def _python_version() -> str:
    return ".".join(map(str, sys.version_info[:3]))
