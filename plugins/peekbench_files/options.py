"""What a spec says about a file; checked without opening it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, TypeAlias

from pydantic import BeforeValidator, Field, field_validator, model_validator

from peekbench import Options
from peekbench_files.labels import label_key

Format: TypeAlias = Literal["csv", "tsv", "jsonl", "parquet"]
SUFFIXES: Mapping[str, Format] = {
    ".csv": "csv",
    ".tsv": "tsv",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".parquet": "parquet",
    ".pq": "parquet",
}
ONE_CHARACTER = r"^[^\r\n\x00]?$"


def _as_tuple(value: Any) -> Any:
    return (value,) if isinstance(value, str) else value


def _read_class_names(value: Any) -> Any:
    if value is None:
        return None
    if isinstance(value, Mapping):
        names = list(value.values())
        keys = [label_key(key) for key in value]
        if None in keys:
            raise ValueError(f"the label {list(value)[keys.index(None)]!r} is neither text nor a whole number")
        if len(set(keys)) < len(keys):
            raise ValueError(f"two of the labels {list(value)} are the same; remove one")
    elif isinstance(value, list | tuple):
        names = list(value)
        if len({str(name) for name in names}) < len(names):
            raise ValueError(f"{names} has a name twice; remove one")
    else:
        raise ValueError("give a list of names, or a mapping from labels to names")
    for name in names:
        if not isinstance(name, str) or not name.strip():
            raise ValueError(f"{name!r} is no name; put the names in quotes")
    if len(set(names)) < 2:
        raise ValueError(f"{names} makes fewer than two classes; name two or more")
    return dict(zip(keys, names, strict=True)) if isinstance(value, Mapping) else tuple(names)


class FileOptions(Options):
    """Which file, which columns, which classes."""

    path: Path
    """The file; a relative path starts at the spec's folder."""
    text: Annotated[tuple[str, ...], BeforeValidator(_as_tuple), Field(min_length=1)] = ("text",)
    """Column that holds the text, or several, which are joined."""
    label: str = "label"
    """Column that holds the label: text, or a whole number."""
    class_names: Annotated[tuple[str, ...] | dict[str, str] | None, BeforeValidator(_read_class_names)] = None
    """Names of the classes. A list: labels are these names, or 0, 1, ... for the first, second, ... of them. A mapping:
    from label to name, where labels of one name are one class. Left out: the labels that occur, sorted."""
    instruction: str = ""
    """One or two sentences for methods that prompt: what a text is, and what to answer."""
    format: Format | None = None
    """By default what the path ends with: .csv, .tsv, .jsonl or .ndjson, .parquet or .pq."""
    encoding: str = "utf-8"
    """Of CSV, TSV and JSON Lines. A byte order mark is skipped."""
    delimiter: str = Field(default="", pattern=ONE_CHARACTER)
    """Between the fields of CSV and TSV; by default a comma and a tab."""
    quote: str = Field(default='"', pattern=ONE_CHARACTER)
    """Around fields of CSV and TSV that hold delimiters; empty where quotation marks are just characters."""
    joined_by: str = "\n"
    """Between the texts of several columns."""
    drop_missing: bool = False
    """Leave out rows without a text or a label, which are an error otherwise."""
    drop_duplicates: Literal["none", "exact", "near"] = "none"
    """Keep the first of rows with the same text (exact) or nearly the same (near), none where their labels differ."""

    @field_validator("encoding")
    @classmethod
    def _known_encoding(cls, encoding: str) -> str:
        try:
            "".encode(encoding)
        except (LookupError, ValueError) as error:
            raise ValueError(f"no encoding {encoding!r}; common ones are utf-8, utf-16, latin-1, cp1252") from error
        return encoding

    @model_validator(mode="after")
    def _fits_together(self) -> FileOptions:
        if self.format is None and self.path.suffix.lower() not in SUFFIXES:
            raise ValueError(
                f"cannot tell the format of {str(self.path)!r} by its ending; add `format:` csv, tsv, jsonl or parquet"
            )
        columns = [*self.text, self.label]
        if len(set(columns)) < len(columns):
            raise ValueError(f"text and label name the columns {columns}, one of them twice; each must be another")
        if self.delimiter and self.delimiter == self.quote:
            raise ValueError(f"delimiter and quote are both {self.quote!r}; change one")
        return self

    def file_format(self) -> Format:
        return self.format or SUFFIXES[self.path.suffix.lower()]
