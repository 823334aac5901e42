"""Options of the data source `files`; checking them does not open the file."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, TypeAlias

from pydantic import BeforeValidator, Field, field_validator, model_validator

from peekbench import Options
from peekbench.data.text_files import suffix_of
from peekbench.identity import key_of

Format: TypeAlias = Literal["csv", "tsv", "json", "parquet", "saved"]
SUFFIXES: Mapping[str, Format] = {
    "": "saved",
    ".csv": "csv",
    ".tsv": "tsv",
    ".json": "json",
    ".jsonl": "json",
    ".ndjson": "json",
    ".parquet": "parquet",
    ".pq": "parquet",
}


def _as_tuple(value: Any) -> Any:
    return (value,) if isinstance(value, str) else value


def _as_columns(value: Any) -> Any:
    """Return several columns of labels as a tuple; a list of one column is that column."""
    if isinstance(value, list | tuple):
        return value[0] if len(value) == 1 else tuple(value)
    return value


def _check_class_names(value: Any) -> Any:
    """Return class names as a tuple, or as a mapping whose keys `key_of` has converted."""
    if value is None:
        return None
    if isinstance(value, Mapping):
        names = list(value.values())
        keys = [key_of(key) for key in value]
        if None in keys:
            raise ValueError(
                f"the label {list(value)[keys.index(None)]!r} is neither text nor an integer; write it as one of them"
            )
        if len(set(keys)) < len(keys):
            raise ValueError(f"two of the labels {list(value)} are the same; remove one")
    elif isinstance(value, list | tuple):
        names = list(value)
        if len({str(name) for name in names}) < len(names):
            raise ValueError(f"{names} contains a duplicate name; remove it")
    else:
        raise ValueError("expected a list of names, or a mapping from labels to names")
    for name in names:
        if not isinstance(name, str) or not name.strip():
            raise ValueError(f"{name!r} is not a valid class name; put names in quotes")
    if len(set(names)) < 2:
        raise ValueError(f"{names} has fewer than two classes; name two or more")
    return dict(zip(keys, names, strict=True)) if isinstance(value, Mapping) else tuple(names)


class FileOptions(Options):
    """Which file, columns and classes to load."""

    path: Path
    """Path of the file, whose suffix is .csv, .tsv, .json, .jsonl, .ndjson, .parquet or .pq, also before .gz, .bz2 or
    .xz; or of a folder to which `save_to_disk` of the library `datasets` wrote a data set. If that is a `DatasetDict`,
    its splits `train` and `test_split` are kept. A relative path starts at the spec's folder."""
    test_path: Path | None = None
    """Path of the file of the official test split, with the same columns and format. Train texts are then drawn from
    the file at `path`, extra and test texts from this file."""
    extra_path: Path | None = None
    """Path of a file of private texts from the same source, whose labels are not read; texts of groups that are in the
    official splits are refused. With folds, they take the place of the fold that a fit does not adapt to, so that all
    fits adapt to as many texts as the test split has."""
    test_split: str = "test"
    """Split of a `DatasetDict` that extra and test texts are drawn from, such as validation."""
    text: Annotated[tuple[str, ...], BeforeValidator(_as_tuple), Field(min_length=1)] = ("text",)
    """Column of the text, or several columns, which are joined by line breaks."""
    label: Annotated[str | tuple[str, ...] | None, BeforeValidator(_as_columns)] = "label"
    """Column of the label, which contains text or integers. If texts have any number of labels, a column of lists (of
    JSON Lines or Parquet), a column that `label_separator` divides, or several columns that contain 0 or 1 for the
    label of their name. Null for texts without labels, for language modeling."""
    kind: Literal["generation"] | None = None
    """generation: texts are prompts, and the column `label` has the reference of the answer, a text or a number, or a
    list of several of which the best grade counts. Default: classes or labels, as the column has them."""
    label_separator: str = ""
    """String between the labels of a text in one column, such as `|`; an empty cell is a text without labels."""
    class_names: Annotated[tuple[str, ...] | dict[str, str] | None, BeforeValidator(_check_class_names)] = None
    """Names of the classes. A list: labels are these names, or 0, 1, ... for the first, second, ... name. A mapping
    from labels to names: labels with the same name form one class. Default: those of a `ClassLabel`, or the labels that
    occur, sorted. If texts have any number of labels, a list selects labels, and leaves out the others."""
    group: str | None = None
    """Column of the group, such as a patient, author or conversation, in text or integers. Rows of a group never stand
    in two sets."""
    drop_shared_groups: bool = False
    """With official splits, drop the train rows of groups that are in the test split; by default they are an error."""
    instruction: str = ""
    """One or two sentences for methods that prompt: what a text is, and what to answer."""
    encoding: str = ""
    """Encoding of CSV, TSV and JSON. Default: UTF-16 if the file begins with its mark, otherwise UTF-8."""
    quote: Annotated[str, BeforeValidator(lambda value: "" if value is None else value)] = Field(
        default='"', pattern=r"^[^\r\n\x00]?$"
    )
    """Character around fields of CSV and TSV that contain delimiters; empty or null if quotation marks have no special
    meaning."""
    drop_missing: bool = False
    """Drop rows without a text, a label or a group; by default they are an error."""
    drop_duplicates: Literal["none", "exact", "near"] = "none"
    """Keep only the first of several rows with the same text (exact) or nearly the same text (near); if their labels
    differ, drop all of them."""

    @field_validator("encoding")
    @classmethod
    def _check_encoding(cls, encoding: str) -> str:
        try:
            "".encode(encoding or "utf-8")
        except (LookupError, ValueError) as error:
            raise ValueError(
                f"unknown encoding {encoding!r}; common encodings are utf-8, utf-16, latin-1 and cp1252"
            ) from error
        return encoding

    @model_validator(mode="after")
    def _check_together(self) -> FileOptions:
        for name in ("path", "test_path", "extra_path"):
            path = getattr(self, name)
            if path and suffix_of(path) not in SUFFIXES:
                raise ValueError(f"{name} is {str(path)!r}; give a CSV, TSV, JSON, JSON Lines or Parquet file")
            if path and suffix_of(path) != suffix_of(self.path):
                raise ValueError(f"path and {name} have different suffixes; convert one of the files")
        given = [path for path in (self.path, self.test_path, self.extra_path) if path is not None]
        if len(set(given)) < len(given):
            raise ValueError(f"two of path, test_path and extra_path are {str(given[-1])!r}; give different files")
        columns = self.columns()
        if len(set(columns)) < len(columns):
            names = "text and label" if self.group is None else "text, label and group"
            raise ValueError(f"{names} contain a duplicate column, {columns}; name each column once")
        if self.drop_shared_groups and self.group is None:
            raise ValueError("drop_shared_groups is True, but there are no groups; name their column as `group`")
        if self.drop_shared_groups and self.test_path is None:
            raise ValueError("drop_shared_groups is True, but there is no test split; give its file as `test_path`")
        if self.label == ():
            raise ValueError("label is empty; name one or more columns, or set it to null for texts without labels")
        if self.label_separator and not isinstance(self.label, str):
            raise ValueError("label_separator divides the labels in one column; name this column as `label`")
        if self.kind == "generation" and not (isinstance(self.label, str) and self.class_names is None):
            raise ValueError("kind is generation, so name one column of references as `label`, and no class_names")
        if self.kind == "generation" and self.label_separator:
            raise ValueError("kind is generation, so label_separator has no use; store several references as a list")
        if self.label is None and self.class_names is not None:
            raise ValueError("label is null, but class_names are given; remove class_names, or name the column")
        return self

    def columns(self) -> list[str]:
        """Return the names of the columns to read: those of the text, then those of label and group, if any."""
        labels = [self.label] if isinstance(self.label, str) else self.label or ()
        return [*self.text, *labels, *([] if self.group is None else [self.group])]

    def file_format(self) -> Format:
        """Return the format of the files according to their suffix."""
        return SUFFIXES[suffix_of(self.path)]
