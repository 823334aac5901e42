"""Options of tables of numbers and categories; checking them does not open a file."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, TypeAlias

from pydantic import BeforeValidator, Field, field_validator, model_validator

from peekbench import Options
from peekbench.data.text_files import suffix_of
from peekbench.identity import key_of

Format: TypeAlias = Literal["csv", "tsv", "parquet"]
SUFFIXES: Mapping[str, Format] = {
    ".csv": "csv",
    ".tsv": "tsv",
    ".parquet": "parquet",
    ".pq": "parquet",
}


def _as_tuple(value: Any) -> Any:
    return (value,) if isinstance(value, str) else value


def _as_class_names(value: Any) -> Any:
    """Return names as a tuple of texts, or as a mapping whose keys are those of labels."""
    if isinstance(value, Mapping):
        return {key_of(key) or "": name for key, name in value.items()}
    return value


Names: TypeAlias = Annotated[tuple[str, ...], BeforeValidator(_as_tuple)]


class TableOptions(Options):
    """Which columns of a table are the label and the features, and how categories become features."""

    label: str | None = None
    """Column of the class or the target."""
    kind: Literal["classification", "regression"] = "classification"
    """Whether the label is a class, or a number to predict."""
    columns: Names = ()
    """Columns of the features. Default: all except the label and `drop`."""
    group: str | None = None
    """Column of the group, such as a patient or author; it is no feature. Rows of a group never stand in two sets."""
    drop_shared_groups: bool = False
    """With official splits, drop the train rows of groups that are in the test split; by default they are an error."""
    drop: Names = ()
    """Columns that are no features, such as identifiers, dates and free text."""
    categorical: Names = ()
    """Columns of numbers that are codes of categories, such as postcodes."""
    encode: Literal["one-hot", "ordinal", "none"] = "one-hot"
    """How categories become features. one-hot: a column of 0 and 1 for each category, all 0 for a missing one. ordinal:
    its position among the column's categories, NaN for a missing one. none: rows stay a data frame with columns of the
    type `category`, for estimators of scikit-learn that begin with an encoder."""
    missing: Names = ()
    """Further signs of a missing value, such as -999, which stands for -999.0 as well. Known are an empty cell, `?` and
    what pandas reads as missing."""
    class_names: Annotated[tuple[str, ...] | dict[str, str] | None, BeforeValidator(_as_class_names)] = None
    """Names of the classes. A list: labels are these names, or 0, 1, ... for the first, second, ... name. A mapping
    from labels to names: labels with the same name form one class. Default: the labels that occur, sorted."""
    drop_missing: bool = False
    """Drop rows without a label or a group; by default they are an error. Missing features are always kept, as NaN."""

    @field_validator("missing", mode="before")
    @classmethod
    def _numbers_as_texts(cls, value: Any) -> Any:
        if isinstance(value, list | tuple):
            return [str(sign) for sign in value]
        return str(value)

    @model_validator(mode="after")
    def _check_columns(self) -> TableOptions:
        both = [name for name in self.drop if name in (*self.columns, *self.categorical)]
        if both:
            raise ValueError(f"{both[0]!r} is in `drop`, but also in `columns` or `categorical`; name it once")
        for role, name in (("label", self.label), ("group", self.group)):
            if name is not None and name in (*self.columns, *self.categorical, *self.drop):
                raise ValueError(f"the {role} {name!r} is also in `columns`, `categorical` or `drop`; name it once")
        if self.group is None and self.drop_shared_groups:
            raise ValueError("drop_shared_groups is True, but there are no groups; name their column as `group`")
        if self.kind == "regression" and self.class_names is not None:
            raise ValueError("a regression has no classes; remove class_names")
        return self


class FileOptions(TableOptions):
    """Options of `tabular.file`."""

    path: Path
    """Path of the file. A relative path starts at the spec's folder."""
    test_path: Path | None = None
    """Path of the file of the official test split, with the same columns and format. Train rows are then drawn from the
    file at `path`, extra and test rows from this file."""
    label: str | None = "label"
    """Column of the class or the target."""
    format: Format | None = None
    """Format of the file. Default: according to the suffix .csv, .tsv, .parquet or .pq, also before .gz, .bz2 or
    .xz."""
    encoding: str = ""
    """Encoding of text files. Default: UTF-16 if the file begins with its mark, otherwise UTF-8."""
    delimiter: str = Field(default="", max_length=1)
    """Character between the fields of CSV and TSV. Default: the comma, semicolon, tab or bar by which the first line
    contains the label."""
    decimal: Literal[".", ","] = "."
    """Decimal sign of numbers in CSV and TSV."""
    header: tuple[str, ...] | None = None
    """Names of all columns of a CSV or TSV file whose first line is a row."""

    @model_validator(mode="after")
    def _check_files(self) -> FileOptions:
        if self.label is None:
            raise ValueError("label is null; name the column to predict")
        if self.format is None and suffix_of(self.path) not in SUFFIXES:
            raise ValueError(f"unknown file format of {str(self.path)!r}; set `format` to csv, tsv or parquet")
        unused = [] if self.file_format() in ("csv", "tsv") else ["delimiter", "decimal", "header"]
        if self.file_format() == "parquet":
            unused.append("encoding")
        for option in unused:
            if getattr(self, option) != type(self).model_fields[option].default:
                raise ValueError(f"{option} has no meaning for a file in {self.file_format()}; remove it")
        if self.drop_shared_groups and self.test_path is None:
            raise ValueError("drop_shared_groups is True, but there is no test split; give its file as `test_path`")
        if self.test_path == self.path:
            raise ValueError(f"path and test_path are both {str(self.path)!r}; give two files, or remove test_path")
        return self

    def file_format(self) -> Format:
        """Return the file's format: the option `format`, or else that of the path's suffix."""
        return self.format or SUFFIXES[suffix_of(self.path)]
