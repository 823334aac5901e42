"""Reads corpus files piece by piece, so that their size does not matter."""

from __future__ import annotations

import bz2
import csv
import gzip
import io
import json
import lzma
import stat
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, BinaryIO, TypeAlias

from peekbench import DataError
from peekbench.plugins import Reference
from peekbench_overlap.index import split_texts
from peekbench_overlap.options import Ngram

Pieces: TypeAlias = Iterator[tuple[int, str]]
"""Numbers of lines or rows, and the texts that start there."""

COMPRESSED: Mapping[str, Callable[..., Any]] = {".gz": gzip.open, ".bz2": bz2.open, ".xz": lzma.open}
FORMATS: Mapping[str, str] = {
    ".txt": "text",
    ".text": "text",
    ".md": "text",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".csv": "csv",
    ".tsv": "tsv",
    ".parquet": "parquet",
    ".pq": "parquet",
}
MAX_CHARACTERS = 2**24  # of a line of JSON or of a field
PIECE_CHARACTERS = 2**16  # of a piece of plain text, without those that it repeats
WHITE_SPACE = " \t\n\r\f\v"  # that ends a word under both normalizations
ROWS_PER_BATCH = 256
open_parquet = Reference("pyarrow.parquet:ParquetFile")
PATTERN = frozenset("*?[")


def find_files(corpus: Path, folder: Path) -> list[Path]:
    """Return the files of a corpus, sorted by name.

    Parameters
    ----------
    corpus
        Path of a file, or a pattern.
    folder
        Folder where relative paths start.

    Raises
    ------
    DataError
        If there is none, or the format of one is unknown.
    """
    path = folder / corpus
    files = [path]
    if PATTERN & set(str(corpus)) and not path.exists():
        root = Path(path.anchor)
        files = sorted(file for file in root.glob(str(path.relative_to(root))) if file.is_file())
        if not files:
            raise DataError(f"corpora: no file matches {path}; check the pattern")
    for file in files:
        if not file.exists():
            raise DataError(f"corpora: {file} does not exist; check the path, which starts at {folder.resolve()}")
        if not stat.S_ISREG(file.stat().st_mode):
            hint = f"; did you mean {corpus / '*.jsonl'}?" if file.is_dir() else "; save its content in a file first"
            raise DataError(f"corpora: {file} is not a file{hint}")
        _format_of(file)
    return files


def _format_of(path: Path) -> str:
    suffixes = [suffix.lower() for suffix in path.suffixes]
    known = FORMATS.get(suffixes[-2] if len(suffixes) > 1 and suffixes[-1] in COMPRESSED else "".join(suffixes[-1:]))
    if known is None or (known == "parquet" and suffixes[-1] in COMPRESSED):
        raise DataError(
            f"corpora: {path} has no known format; use one of {', '.join(FORMATS)}, text formats also with "
            f"{', '.join(COMPRESSED)}"
        )
    return known


def name_place(path: Path, number: int) -> str:
    """Return a place in a corpus for readers, such as 'corpus.jsonl, line 12'."""
    unit = {"parquet": "row", "text": "from line"}.get(_format_of(path), "line")
    return f"{path.name}, {unit} {number}"


def read_pieces(path: Path, options: Ngram) -> Pieces:
    """Yield the texts of a corpus file, with the number of the line or row where each starts.

    Plain text is cut into pieces, at white space if possible. Each repeats the end of the previous one, so that no
    n-gram is lost, unless it is longer than 65,535 characters.

    Parameters
    ----------
    path
        Path of the file.
    options
        Fields and encoding.

    Raises
    ------
    DataError
        If the file cannot be read, is not in its format, or lacks a field.
    """
    kind = _format_of(path)
    try:
        if kind == "parquet":
            yield from _read_parquet(path, options.fields)
            return
        encoding = "utf-8-sig" if options.encoding.lower().replace("_", "-") in ("utf-8", "utf8") else options.encoding
        opened = COMPRESSED.get(path.suffix.lower(), open)(path, "rb")
        with opened as binary, io.TextIOWrapper(_binary(binary), encoding=encoding, newline="") as file:
            if kind == "text":
                yield from _read_text(file, options)
            elif kind == "jsonl":
                yield from _read_json_lines(file, path, options.fields)
            else:
                yield from _read_csv(file, path, options.fields, "\t" if kind == "tsv" else ",")
    except UnicodeError as error:
        raise DataError(f"{path} is not {options.encoding}: {error}; set `encoding` to the file's encoding") from error
    except (OSError, EOFError, zlib.error, lzma.LZMAError, ValueError, NotImplementedError) as error:
        reason = getattr(error, "strerror", None) or error
        raise DataError(f"cannot read {path}: {reason}; check that the file is complete and readable") from error


def _binary(file: Any) -> BinaryIO:
    return file  # type: ignore[no-any-return]  # what gzip, bz2 and lzma return are binary files


def _read_text(file: io.TextIOWrapper, options: Ngram) -> Pieces:
    repeated, start, number = "", 1, 1
    lines: list[str] = []
    size = 0
    while line := file.readline(PIECE_CHARACTERS):
        lines.append(line)
        size += len(line)
        number += line.endswith("\n")
        if size >= PIECE_CHARACTERS:
            text = repeated + "".join(lines)
            # A long line is read in parts. The last one may end inside a word, which the next piece completes.
            last = max(text.rfind(character, len(text) - PIECE_CHARACTERS) for character in WHITE_SPACE)
            end = len(text) if last < 0 else last + 1
            yield start, text[:end]
            repeated = _end_of(text[:end], options) + text[end:]
            start, lines, size = number, [], 0
    if lines or repeated:
        yield start, repeated + "".join(lines)


def _end_of(text: str, options: Ngram) -> str:
    """Return the end of a text, with as many words as the longest n-gram or as many characters as a piece."""
    size = 256
    while size < PIECE_CHARACTERS:
        first = min((place for place in map(text[-size:].find, WHITE_SPACE) if place >= 0), default=size)
        end = text[-size:][first:]
        if len(split_texts([end], options.normalization)) >= max(options.n):
            return end
        size *= 4
    return text[-PIECE_CHARACTERS:]


def _lines(file: io.TextIOWrapper, path: Path) -> Iterator[str]:
    number = 0
    while line := file.readline(MAX_CHARACTERS + 1):
        number += 1
        if len(line) > MAX_CHARACTERS:
            raise DataError(f"{path}, line {number}: more than {MAX_CHARACTERS:,} characters; check the file's format")
        yield line


def _read_json_lines(file: io.TextIOWrapper, path: Path, fields: Sequence[str]) -> Pieces:
    has_field = False
    for number, line in enumerate(_lines(file, path), start=1):
        if not line.strip():
            continue
        try:
            record = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise DataError(f"{path}, line {number}: not valid JSON ({error}); write one object per line") from error
        if not isinstance(record, dict):
            record = {"": record}
        values = [record[field] for field in fields if field in record] if fields else list(record.values())
        has_field |= bool(values)
        for text in _texts_in(values):
            yield number, text
    if fields and not has_field:
        raise DataError(f"{path} has no key {', '.join(fields)}; set `fields` to keys of the file")


def _texts_in(values: Sequence[Any]) -> Iterator[str]:
    """Yield all strings in a JSON value."""
    stack = list(reversed(values))
    while stack:
        value = stack.pop()
        if isinstance(value, str):
            yield value
        elif isinstance(value, dict):
            stack.extend(reversed(list(value.values())))
        elif isinstance(value, list):
            stack.extend(reversed(value))


def _read_csv(file: io.TextIOWrapper, path: Path, fields: Sequence[str], delimiter: str) -> Pieces:
    csv.field_size_limit(MAX_CHARACTERS)
    reader = csv.reader(_lines(file, path), delimiter=delimiter, strict=True)
    try:
        header = next(reader, [])
        if missing := [field for field in fields if field not in header]:
            raise DataError(
                f"{path} has no column {', '.join(missing)}; its columns are {', '.join(header)}; correct `fields`"
            )
        positions = [header.index(field) for field in fields] if fields else range(len(header))
        for row in reader:
            if row and len(row) != len(header):
                raise DataError(
                    f"{path}, line {reader.line_num}: {len(row)} fields, but the header has {len(header)}; quote texts "
                    f"that contain {delimiter!r}"
                )
            if row:
                for position in positions:
                    yield reader.line_num, row[position]
    except csv.Error as error:
        raise DataError(f"{path}, line {reader.line_num}: {error}; fix the line") from error


def _read_parquet(path: Path, fields: Sequence[str]) -> Pieces:
    with open_parquet(path) as file:
        texts = [field.name for field in file.schema_arrow if str(field.type) in ("string", "large_string")]
        if missing := [field for field in fields if field not in texts]:
            raise DataError(
                f"{path} has no text column {', '.join(missing)}; its text columns are {', '.join(texts)}; correct "
                "`fields`"
            )
        if not texts:
            raise DataError(f"{path} has no column of texts; remove it from `corpora`")
        number = 1
        for batch in file.iter_batches(ROWS_PER_BATCH, columns=list(fields or texts)):
            for column in batch.columns:
                for offset, text in enumerate(column.to_pylist()):
                    if text is not None:
                        yield number + offset, text
            number += batch.num_rows
