"""Read the XML of SemEval-2019 task 4: one archive of articles and one of labels (Kiesel et al., 2019)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any
from xml.etree import ElementTree
from zipfile import BadZipFile, ZipFile

from peekbench import DataError


def read_articles(paths: Sequence[Path]) -> dict[str, list[Any]]:
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
    titles = _read_by_id(articles)
    hyperpartisan = _read_by_id(labels)
    if unlabeled := titles.keys() - hyperpartisan.keys():
        raise DataError(f"{labels}: no label for article {min(unlabeled)} of {articles.name}; download it again")
    values = [hyperpartisan[article].get("hyperpartisan") for article in titles]
    return {"title": [attributes.get("title") for attributes in titles.values()], "hyperpartisan": values}


def _find_archive(paths: Sequence[Path], prefix: str) -> Path:
    archives = [path for path in paths if path.name.startswith(prefix)]
    if len(archives) != 1:
        raise DataError(f"{paths[0].parent}: {len(archives)} archives {prefix}*.zip; provide exactly one")
    return archives[0]


def _read_by_id(archive: Path) -> dict[str, dict[str, str]]:
    """Return the attributes of each article by its id."""
    articles: dict[str, dict[str, str]] = {}
    try:
        for number, attributes in enumerate(_read_attributes(archive), start=1):
            articles[attributes["id"]] = attributes
            if len(articles) < number:
                raise DataError(f"{archive}: the id {attributes['id']} is of two articles; correct the file")
    except (BadZipFile, ElementTree.ParseError, KeyError, ValueError) as error:
        raise DataError(
            f"{archive}: cannot be read as zipped XML: {error}; download it again, or correct the file"
        ) from error
    return articles


def _read_attributes(archive: Path) -> Iterator[dict[str, str]]:
    """Yield the attributes of each `article` element, and discard its content while reading."""
    with ZipFile(archive) as opened:
        (name,) = (name for name in opened.namelist() if name.endswith(".xml"))
        with opened.open(name) as file:
            events = ElementTree.iterparse(file, events=("start", "end"))  # noqa: S314 - expat limits what entities expand to
            _, root = next(events)
            for event, element in events:
                if event == "end" and element.tag == "article":
                    yield dict(element.attrib)
                    root.clear()  # a million empty elements would fill the memory
