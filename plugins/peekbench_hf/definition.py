"""Definition of a task on the Hub: its files, its columns and the meaning of its labels."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import PurePosixPath
from typing import TypeAlias

from peekbench import Folders
from peekbench.records import TaskFacts

CONVERSION = "refs/convert/parquet"
"""Branch with the Hub's own Parquet copy of a dataset; its files are named CONFIG/SPLIT/NNNN.parquet."""
TRAIN = re.compile(r"(?<![a-z])train(?![a-z])")
"""The name of the train split in the names of files."""


@dataclass(frozen=True, slots=True)
class HubFiles:
    """Files of a dataset repository that together contain one split."""

    repository: str
    files: str
    """Glob pattern relative to the repository's root, in which `*` does not match slashes. If there are several
    patterns, separated by ` | `, the first one that matches a file is used."""
    branch: str = "main"
    revision: str = ""
    """Full SHA of the commit. If empty, the newest commit of the branch is looked up once."""
    label: str = ""
    """Name of the label column in these files, if it differs from that of the task."""
    test_files: str = ""
    """Patterns of the files of the test split. Default: `files` with `train` replaced by the name of the split."""

    def test_split(self, name: str) -> HubFiles | None:
        """Return the location of the official test split; None if its files have no known names."""
        files = self.test_files or TRAIN.sub(name, self.files)
        return None if files == self.files else replace(self, files=files, test_files="")

    def __str__(self) -> str:
        """Return the location as shown in messages."""
        return f"{self.first_pattern} in the dataset repository {self.repository}, branch {self.branch}"

    @property
    def first_pattern(self) -> str:
        """The first of the patterns, for messages; there can be many."""
        first, *others = self.files.split(" | ")
        return f"{first} or similar" if others else first

    def choose(self, paths: Iterable[str]) -> tuple[str, ...]:
        """Return the matching files, sorted.

        Parameters
        ----------
        paths
            Paths of all files of the repository, relative to its root.
        """
        paths = sorted(paths)
        for pattern in self.files.split(" | "):
            if chosen := tuple(path for path in paths if _matches(path, pattern)):
                return chosen
        return ()


@dataclass(frozen=True, slots=True)
class WebFile:
    """A single file on the web, for data that is no longer on the Hub."""

    url: str
    label: str = ""
    """Name of the label column in this file, if it differs from that of the task."""

    def test_split(self, name: str) -> WebFile | None:
        """Return the location of the official test split; None if the file's name does not contain `train`."""
        folder, _, file = self.url.rpartition("/")
        test_file = TRAIN.sub(name, file)
        return None if test_file == file else replace(self, url=f"{folder}/{test_file}")

    def __str__(self) -> str:
        """Return the location as shown in messages."""
        return self.url


Location: TypeAlias = HubFiles | WebFile


def _matches(path: str, pattern: str) -> bool:
    return path.count("/") == pattern.count("/") and PurePosixPath(path).match(pattern)


@dataclass(frozen=True, slots=True, kw_only=True)
class HubTask:
    """A text classification task."""

    name: str
    locations: tuple[Location, ...]
    """Locations of the rows, in order of preference; the next one is used if a location no longer exists."""
    text: tuple[str, ...]
    """Column of the text, or several columns, which are joined with a line break."""
    label: str
    """Column of the label."""
    classes: Mapping[str, str] | None
    """Class name of each label, in the order of the labels 0, 1, and so on. Keys are labels as in the file: names of a
    ClassLabel, strings or numbers. None uses the names of the ClassLabel, or else the labels that occur, sorted."""
    instruction: str
    """Sentences for prompts: what a text is, and what to answer."""
    num_rows: int | None = None
    """Number of rows of the split before any are dropped; None if unknown."""
    max_characters: int | None = None
    """Texts with more characters are dropped."""
    is_in_order: bool = True
    """Whether the labels 0, 1, and so on can stand for the keys of `classes` in their order."""
    is_generation: bool = False
    """Whether texts are prompts, and labels the references of answers."""
    drop_missing: bool = False
    """Drop rows without a text, a label or a group; by default they are an error."""
    group: str = ""
    """Column of the groups of rows; empty if every row is a group of its own."""
    drop_shared_groups: bool = False
    """Drop the train rows of groups that are in the official test split; by default they are an error."""
    license: str = "see its card"
    """License according to the dataset's card on the Hub."""
    citation: str = ""
    """Key in `references.bib`."""
    note: str = ""
    """What users should know about the data."""


def task_facts(folders: Folders, task: HubTask) -> TaskFacts:
    """Return facts from the task's definition.

    Parameters
    ----------
    folders
        Not used.
    task
        Definition of the task.
    """
    classes = tuple((task.classes or {}).values())
    return TaskFacts(
        num_classes=len(classes) or None,
        num_rows=task.num_rows,
        license=task.license,
        class_names=classes,
        instruction=task.instruction,
        details={"from": " or ".join(map(str, task.locations)), "citation": task.citation, "note": task.note},
    )
