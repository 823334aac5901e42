"""What a task of the Hub is: where its files are, which columns count, what its labels mean."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import TypeAlias

CONVERSION = "refs/convert/parquet"
"""Branch on which the Hub keeps its own Parquet copy of a dataset, as CONFIG/SPLIT/NNNN.parquet."""


@dataclass(frozen=True, slots=True)
class HubFiles:
    """Files of a dataset repository that together hold one split."""

    repository: str
    files: str
    """Glob from the repository's root, `*` does not cross folders; or several with ` | ` between them, of which the
    first counts that any file matches."""
    branch: str = "main"
    revision: str = ""
    """Full SHA of the commit, where it is known; else the branch's newest commit is looked up once."""
    label: str = ""
    """The label column, where it has another name here."""

    def __str__(self) -> str:
        return f"{self.files} in the dataset repository {self.repository}, branch {self.branch}"

    def choose(self, paths: Iterable[str]) -> tuple[str, ...]:
        """Those of the repository's files that are meant, sorted."""
        paths = sorted(paths)
        for pattern in self.files.split(" | "):
            if chosen := tuple(path for path in paths if _matches(path, pattern)):
                return chosen
        return ()


@dataclass(frozen=True, slots=True)
class WebFile:
    """One file at an address, for what the Hub has no longer."""

    address: str
    label: str = ""
    """The label column, where it has another name here."""

    def __str__(self) -> str:
        return self.address


Place: TypeAlias = HubFiles | WebFile


def _matches(path: str, pattern: str) -> bool:
    return path.count("/") == pattern.count("/") and PurePosixPath(path).match(pattern)


@dataclass(frozen=True, slots=True, kw_only=True)
class HubTask:
    """One text classification task, whole."""

    name: str
    places: tuple[Place, ...]
    """Where its rows are, the best first; a later one serves where an earlier one is gone."""
    text: tuple[str, ...]
    """Column of the text, or several, which are joined by a line break."""
    label: str
    classes: Mapping[str, str] | None
    """Label as the file has it (a ClassLabel's name, a text, a number) to class name, in the order of the labels 0, 1,
    ...; None: the ClassLabel's names, or else the labels that occur."""
    instruction: str
    """For prompts: what a text is, and what to answer."""
    num_rows: int | None = None
    """Of the split before any row is left out, where it is known."""
    max_characters: int | None = None
    """Longer texts are left out."""
    drop_missing: bool = False
    """Rows without a text or a label are left out; otherwise they are an error."""
    license: str = "see its card"
    """As the dataset's card on the Hub says, where that has been looked up."""
    citation: str = ""
    """Key in `references.bib`."""
    note: str = ""
    """What a user should know."""
