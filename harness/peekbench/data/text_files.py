"""Reads text files as people have them: compressed, in UTF-8 or UTF-16, with any usual delimiter and quote."""

from __future__ import annotations

import bz2
import codecs
import csv
import gzip
import json
import lzma
import zlib
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, islice
from pathlib import Path
from typing import Any

from peekbench.data.loading import MAX_RATIO, size_limit
from peekbench.errors import DataError
from peekbench.formatting import pluralize

MAX_CHARACTERS = 2**24  # of a line or a field; the csv module refuses more than 131,072 by default
BYTES_PER_LINE = 250  # at least, in memory, of the rows of a compressed file
HEAD = 2**16  # bytes in which the encoding is looked for
SAMPLE = 100  # records in which the delimiter is looked for
COMPRESSIONS: Mapping[bytes, Callable[..., Any]] = {
    b"\x1f\x8b": gzip.open,
    b"BZh": bz2.open,
    b"\xfd7zXZ\x00": lzma.open,
}
"""First bytes of compressed files."""
ARCHIVES = {b"PK\x03\x04": "a ZIP archive or an Excel workbook", b"\x28\xb5\x2f\xfd": "compressed by zstd"}
"""First bytes of files that are not read."""
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


def read_lines(
    path: Path,
    encoding: str = "",
    *,
    max_gigabytes: float | None = None,
    max_characters: int | None = None,
    remedy: str = "convert it to UTF-8",
) -> Iterator[str]:
    """Yield the lines of a file with their line breaks, unpacked and decoded.

    Parameters
    ----------
    path
        Path of the file.
    encoding
        Its encoding; by default that of its byte order mark, otherwise UTF-16 if half of the bytes are zero, otherwise
        UTF-8.
    max_gigabytes
        Largest unpacked size, see `size_limit`.
    max_characters
        Largest number of characters of a line, by default `MAX_CHARACTERS`.
    remedy
        What the user can do about another encoding.

    Raises
    ------
    DataError
        If it is an archive, has another encoding, or is too large.
    OSError
        If it cannot be read.
    """
    with path.open("rb") as raw:
        first = raw.read(8)
    for mark, what in ARCHIVES.items():
        if first.startswith(mark):
            raise DataError(f"{path} is {what}; unpack it, or save it as CSV")
    unpack = next((unpack for mark, unpack in COMPRESSIONS.items() if first.startswith(mark)), open)
    longest = max_characters or MAX_CHARACTERS
    left = size_limit(path.stat().st_size, max_gigabytes)
    shorten = "shorten the text"
    if unpack is not open:  # a line of a small file could unpack to gigabytes
        shorten = "unpack it, if you trust it"
        longest = min(longest, max(MAX_CHARACTERS, MAX_RATIO * path.stat().st_size))
    try:
        encoding = encoding or _find_encoding(path, unpack)
        if encoding.lower().replace("_", "-") in ("utf-8", "utf8"):
            encoding = "utf-8-sig"  # skips a byte order mark
        with unpack(path, "rt", encoding=encoding, newline="") as file:
            number = 0
            while line := file.readline(longest + 1):
                number += 1
                if len(line) > longest:
                    raise DataError(
                        f"{path}, line {number}: more than {longest:,} characters; check the format of the file, or "
                        f"{shorten}"
                    )
                if unpack is not open:
                    left -= len(line) + BYTES_PER_LINE
                if left < 0:
                    raise DataError(f"{path}: it unpacks to more than 50 times its size; if you trust it, unpack it")
                yield line
    except UnicodeError as error:
        raise DataError(f"{path} is not {encoding.removesuffix('-sig')}: {error}; {remedy}") from error
    except (EOFError, lzma.LZMAError, zlib.error) as error:
        raise DataError(f"{path} is damaged: {error}; download or copy it again") from error


def _find_encoding(path: Path, unpack: Callable[..., Any]) -> str:
    with unpack(path, "rb") as file:
        head = file.read(HEAD)
    for mark, encoding in MARKS.items():
        if head.startswith(mark):
            return encoding
    for start, encoding in ((1, "utf-16-le"), (0, "utf-16-be")):  # UTF-16 without a mark
        if head[start::2].count(0) > len(head) // 3:
            return encoding
    return "utf-8-sig"


@dataclass(frozen=True, slots=True)
class Dialect:
    """How a file divides lines into fields."""

    delimiter: str
    quote: str
    """Empty if quotation marks have no special meaning."""
    header: Sequence[str]
    """Fields of the first line."""
    is_regular: bool
    """Whether the first records all have as many fields as the header."""
    repeats_header: bool = False
    """Whether a field of the first line occurs again in its column, so that the line may be no header."""

    def reader(self, lines: Iterable[str]) -> Any:
        """Return a reader of the csv module."""
        csv.field_size_limit(MAX_CHARACTERS)
        if not self.quote:
            return csv.reader(lines, delimiter=self.delimiter, quoting=csv.QUOTE_NONE)
        return csv.reader(lines, delimiter=self.delimiter, quotechar=self.quote, strict=True)

    def read_rows(
        self, lines: Iterable[str], num_fields: int, path: Path, *, skip_first: bool, suggest: Callable[[], str]
    ) -> Iterator[tuple[int, list[str]]]:
        """Yield the number of the last line and the fields of each row, without empty lines.

        Parameters
        ----------
        lines
            Lines of the file.
        num_fields
            Number of fields of each row.
        path
            Path of the file, for messages.
        skip_first
            Whether the first row is a header.
        suggest
            Returns a further remedy of a row that cannot be divided, or an empty text.

        Raises
        ------
        DataError
            If a row has another number of fields, or cannot be divided.
        """
        reader = self.reader(lines)
        try:
            if skip_first:
                next(reader)
            for fields in filter(None, reader):
                if len(fields) != num_fields:
                    raise DataError(
                        f"{path}, line {reader.line_num}: {pluralize(len(fields), 'field')}, but the header has "
                        f"{num_fields}; quote texts that contain {self.delimiter!r}{suggest()}"
                    )
                yield reader.line_num, fields
        except csv.Error as error:
            raise DataError(f"{path}, line {reader.line_num}: {error}; fix the line{suggest()}") from error


def find_dialect(
    lines: Iterable[str], delimiters: Sequence[str], quotes: Sequence[str], columns: Collection[str] = ()
) -> Dialect:
    r"""Return the delimiter and the quote of a file.

    The best ones find all columns in the header. Then the first quote is the best, and the delimiter that divides all
    records into as many fields as the header, and the header into the most.

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
    found = [try_dialect(sample, delimiter, quote) for quote in quotes for delimiter in delimiters]

    def rank(dialect: Dialect) -> tuple[bool, bool, bool, int]:
        is_usual = dialect.quote == quotes[0]
        return set(columns) <= set(dialect.header), is_usual, dialect.is_regular, len(dialect.header)

    return max(found, key=rank)


def try_dialect(lines: Iterable[str], delimiter: str, quote: str) -> Dialect:
    """Return what a delimiter and a quote make of lines."""
    dialect = Dialect(delimiter, quote, (), is_regular=False)
    header: list[str] = []
    is_regular = repeats_header = False
    try:
        reader = dialect.reader(lines)
        header = next(reader, [])
        records = list(reader)
        is_regular = len(header) > 1 and all(len(record) in (0, len(header)) for record in records)
        repeats_header = any(field == name for record in records for field, name in zip(record, header, strict=False))
    except csv.Error:  # also if the lines end in the middle of a record
        is_regular = False
    return Dialect(delimiter, quote, header, is_regular=is_regular, repeats_header=repeats_header)


def read_objects(lines: Iterable[str], origin: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the position of each object and the object, from JSON Lines or a JSON file.

    A file has a list of objects, or one object that contains them by their keys, which become the column `key`.

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
    remaining = ((number, line) for number, line in enumerate(lines, start=1) if line.strip())
    number, line = next(remaining, (1, ""))
    if not line:
        return
    place = f"{origin}, line {number}"
    following = next(remaining, None)
    if following is None or _is_beginning(line):
        if following is not None:
            place = f"{origin}, from line {number}"
            line = "".join((line, following[1], *(other for _, other in remaining)))
        content = _parse(line, place)
        if isinstance(content, list):
            for position, record in enumerate(content, start=1):
                yield _check_object(f"row {position}", record, origin)
        elif isinstance(content, dict) and content and all(isinstance(value, dict) for value in content.values()):
            _refuse_columns(content, place)
            for key, record in content.items():
                yield f"key {key!r}", {"key": key, **record}
        else:
            checked = _check_object(f"line {number}", content, origin)
            _refuse_columns(content, place)
            yield checked
        return
    yield _check_object(f"line {number}", _parse(line, place), origin)
    for number, line in chain((following,), remaining):
        yield _check_object(f"line {number}", _parse(line, f"{origin}, line {number}"), origin)


def _is_beginning(line: str) -> bool:
    """Return whether the first line of a JSON file is only the beginning of its content."""
    if line.lstrip().startswith("["):
        return True
    try:
        json.loads(line)
    except (ValueError, RecursionError):
        return line.rstrip().endswith(("{", "[", ","))
    return False


def _check_object(place: str, record: Any, origin: str) -> tuple[str, dict[str, Any]]:
    if not isinstance(record, dict):
        raise DataError(f"{origin}, {place}: a JSON {type(record).__name__} instead of an object; {JSON_FORM}")
    return place, record


def _refuse_columns(content: Mapping[str, Any], place: str) -> None:
    """Refuse a table stored by columns: lists, or objects whose keys are the numbers of the rows."""
    by_number = all(isinstance(value, dict) and all(map(str.isdigit, value)) for value in content.values())
    if content and (by_number or all(isinstance(value, list) for value in content.values())):
        raise DataError(
            f"{place}: each name has several values, as in a table stored by columns; {JSON_FORM}, "
            "as pandas does with to_json(orient='records')"
        )


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
