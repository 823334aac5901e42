"""Read the XML of SemEval-2019 task 4: one archive of articles and one of labels (Kiesel et al., 2019)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any
from zipfile import BadZipFile, ZipFile

import pyarrow as pa
from defusedxml import ElementTree
from defusedxml.common import DefusedXmlException

from peekbench import DataError

MAX_ARTICLES = 2_000_000  # the published archives have 750,000
MAX_ELEMENT_BYTES = 4 * 2**20  # between two elements; the time to parse one is quadratic in its length
READ_SIZE = 2**16  # bytes


def read_articles(paths: Sequence[Path]) -> pa.Table:
    """Read the columns `title` and `hyperpartisan` of all articles.

    Parameters
    ----------
    paths
        An archive of articles and an archive of labels.

    Raises
    ------
    DataError
        If an archive is missing or cannot be read, or an article has no label or no id of its own.
    """
    articles, labels = (_find_archive(paths, prefix) for prefix in ("articles-", "ground-truth-"))
    titles = _read_by_id(articles, "title", is_required=False)
    hyperpartisan = _read_by_id(labels, "hyperpartisan", is_required=True)
    unlabeled = titles.keys() - hyperpartisan.keys()
    if unlabeled:
        raise DataError(
            f"{labels}: no label for article {min(unlabeled)} of {articles.name}; the archive may be incomplete, "
            "download it again"
        )
    return pa.table(
        {"title": list(titles.values()), "hyperpartisan": [hyperpartisan[article] == "true" for article in titles]},
        schema=pa.schema([("title", pa.large_string()), ("hyperpartisan", pa.bool_())]),
    )


def _find_archive(paths: Sequence[Path], prefix: str) -> Path:
    archives = [path for path in paths if path.name.startswith(prefix)]
    if len(archives) != 1:
        raise DataError(
            f"{paths[0].parent}: {len(archives)} archives {prefix}*.zip among "
            f"{', '.join(path.name for path in paths)}; provide exactly one"
        )
    return archives[0]


def _read_by_id(archive: Path, name: str, *, is_required: bool) -> dict[str, str | None]:
    """Return an attribute of each article by the article's id."""
    values: dict[str, str | None] = {}
    for number, attributes in enumerate(_read_attributes(archive), start=1):
        missing = [required for required in ("id", *([name] if is_required else [])) if required not in attributes]
        if missing:
            raise DataError(f"{archive}: article {number} has no attribute {missing[0]!r}; download the archive again")
        article = attributes["id"]
        if article in values:
            raise DataError(f"{archive}: article {number} has the id of another, {article[:60]!r}; correct the file")
        if number > MAX_ARTICLES:
            raise DataError(f"{archive}: it has more than {MAX_ARTICLES:,} articles; split it into smaller datasets")
        values[article] = attributes.get(name)
    return values


def _read_attributes(archive: Path) -> Iterator[dict[str, str]]:
    """Yield the attributes of each `article` element, and discard its content while reading."""
    try:
        with _open_xml(archive) as file:
            parents: list[Any] = []
            bounded = _BoundedReader(file, archive)
            for event, element in ElementTree.iterparse(bounded, events=("start", "end")):
                bounded.num_bytes = 0
                if event == "start":
                    parents.append(element)
                    continue
                parents.pop()
                if element.tag == "article":
                    yield dict(element.attrib)
                    element.clear()
                    parents[-1].remove(element)  # a million empty elements would fill the memory
    except (BadZipFile, ElementTree.ParseError, DefusedXmlException, KeyError, IndexError) as error:
        raise DataError(
            f"{archive}: cannot be read as zipped XML: {str(error)[:200]}; download it again, or correct the file"
        ) from error


class _BoundedReader:
    """Reads a file in small parts, and refuses it if an element, a comment or an attribute does not end."""

    def __init__(self, file: IO[bytes], archive: Path) -> None:
        self._file = file
        self._archive = archive
        self.num_bytes = 0
        """Bytes since the last element."""

    def read(self, size: int = -1) -> bytes:
        """Return the next part of the file; it is empty at the end."""
        part = self._file.read(min(size, READ_SIZE) if size > 0 else READ_SIZE)
        self.num_bytes += len(part)
        if self.num_bytes > MAX_ELEMENT_BYTES:
            raise DataError(
                f"{self._archive}: its XML has {MAX_ELEMENT_BYTES:,} bytes without the start or end of an element, "
                "such as a long comment or attribute; correct the file"
            )
        return part


@contextmanager
def _open_xml(archive: Path) -> Iterator[IO[bytes]]:
    with ZipFile(archive) as opened:
        names = [name for name in opened.namelist() if name.endswith(".xml")]
        if len(names) != 1:
            raise DataError(f"{archive}: it contains {len(names)} XML files instead of one; download it again")
        with opened.open(names[0]) as file:
            yield file
