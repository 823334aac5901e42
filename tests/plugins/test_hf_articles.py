"""Hub tasks in zipped XML: damaged archives."""

from __future__ import annotations

import zipfile
from pathlib import Path

import needs_hf  # noqa: F401
import pytest
from hub_repositories import LAYOUTS, write_repository

from peekbench import DataError, load_dataset


def test_damaged_archives_of_articles_are_refused(tmp_path: Path) -> None:
    task = "hyperpartisan_news_detection"
    branch = write_repository(task, tmp_path)
    articles, labels = (branch / name for name in LAYOUTS[task].files)

    def load_error() -> str:
        with pytest.raises(DataError) as caught:
            load_dataset(f"hf.{task}", {"data_dir": str(tmp_path)})
        return str(caught.value)

    with zipfile.ZipFile(labels) as archive:
        text = archive.read("ground-truth.xml").decode()
    with zipfile.ZipFile(labels, "w") as archive:
        archive.writestr("ground-truth.xml", text.replace('id="0000003"', 'id="none"'))
    assert "no label for article 0000003" in load_error()
    with zipfile.ZipFile(labels, "w") as archive:
        archive.writestr("ground-truth.xml", text[: len(text) // 2])
    assert "cannot be read as zipped XML" in load_error()
    articles.unlink()
    assert "0 archives articles-*.zip" in load_error()


def test_two_articles_with_one_id_are_refused(tmp_path: Path) -> None:
    task = "hyperpartisan_news_detection"
    path = write_repository(task, tmp_path) / LAYOUTS[task].files[0]
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("x.xml", "<articles>" + "<article id='1' title='x'/>" * 2 + "</articles>")
    with pytest.raises(DataError, match="the id 1 is of two articles; correct the file"):
        load_dataset(f"hf.{task}", {"data_dir": str(tmp_path)})
