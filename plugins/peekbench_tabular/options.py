"""Options of `tabular.file`; checking them does not open a file."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, TypeAlias

from pydantic import BeforeValidator, field_validator, model_validator

from peekbench import Options
from peekbench.data.text_files import suffix_of
from peekbench.identity import key_of

SUFFIXES = (".csv", ".tsv", ".parquet", ".pq")


def _as_tuple(value: Any) -> Any:
    return (value,) if isinstance(value, str) else value


def _as_class_names(value: Any) -> Any:
    """Return names as a tuple of texts, or as a mapping whose keys are those of labels."""
    if isinstance(value, Mapping):
        return {key_of(key) or "": name for key, name in value.items()}
    return value


Names: TypeAlias = Annotated[tuple[str, ...], BeforeValidator(_as_tuple)]


class FileOptions(Options):
    """Which columns of a table are the label and the features, and how categories become features."""

    path: Path
    """Path of the file, whose suffix is .csv, .tsv, .parquet or .pq, also before .gz, .bz2 or .xz. A relative path
    starts at the spec's folder."""
    test_path: Path | None = None
    """Path of the file of the official test split, with the same columns and format. Train rows are then drawn from the
    file at `path`, extra and test rows from this file."""
    label: str = "label"
    """Column of the class or the target."""
    kind: Literal["classification", "regression"] = "classification"
    """Whether the label is a class, or a number to predict."""
    group: str | None = None
    """Column of the group, such as a patient or author; it is no feature. Rows of a group never stand in two sets."""
    drop_shared_groups: bool = False
    """With official splits, drop the train rows of groups that are in the test split; by default they are an error."""
    drop: Names = ()
    """Columns that are no features, such as identifiers, dates and free text. All others are, except the label."""
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
    encoding: str = ""
    """Encoding of text files. Default: UTF-16 if the file begins with its mark, otherwise UTF-8."""

    @field_validator("missing", mode="before")
    @classmethod
    def _numbers_as_texts(cls, value: Any) -> Any:
        if isinstance(value, list | tuple):
            return [str(sign) for sign in value]
        return str(value)

    @model_validator(mode="after")
    def _check_columns_and_files(self) -> FileOptions:
        named = [self.label, *filter(None, [self.group]), *self.drop, *self.categorical]
        for name in named:
            if named.count(name) > 1:
                raise ValueError(f"{name!r} is named twice in `label`, `group`, `drop` and `categorical`; name it once")
        if self.drop_shared_groups and (self.group is None or self.test_path is None):
            raise ValueError("drop_shared_groups needs the column `group` and a test split at `test_path`; give both")
        if self.kind == "regression" and self.class_names is not None:
            raise ValueError("a regression has no classes; remove class_names")
        for path in filter(None, (self.path, self.test_path)):
            if suffix_of(path) not in SUFFIXES:
                raise ValueError(f"unknown file format of {str(path)!r}; give a CSV, TSV or Parquet file")
        return self
