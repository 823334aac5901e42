"""What a spec says about a task of the Hub; checked without loading anything."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, TypeAlias

from pydantic import BeforeValidator, Field, model_validator

from peekbench import Options
from peekbench_hf.definition import CONVERSION, HubFiles, HubTask, Place

FORMATS = (".parquet", ".jsonl", ".json", ".csv", ".arrow")


class HubOptions(Options):
    """Which copy of a task's data, and which of its rows."""

    revision: str = ""
    """Full SHA of the dataset's commit, or a branch. By default the recorded commit, or else the one that was the
    newest when the task was first loaded on this machine."""
    data_dir: Path | None = None
    """Folder of a local mirror with files at datasets/NAMESPACE/NAME/BRANCH/, slashes in BRANCH written @; a relative
    path starts at the spec's folder. By default $PEEKBENCH_HUB_MIRROR, or else the Hub."""
    drop_duplicates: Literal["none", "exact", "near"] = "none"
    """Keep the first of rows with the same text (exact) or nearly the same (near), none where their labels differ."""


def _as_tuple(value: Any) -> Any:
    return (value,) if isinstance(value, str) else value


def _as_mapping(value: Any) -> Any:
    """Class names as a mapping from labels; a list names the labels themselves."""
    if isinstance(value, list | tuple):
        if len(set(map(str, value))) < len(value):
            raise ValueError(f"{list(value)} has a name twice; remove one")
        return {str(name): str(name) for name in value}
    if isinstance(value, Mapping):
        return {str(label).lower() if isinstance(label, bool) else str(label): name for label, name in value.items()}
    return value


ClassNames: TypeAlias = Annotated[dict[str, str] | None, BeforeValidator(_as_mapping)]


class HubDatasetOptions(HubOptions):
    """Any text classification dataset of the Hub."""

    id: str = Field(pattern=r"^[\w.-]+/[\w.-]+$")
    """The dataset, NAMESPACE/NAME."""
    config: str = "default"
    split: str = "train"
    text: Annotated[tuple[str, ...], BeforeValidator(_as_tuple), Field(min_length=1)] = ("text",)
    """Column of the text, or several, which are joined by a line break."""
    label: str = "label"
    """Column of the label: a text, a whole number, or true and false."""
    class_names: ClassNames = None
    """A list of the labels in order, or a mapping from labels to names; by default the dataset's own names, or else the
    labels that occur, sorted. For a ClassLabel, the labels are its names."""
    instruction: str = ""
    """One or two sentences for methods that prompt: what a text is, and what to answer."""
    files: str = ""
    """Glob of the split's files in the repository; by default those that the Hub's Parquet copy has, or else those
    that are named for the split."""
    max_characters: int | None = Field(default=None, ge=1)
    """Leave out longer texts."""
    drop_missing: bool = False
    """Leave out rows without a text or a label, which are an error otherwise."""

    @model_validator(mode="after")
    def _fits_together(self) -> HubDatasetOptions:
        columns = [*self.text, self.label]
        if len(set(columns)) < len(columns):
            raise ValueError(f"text and label name the columns {columns}, one of them twice; each must be another")
        if self.files and not self.files.endswith(FORMATS):
            raise ValueError(f"files: {self.files!r} must end with one of {', '.join(FORMATS)}")
        return self

    def places(self) -> tuple[Place, ...]:
        """Where the split may be."""
        if self.files:
            return (HubFiles(self.id, self.files),)
        folders = ("data/", "") if self.config == "default" else (f"{self.config}/",)
        by_name = (
            f"{folder}{self.split}{rest}{suffix}" for folder in folders for rest in ("-*", "") for suffix in FORMATS
        )
        return (
            HubFiles(self.id, f"{self.config}/{self.split}/*.parquet", CONVERSION),
            HubFiles(self.id, " | ".join(by_name)),
        )

    def task(self) -> HubTask:
        return HubTask(
            name="dataset",
            places=self.places(),
            text=self.text,
            label=self.label,
            classes=self.class_names,
            instruction=self.instruction,
            max_characters=self.max_characters,
            drop_missing=self.drop_missing,
        )
