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


def read_articles(paths: Sequence[Path]) -> pa.Table:
    """Read the columns `title` and `hyperpartisan` of all articles.

    Parameters
    ----------
    paths
        An archive of articles and an archive of labels.

    Raises
    ------
    DataError
        If an archive is missing or damaged, or an article has no label.
    """
    articles, labels = (_find_archive(paths, prefix) for prefix in ("articles-", "ground-truth-"))
    titles = {article["id"]: article.get("title") for article in _read_attributes(articles)}
    hyperpartisan = {article["id"]: article["hyperpartisan"] == "true" for article in _read_attributes(labels)}
    unlabeled = titles.keys() - hyperpartisan.keys()
    if unlabeled:
        raise DataError(
            f"{labels}: no label for article {min(unlabeled)} of {articles.name}; the archive may be incomplete, "
            "download it again"
        )
    return pa.table(
        {"title": list(titles.values()), "hyperpartisan": [hyperpartisan[article] for article in titles]},
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


def _read_attributes(archive: Path) -> Iterator[dict[str, str]]:
    """Yield the attributes of each `article` element, and discard its content while reading."""
    try:
        with _open_xml(archive) as file:
            parents: list[Any] = []
            for event, element in ElementTree.iterparse(file, events=("start", "end")):
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
            f"{archive}: cannot be read as zipped XML: {error}; the archive may be damaged, download it again"
        ) from error


@contextmanager
def _open_xml(archive: Path) -> Iterator[IO[bytes]]:
    with ZipFile(archive) as opened:
        names = [name for name in opened.namelist() if name.endswith(".xml")]
        if len(names) != 1:
            raise DataError(f"{archive}: it contains {len(names)} XML files instead of one; download it again")
        with opened.open(names[0]) as file:
            yield file
