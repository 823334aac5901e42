"""Tasks and their rows: what data sources return and methods receive."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    IntArray: TypeAlias = NDArray[np.int64]
    FloatArray: TypeAlias = NDArray[np.floating[Any]]
    Inputs: TypeAlias = Sequence[str] | FloatArray
    """Texts, or rows of features of shape (n, n_features)."""
else:  # plugins import these names at run time, where annotations are not evaluated
    IntArray = FloatArray = Inputs = Any


TaskKind: TypeAlias = Literal["classification", "regression"]


@dataclass(frozen=True, slots=True)
class Folders:
    """Where a plugin may look for files and keep some."""

    spec: Path
    """Folder that relative paths in options start from: the spec file's own."""
    cache: Path
    """Folder for whatever is dear to compute and safe to delete."""


@dataclass(frozen=True, slots=True)
class SourceRef:
    """How a task's data are loaded: the entry in the data source plugin, and its options as the spec has them."""

    use: str
    options: Mapping[str, Any] = field(default_factory=dict)
    folder: Path = Path()


@dataclass(frozen=True, slots=True)
class Task:
    """What a method is told about the task at hand."""

    name: str
    """As in the spec and in every table."""
    kind: TaskKind
    class_names: tuple[str, ...]
    """In the order of the labels 0, 1, ...; empty for regression."""
    instruction: str
    """One or two sentences for prompts: what a text is and what to answer; may be empty."""
    source: SourceRef
    """Hand it to `peekbench.load_dataset` to load the task's data again, as somebody who has seen them would."""

    @property
    def num_classes(self) -> int:
        return len(self.class_names)


@dataclass(frozen=True, slots=True)
class Dataset:
    """All labeled rows of a task, from which train, extra and test are drawn."""

    inputs: Inputs
    """Texts, length n, or features of shape (n, n_features). Any sequence will do, a memory-mapped one too."""
    labels: Sequence[int] | IntArray | FloatArray
    """Shape (n,): class indices 0..C-1, or a regression's targets."""
    class_names: tuple[str, ...] = ()
    kind: TaskKind = "classification"
    instruction: str = ""
    fingerprint: str = ""
    """Identifies the content; where it is empty, the core hashes inputs and labels."""
    details: Mapping[str, Any] = field(default_factory=dict)
    """Whatever a reader of the run should know, JSON-serializable. Reports show `dropped`, rows left out by reason,
    and `version`, or else `revision`, a commit."""


@dataclass(frozen=True, slots=True)
class TaskFacts:
    """What there is to say of a task without loading it; None or empty where it is not known."""

    num_classes: int | None = None
    num_rows: int | None = None
    characters: tuple[int, int] | None = None
    """25th and 75th percentile of the texts' lengths."""
    license: str = ""
    class_names: tuple[str, ...] = ()
    instruction: str = ""
    details: Mapping[str, Any] = field(default_factory=dict)
    """What else is shown of a task that cannot be loaded here, as `Dataset.details`."""


@dataclass(frozen=True, slots=True)
class TokenCounts:
    """How long texts are for a method."""

    counts: Sequence[int]
    """Tokens of each text, before any are cut off."""
    limit: int | None = None
    """Tokens that the method can see; those behind are cut off."""


@dataclass(frozen=True, slots=True)
class Labeled:
    """Inputs with their labels, of equal length."""

    inputs: Inputs
    labels: IntArray | FloatArray
