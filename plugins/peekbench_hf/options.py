"""Options of tasks on the Hub; checking them loads no data."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, Self, TypeAlias

from pydantic import BeforeValidator, Field, model_validator

from peekbench import Options
from peekbench.identity import key_of
from peekbench_hf.definition import CONVERSION, HubFiles, HubTask, Location

DropDuplicates: TypeAlias = Literal["none", "exact", "near"]
FORMATS = (".parquet", ".jsonl", ".json", ".csv", ".arrow")


class HubOptions(Options):
    """Which copy of a task's data to load, and which of its rows."""

    revision: str = ""
    """Full SHA of the dataset's commit, or a branch. Default: the commit in the task's definition, or else the newest
    commit at the time when the task was first loaded on this machine."""
    data_dir: Path | None = None
    """Folder of a local mirror, with files at datasets/NAMESPACE/NAME/BRANCH/ (slashes in BRANCH are written as @).
    Relative paths start at the spec's folder. Default: $PEEKBENCH_HUB_MIRROR, or else the Hub."""
    splits: Literal["pooled", "official"] = "pooled"
    """pooled: train, extra and test texts are drawn from the same rows, those of the train split. official: train texts
    are drawn from the dataset's train split, extra and test texts from its split `test_split`."""
    test_split: str = Field(default="test", pattern=r"^[\w.-]+$")
    """Name of the split that extra and test texts are drawn from with official splits, such as validation."""
    drop_duplicates: DropDuplicates = "none"
    """Keep only the first of several rows with the same text (exact) or nearly the same text (near); if their labels
    differ, drop all of them."""

    def task(self) -> HubTask:
        """Return the definition of the task that these options describe."""
        raise NotImplementedError

    @model_validator(mode="after")
    def _check_test_split(self) -> Self:
        if self.splits == "pooled" and self.test_split != "test":
            raise ValueError(f"test_split is {self.test_split!r}, but splits are pooled; set splits to official")
        return self


def _as_tuple(value: Any) -> Any:
    return (value,) if isinstance(value, str) else value


def _as_texts(value: Any) -> Any:
    """Return class names, and the labels of a mapping, as texts."""
    if isinstance(value, list | tuple):
        if len(set(map(str, value))) < len(value):
            raise ValueError(f"{list(value)} contains a duplicate name; remove it")
        return tuple(map(str, value))
    if isinstance(value, Mapping):
        return {str(label).lower() if isinstance(label, bool) else str(label): name for label, name in value.items()}
    return value


ClassNames: TypeAlias = Annotated[tuple[str, ...] | dict[str, str] | None, BeforeValidator(_as_texts)]


class HubTaskOptions(HubOptions):
    """Options of the tasks whose columns and classes are known."""

    instruction: str | None = None
    """One or two sentences for methods that prompt: what a text is, and what to answer. Default: that of `prompts`, or
    else our own."""
    class_names: ClassNames = None
    """Names for prompts and reports instead of the default ones: a list in their order, or a mapping from default names
    to names, which may leave classes out. Default: those of `prompts`, or else our own."""
    prompts: Path | None = None
    """YAML file with `instruction` and `class_names` of several tasks, by name. Relative paths start at the spec's
    folder."""


class HubDatasetOptions(HubOptions):
    """Options of `hf.dataset`, which loads any dataset of the Hub."""

    id: str = Field(pattern=r"^[\w.-]+/[\w.-]+$")
    """Id of the dataset, NAMESPACE/NAME."""
    config: str = "default"
    """Configuration of the dataset."""
    split: str = "train"
    """Split of the dataset; with official splits, the one that train texts are drawn from."""
    text: Annotated[tuple[str, ...], BeforeValidator(_as_tuple), Field(min_length=1)] = ("text",)
    """Column of the text, or several columns, which are joined with a line break."""
    label: str = "label"
    """Column of the label, which contains strings, integers or booleans; or lists of them, if texts have any number of
    labels. A list of `class_names` then selects labels."""
    kind: Literal["generation"] | None = None
    """generation: texts are prompts, and the column `label` has the reference of the answer, or a list of several of
    which the best grade counts. Default: classes or labels."""
    group: str = ""
    """Column of the group, such as an author or a conversation, which contains strings or integers. Rows of a group
    never stand in two sets."""
    drop_shared_groups: bool = False
    """With official splits, drop the train rows of groups that are in the test split; by default they are an error."""
    class_names: ClassNames = None
    """A list of labels in order, or a mapping from labels to names. Default: the dataset's own names, or else the
    labels that occur, sorted. The labels of a ClassLabel are its names."""
    instruction: str = ""
    """One or two sentences for methods that prompt: what a text is, and what to answer."""
    drop_missing: bool = False
    """Drop rows without a text, a label or a group; by default they are an error."""

    @model_validator(mode="after")
    def _check_columns_and_files(self) -> HubDatasetOptions:
        columns = [*self.text, self.label, self.group]
        if len(set(columns)) < len(columns):
            raise ValueError(f"text, label and group contain a duplicate column, {columns}; name each column once")
        if self.kind == "generation" and self.class_names is not None:
            raise ValueError("kind is generation, which has no classes; remove class_names")
        if self.drop_shared_groups and not self.group:
            raise ValueError("drop_shared_groups is True, but there are no groups; name their column as `group`")
        if self.drop_shared_groups and self.splits == "pooled":
            raise ValueError("drop_shared_groups is True, but splits are pooled; set splits to official, or remove it")
        if self.splits == "official" and self.split == self.test_split:
            raise ValueError(f"split and test_split are both {self.split!r}; name two splits, or set splits to pooled")
        return self

    def locations(self) -> tuple[Location, ...]:
        """Return the possible locations of the splits, in order of preference."""
        copy, test_copy = (f"{self.config}/{split}/*.parquet" for split in (self.split, self.test_split))
        files, test_files = (self._file_patterns(split) for split in (self.split, self.test_split))
        return (
            HubFiles(self.id, copy, CONVERSION, test_files=test_copy),
            HubFiles(self.id, files, test_files=test_files),
        )

    def _file_patterns(self, split: str) -> str:
        """Return the patterns of files that are named after a split."""
        folders = ("data/", "") if self.config == "default" else (f"{self.config}/",)
        return " | ".join(
            f"{folder}{split}{rest}{suffix}" for folder in folders for rest in ("-*", "") for suffix in FORMATS
        )

    def task(self) -> HubTask:
        """Return the definition of the task that these options describe."""
        classes = self.class_names
        is_list = isinstance(classes, tuple)
        if isinstance(classes, tuple):
            classes = {name: name for name in classes}
        if classes is not None:
            classes = {key_of(label) or "": name for label, name in classes.items()}
        return HubTask(
            name="dataset",
            locations=self.locations(),
            text=self.text,
            label=self.label,
            classes=classes,
            is_in_order=is_list,
            is_generation=self.kind == "generation",
            instruction=self.instruction,
            drop_missing=self.drop_missing,
            group=self.group,
            drop_shared_groups=self.drop_shared_groups,
        )
