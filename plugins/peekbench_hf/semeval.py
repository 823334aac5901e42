"""The XML of SemEval-2019 task 4: one archive of articles, one of their labels (Kiesel et al., 2019)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any
from zipfile import BadZipFile, ZipFile

from peekbench import DataError

if TYPE_CHECKING:
    import pyarrow as pa


def read_articles(paths: Sequence[Path]) -> pa.Table:
    """Columns `title` and `hyperpartisan` of every article.

    Raises
    ------
    DataError
        Where an archive is missing, damaged, or has an article without a label.
    """
    import pyarrow as pa

    articles, labels = (_only(paths, prefix) for prefix in ("articles-", "ground-truth-"))
    titles = {article["id"]: article.get("title") for article in _elements(articles)}
    hyperpartisan = {article["id"]: article["hyperpartisan"] == "true" for article in _elements(labels)}
    unlabeled = titles.keys() - hyperpartisan.keys()
    if unlabeled:
        raise DataError(f"{labels}: no label for article {min(unlabeled)}, which {articles.name} has; is it complete?")
    return pa.table(
        {"title": list(titles.values()), "hyperpartisan": [hyperpartisan[article] for article in titles]},
        schema=pa.schema([("title", pa.large_string()), ("hyperpartisan", pa.bool_())]),
    )


def _only(paths: Sequence[Path], prefix: str) -> Path:
    found = [path for path in paths if path.name.startswith(prefix)]
    if len(found) != 1:
        raise DataError(
            f"{paths[0].parent}: {len(found)} archives {prefix}*.zip among {', '.join(path.name for path in paths)}; "
            "one of the articles and one of the labels are needed"
        )
    return found[0]


def _elements(archive: Path) -> Iterator[dict[str, str]]:
    """Attributes of each `article` element; what it contains is skipped as it is read."""
    from defusedxml import ElementTree
    from defusedxml.common import DefusedXmlException

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
                    parents[-1].remove(element)  # a million of them would fill the memory
    except (BadZipFile, ElementTree.ParseError, DefusedXmlException, KeyError, IndexError) as error:
        raise DataError(f"{archive}: cannot be read as zipped XML: {error}; is it damaged?") from error


@contextmanager
def _open_xml(archive: Path) -> Iterator[IO[bytes]]:
    with ZipFile(archive) as opened:
        names = [name for name in opened.namelist() if name.endswith(".xml")]
        if len(names) != 1:
            raise DataError(f"{archive}: {len(names)} XML files in it; one is needed")
        with opened.open(names[0]) as file:
            yield file
