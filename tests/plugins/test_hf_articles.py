"""Hub tasks in zipped XML: damaged archives, and limits of what they unpack to."""

from __future__ import annotations

import zipfile
from pathlib import Path

import needs_hf  # noqa: F401
import pytest
from hub_repositories import LAYOUTS, write_repository

from peekbench import DataError, load_dataset
from peekbench_hf import semeval


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
    bomb = '<!DOCTYPE x [<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;">]><articles>&b;</articles>'
    with zipfile.ZipFile(labels, "w") as archive:
        archive.writestr("ground-truth.xml", bomb)
    assert "cannot be read as zipped XML" in load_error()
    articles.unlink()
    assert "0 archives articles-*.zip" in load_error()


def write_xml(path: Path, *parts: str) -> None:
    with (
        zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive,
        archive.open("x.xml", "w", force_zip64=True) as file,
    ):
        for part in parts:
            file.write(part.encode())


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        (["<articles><article title='x'/></articles>"], "article 1 has no attribute 'id'"),
        (["<articles>", "<article id='1' title='x'/>" * 2, "</articles>"], "article 2 has the id of another, '1'"),
        (["<articles>", *(f"<article id='{row}'/>" for row in range(21)), "</articles>"], "more than 20 articles"),
        (["<articles>", "<!-- comment -->" * 2**15, "</articles>"], "100,000 bytes without the start or end"),
        (
            ["<articles><article id='1' title='", "x" * 2**18, "'/></articles>"],
            "100,000 bytes without the start or end",
        ),
        (["<articles><article id='1'>", "x" * 2**18, "</article></articles>"], "100,000 bytes without the start or"),
        (["<articles>", " " * 2**22, "</articles>"], "unpack to 0.00 GB, more .* 0.00 GB; .* `max_gigabytes`"),
    ],
)
def test_archives_of_articles_have_limits(
    parts: list[str], message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(semeval, "MAX_ARTICLES", 20)
    monkeypatch.setattr(semeval, "MAX_ELEMENT_BYTES", 100_000)
    monkeypatch.setattr("peekbench.data.loading.ALWAYS_ALLOWED", 2**20)
    task = "hyperpartisan_news_detection"
    branch = write_repository(task, tmp_path)
    write_xml(branch / LAYOUTS[task].files[0], *parts)
    with pytest.raises(DataError, match=message) as caught:
        load_dataset(f"hf.{task}", {"data_dir": str(tmp_path)})
    assert "articles-training-bypublisher" in str(caught.value)
    assert "damaged" not in str(caught.value)


def test_a_label_without_its_value_is_an_error(tmp_path: Path) -> None:
    task = "hyperpartisan_news_detection"
    branch = write_repository(task, tmp_path)
    write_xml(branch / LAYOUTS[task].files[1], "<articles><article id='0000000'/></articles>")
    with pytest.raises(DataError, match="ground-truth.* article 1 has no attribute 'hyperpartisan'"):
        load_dataset(f"hf.{task}", {"data_dir": str(tmp_path)})
