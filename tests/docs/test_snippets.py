"""Blocks of code in the documentation run, or are checked."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("sybil")
pytest.importorskip("matplotlib")

from doc_commands import ROOT
from doc_snippets import find_snippets, pages, run_snippets

WITH_CODE = {str(page.relative_to(ROOT)): page for page in pages() if find_snippets(page)}


@pytest.mark.slow
@pytest.mark.parametrize("page", WITH_CODE)
def test_blocks_of_code_work(page: str, readers_folder: Path) -> None:
    problems = run_snippets(WITH_CODE[page], readers_folder)
    assert not problems, "\n".join(problems)


def test_few_blocks_are_not_run() -> None:
    snippets = [snippet for page in WITH_CODE.values() for snippet in find_snippets(page)]
    assert sum(bool(snippet.reason) for snippet in snippets) <= len(snippets) / 10
