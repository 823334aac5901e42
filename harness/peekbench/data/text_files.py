"""Reads text files as people have them: compressed, in UTF-8 or UTF-16, with any usual delimiter and quote."""

from __future__ import annotations

import bz2
import codecs
import csv
import gzip
import json
import lzma
import stat
import zlib
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

from peekbench.errors import DataError
from peekbench.formatting import pluralize
from peekbench.plugins.names import find_nearest_file

MAX_CHARACTERS = 2**24  # of a field; the csv module refuses more than 131,072 by default
SAMPLE = 100  # records in which the delimiter is looked for
COMPRESSIONS: Mapping[bytes, Callable[..., Any]] = {
    b"\x1f\x8b": gzip.open,
    b"BZh": bz2.open,
    b"\xfd7zXZ\x00": lzma.open,
}
"""First bytes of compressed files."""
MARKS = {
    codecs.BOM_UTF8: "utf-8-sig",
    codecs.BOM_UTF32_LE: "utf-32",  # before UTF-16, whose mark is the beginning of this one
    codecs.BOM_UTF32_BE: "utf-32",
    codecs.BOM_UTF16_LE: "utf-16",
    codecs.BOM_UTF16_BE: "utf-16",
}
"""Byte order marks."""
SUFFIXES = (".gz", ".bz2", ".xz")
DELIMITERS = {".csv": ",;\t|", ".tsv": "\t,;|"}
"""Delimiters of fields by suffix, the usual one first."""
JSON_FORM = "write one object in each line, or a single list of objects"


def suffix_of(path: Path) -> str:
    """Return the lowercase suffix of a file without that of its compression.

    Examples
    --------
    >>> suffix_of(Path("reviews.CSV.gz"))
    '.csv'
    """
    if path.suffix.lower() in SUFFIXES:
        path = path.with_suffix("")
    return path.suffix.lower()


@contextmanager
def check_file(path: Path) -> Iterator[None]:
    """Refuse a file that does not exist, is none or is empty, and name the file while it is read.

    Raises
    ------
    DataError
        If the file cannot be read.
    """
    try:
        status = path.stat()
        if not stat.S_ISREG(status.st_mode):  # reading a pipe could wait forever
            raise DataError(f"{path} is not a file; save the rows in a file first")
        if not status.st_size:
            raise DataError(f"{path} is an empty file; write the rows into it, or give another path")
        yield
    except FileNotFoundError as error:
        near = find_nearest_file(path.name, [file.name for file in path.parent.glob("*.*")])
        remedy = f"did you mean {path.with_name(near)}?" if near else "check the path"
        raise DataError(f"cannot read {path}: no such file; {remedy}") from error
    except (OSError, ValueError) as error:  # ValueError: the path has a null byte
        raise DataError(f"cannot read {path}: {error}; check the path and its permissions") from error


def read_lines(path: Path, encoding: str = "", *, remedy: str = "convert it to UTF-8") -> Iterator[str]:
    """Yield the lines of a file with their line breaks, unpacked and decoded.

    Parameters
    ----------
    path
        Path of the file.
    encoding
        Its encoding; by default that of its byte order mark, otherwise UTF-8.
    remedy
        What the user can do about another encoding.

    Raises
    ------
    DataError
        If it has another encoding, or is damaged.
    OSError
        If it cannot be read.
    """
    with path.open("rb") as raw:
        first = raw.read(8)
    unpack = next((unpack for mark, unpack in COMPRESSIONS.items() if first.startswith(mark)), open)
    try:
        encoding = encoding or _find_encoding(path, unpack)
        if encoding.lower().replace("_", "-") in ("utf-8", "utf8"):
            encoding = "utf-8-sig"  # skips a byte order mark
        with unpack(path, "rt", encoding=encoding, newline="") as file:
            if unpack is open:
                yield from file
            while line := file.readline(MAX_CHARACTERS + 1):  # a small file could unpack to a line of gigabytes
                if len(line) > MAX_CHARACTERS:
                    raise DataError(f"{path}: a line has more than {MAX_CHARACTERS:,} characters; unpack the file")
                yield line
    except UnicodeError as error:
        raise DataError(f"{path} is not {encoding.removesuffix('-sig')}: {error}; {remedy}") from error
    except (EOFError, lzma.LZMAError, zlib.error) as error:
        raise DataError(f"{path} is damaged: {error}; download or copy it again") from error


def _find_encoding(path: Path, unpack: Callable[..., Any]) -> str:
    with unpack(path, "rb") as file:
        head = file.read(4)
    return next((encoding for mark, encoding in MARKS.items() if head.startswith(mark)), "utf-8-sig")


@dataclass(frozen=True, slots=True)
class Dialect:
    """How a file divides lines into fields."""

    delimiter: str
    quote: str
    """Empty if quotation marks have no special meaning."""
    header: Sequence[str] = ()
    """Fields of the first line."""
    is_regular: bool = False
    """Whether the first records all have as many fields as the header."""

    def reader(self, lines: Iterable[str]) -> Any:
        """Return a reader of the csv module."""
        csv.field_size_limit(MAX_CHARACTERS)
        if not self.quote:
            return csv.reader(lines, delimiter=self.delimiter, quoting=csv.QUOTE_NONE)
        return csv.reader(lines, delimiter=self.delimiter, quotechar=self.quote, strict=True)

    def read_rows(self, lines: Iterable[str], path: Path) -> Iterator[tuple[int, list[str]]]:
        """Yield the number of the last line and the fields of each row below the header, without empty lines.

        Parameters
        ----------
        lines
            Lines of the file.
        path
            Path of the file, for messages.

        Raises
        ------
        DataError
            If a row has another number of fields than the header, or cannot be divided.
        """
        reader = self.reader(lines)
        try:
            next(reader)
            for fields in filter(None, reader):
                if len(fields) != len(self.header):
                    raise DataError(
                        f"{path}, line {reader.line_num}: {pluralize(len(fields), 'field')}, but the header has "
                        f"{len(self.header)}; quote texts that contain {self.delimiter!r}"
                    )
                yield reader.line_num, fields
        except csv.Error as error:
            raise DataError(f"{path}, line {reader.line_num}: {error}; fix the line") from error


def find_dialect(
    lines: Iterable[str], delimiters: Sequence[str], quotes: Sequence[str], columns: Collection[str] = ()
) -> Dialect:
    r"""Return the delimiter and the quote of a file.

    The best ones find all columns in a header of several. Then the first quote is the best, and the delimiter that
    divides all records into as many fields as the header, and the header into the most.

    Parameters
    ----------
    lines
        The first lines, with line breaks.
    delimiters, quotes
        What is possible, the usual one first.
    columns
        Names that the header should have.

    Examples
    --------
    >>> dialect = find_dialect(["text;label\n", "a, b;1\n"], ",;", ['"'], ["text", "label"])
    >>> dialect.delimiter, dialect.header
    (';', ['text', 'label'])
    """
    sample = list(islice((line for line in lines if line.strip()), SAMPLE))
    found = [_try_dialect(sample, delimiter, quote) for quote in quotes for delimiter in delimiters]

    def rank(dialect: Dialect) -> tuple[bool, bool, bool, int]:
        is_usual = dialect.quote == quotes[0]
        has_columns = len(dialect.header) > 1 and set(columns) <= set(dialect.header)
        return has_columns, is_usual, dialect.is_regular, len(dialect.header)

    return max(found, key=rank)


def _try_dialect(lines: Iterable[str], delimiter: str, quote: str) -> Dialect:
    """Return the lines, split by a delimiter and a quote."""
    header: list[str] = []
    is_regular = False
    try:
        reader = Dialect(delimiter, quote).reader(lines)
        header = next(reader, [])
        is_regular = all(len(record) in (0, len(header)) for record in reader) and len(header) > 1
    except csv.Error:  # also if the lines end in the middle of a record
        is_regular = False
    return Dialect(delimiter, quote, header, is_regular)


def read_objects(lines: Iterable[str], origin: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the position of each object and the object, from JSON Lines or a JSON file.

    A JSON file has a list of objects, or one object that contains them by their keys, which become the column `key`.

    Parameters
    ----------
    lines
        Lines of a file.
    origin
        Name of the file, for messages.

    Raises
    ------
    DataError
        If they are neither.
    """
    content = [(number, line.strip()) for number, line in enumerate(lines, start=1) if line.strip()]
    if len(content) > 1 and content[0][1] != "{" and not content[0][1].startswith("["):
        for number, line in content:
            yield _check_object(f"line {number}", _parse(line, f"{origin}, line {number}"), origin)
        return
    rows = _parse("\n".join(line for _, line in content) or "[]", f"{origin}, from line 1")
    if isinstance(rows, dict) and rows and all(isinstance(row, dict) for row in rows.values()):
        rows = [{"key": key, **row} for key, row in rows.items()]
    elif not isinstance(rows, list):
        rows = [rows]
    for position, row in enumerate(rows, start=1):
        yield _check_object(f"row {position}", row, origin)


def _check_object(place: str, record: Any, origin: str) -> tuple[str, dict[str, Any]]:
    if not isinstance(record, dict):
        raise DataError(f"{origin}, {place}: a JSON {type(record).__name__} instead of an object; {JSON_FORM}")
    return place, record


def _parse(content: str, place: str) -> Any:
    try:
        return json.loads(content, object_pairs_hook=_distinct)
    except (ValueError, RecursionError) as error:
        raise DataError(f"{place}: not valid JSON ({error}); {JSON_FORM}") from error


def _distinct(pairs: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    """Return an object of JSON; a name that is duplicated would silently lose a value."""
    row = dict(pairs)
    if len(row) < len(pairs):
        raise ValueError("a name is duplicated in an object")
    return row
