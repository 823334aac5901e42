"""Read ARFF, the format of Weka and OpenML, whose header declares the type and the categories of each column.

`scipy.io.arff` reads no texts, no escaped quotation marks, and missing categories as a category `?`.
Source: https://waikato.github.io/weka-wiki/formats_and_processing/arff_stable/
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from peekbench import DataError
from peekbench.formatting import pluralize
from peekbench_tabular.table import Column

ATTRIBUTE = re.compile(
    r"""@attribute\s+("(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'|[^\s{]+(?=[\s{]))\s*(\{.*\}|\S.*)""", re.IGNORECASE
)
NUMERIC = ("numeric", "real", "integer")
TEXT = ("string", "relational")
ESCAPED = re.compile(r"\\(.)")
# An unquoted field takes its spaces along, because two patterns that both match spaces would take quadratic time.
FIELD = re.compile(r"""\s*(?:"((?:[^"\\]|\\.)*)"\s*|'((?:[^'\\]|\\.)*)'\s*|([^\s,"'][^,]*|))(?:,|$)""")


def read_arff(lines: Iterable[str], place: str) -> list[Column]:
    r"""Read the columns of an ARFF file.

    Parameters
    ----------
    lines
        Lines of the file.
    place
        Name of the file, for messages.

    Raises
    ------
    DataError
        If it is not an ARFF file, is sparse, or a line cannot be divided into fields.

    Examples
    --------
    >>> lines = ["@relation pets", "@attribute kind {cat, 'big dog'}", "@attribute age real", "@data", "'big dog',?"]
    >>> kind, age = read_arff(lines, "pets.arff")
    >>> kind.values, kind.vocabulary, age.values
    (['big dog'], ('cat', 'big dog'), [None])
    """
    remaining = iter(lines)
    names: list[str] = []
    kinds: list[tuple[str, ...] | str] = []
    for line in remaining:
        text = line.strip()
        if text.lower().startswith("@data"):
            break
        if not text.lower().startswith("@attribute"):
            continue
        match = ATTRIBUTE.fullmatch(text)
        if match is None:
            raise DataError(f"{place}: cannot read {text[:100]!r}; write @ATTRIBUTE, a name and a type")
        names.append(_unquote(match[1]))
        kinds.append(_read_type(match[2].strip(), names[-1], place))
    if not names:
        raise DataError(f"{place} has no attributes, so it is not an ARFF file; give a CSV or Parquet file")
    rows = list(_read_rows(remaining, len(names), place))
    values = zip(*rows, strict=True) if rows else [()] * len(names)
    columns = []
    for name, of_column, kind in zip(names, values, kinds, strict=True):
        if isinstance(kind, tuple):
            columns.append(Column(name, list(of_column), kind))
        else:
            columns.append(Column(name, list(of_column), is_text=kind in TEXT))
    return columns


def _read_type(kind: str, name: str, place: str) -> tuple[str, ...] | str:
    """Return the categories of a nominal attribute, or the name of another type."""
    if kind.startswith("{") and kind.endswith("}"):
        return tuple(value or "" for value in _split(kind[1:-1], place))
    word = kind.split()[0].lower()
    if word not in (*NUMERIC, *TEXT, "date"):
        raise DataError(f"{place}: attribute {name!r} has the unknown type {kind[:50]!r}; use numeric or categories")
    return word


def _read_rows(lines: Iterator[str], num_columns: int, place: str) -> Iterator[list[str | None]]:
    number = 0
    for line in lines:
        text = line.strip()
        if not text or text.startswith("%"):
            continue
        number += 1
        if text.startswith("{"):
            raise DataError(f"{place}: its rows are sparse, such as {text[:40]!r}; save them as CSV")
        fields = _split(text, place)
        if len(fields) != num_columns:
            raise DataError(
                f"{place}, row {number}: {pluralize(len(fields), 'field')}, but the header has "
                f"{pluralize(num_columns, 'attribute')}; correct the row"
            )
        yield fields


def _split(text: str, place: str) -> list[str | None]:
    """Return the fields of a line; a question mark without quotes is None."""
    if "'" not in text and '"' not in text:  # much faster
        return [None if field.strip() == "?" else field.strip() for field in text.split(",")]
    found: list[str | None] = []
    position = 0
    while True:
        match = FIELD.match(text, position)
        if match is None:
            shown = text[position : position + 40]
            raise DataError(
                f"{place}: a quotation mark in {shown!r} does not begin or end a field; write it with a backslash, "
                "inside of quotation marks"
            )
        quoted = match[1] if match[1] is not None else match[2]
        if quoted is not None:
            found.append(ESCAPED.sub(r"\1", quoted))
        else:
            plain = match[3].rstrip()
            found.append(None if plain == "?" else plain)
        position = match.end()
        if not match[0].endswith(","):
            return found


def _unquote(name: str) -> str:
    if name[:1] in ("'", '"'):
        return ESCAPED.sub(r"\1", name[1:-1])
    return name
