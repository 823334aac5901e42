"""The data source: finds the package, and takes its rows from the cache or makes them."""

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
from typing import TYPE_CHECKING, Any

from pydantic import Field, model_validator

from peekbench import DataError, Dataset, Folders, Options
from peekbench.cache import read_cached, write_cached
from peekbench.data import hash_rows
from peekbench.records import TaskFacts

if TYPE_CHECKING:
    from peekbench_docstrings.recipes import Recipe


class DocstringOptions(Options):
    """What is a text."""

    min_characters: int = Field(default=40, ge=1)
    """Shorter texts are left out."""
    max_characters: int = Field(default=400, ge=1)
    """Longer texts are cut after a word."""

    @model_validator(mode="after")
    def _room_between(self) -> DocstringOptions:
        if self.min_characters > self.max_characters:
            raise ValueError(
                f"min_characters {self.min_characters} is above max_characters {self.max_characters}; lower it"
            )
        return self


@dataclass(frozen=True, slots=True)
class Package:
    """Installed Python sources."""

    root: Path
    version: str


def load(*, options: DocstringOptions, folders: Folders, recipe: Recipe) -> Dataset:
    """Load one task, in milliseconds where the cache has it and in seconds where it is made.

    Raises
    ------
    DataError
        Where the package is not installed, or its sources are missing or damaged.
    """
    package = locate(recipe)
    path = _kept(recipe, package, options, folders)
    content = read_cached(path)
    if content is None:
        content = _make(recipe, package, options)
        write_cached(path, content)
    return Dataset(
        inputs=tuple(content["texts"]),
        labels=tuple(content["labels"]),
        class_names=tuple(recipe.classes),
        instruction=recipe.instruction,
        fingerprint=content["fingerprint"],
        details=content["details"],
    )


def facts(folders: Folders, recipe: Recipe) -> TaskFacts:
    """What there is to say without making the task."""
    from statistics import quantiles

    nothing = TaskFacts(num_classes=len(recipe.classes), license=recipe.license)
    try:
        content = read_cached(_kept(recipe, locate(recipe), DocstringOptions(), folders))
    except DataError:  # it is not installed
        return nothing
    if content is None:
        return nothing
    quarter, _, three_quarters = quantiles(map(len, content["texts"]), n=4, method="inclusive")
    return replace(nothing, num_rows=len(content["texts"]), characters=(round(quarter), round(three_quarters)))


def _kept(recipe: Recipe, package: Package, options: DocstringOptions, folders: Folders) -> Path:
    return folders.cache / "docstrings" / f"{recipe.task}-{_key(package, options)}.json"


def locate(recipe: Recipe) -> Package:
    """Find the package without importing it.

    Raises
    ------
    DataError
        Where it is not installed.
    """
    if not recipe.package:
        return Package(Path(os.__file__).parent, _python_version())
    spec = find_spec(recipe.package)
    if spec is None or spec.origin is None:
        raise DataError(
            f"docstrings.{recipe.task}: {recipe.title} is not installed, and its docstrings are the data; "
            f"`pip install {recipe.distribution}`, or take the task out of the spec"
        )
    try:
        return Package(Path(spec.origin).parent, _version(recipe.distribution))
    except metadata.PackageNotFoundError as error:
        raise DataError(
            f"docstrings.{recipe.task}: {spec.origin} belongs to no installed distribution, so its version is unknown; "
            f"`pip install {recipe.distribution}`"
        ) from error


def _version(distribution: str) -> str:
    """As `importlib.metadata.version`, which spends milliseconds on the rest of the metadata."""
    text = metadata.distribution(distribution).read_text("METADATA") or ""
    line = re.search(r"^Version: *(\S+)", text, re.MULTILINE)
    return line[1] if line else metadata.version(distribution)


def _make(recipe: Recipe, package: Package, options: DocstringOptions) -> dict[str, Any]:
    """Rows, their hash, and where they come from, as JSON values."""
    from peekbench_docstrings.extract import extract

    made = extract(recipe, package.root, options.min_characters, options.max_characters)
    return {
        "texts": made.texts,
        "labels": made.labels,
        "fingerprint": hash_rows(made.texts, made.labels, tuple(recipe.classes)),
        "details": {
            "package": recipe.title,
            "version": package.version,
            "python": _python_version(),
            "dropped": {
                "too short": made.too_short,
                "duplicate": made.duplicates,
                "in several classes": made.in_several_classes,
            },
        },
    }


def _key(package: Package, options: DocstringOptions) -> str:
    """Changes with whatever the rows depend on, this plugin's own code included."""
    digest = hashlib.sha256(json.dumps([package.version, sys.version, options.model_dump()]).encode())
    for module in sorted(Path(__file__).parent.glob("*.py")):
        digest.update(module.read_bytes())
    return digest.hexdigest()[:16]


def _python_version() -> str:
    return ".".join(map(str, sys.version_info[:3]))
