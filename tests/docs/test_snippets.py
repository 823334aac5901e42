"""Blocks of code in the documentation run, or are checked."""

from __future__ import annotations

from collections import Counter
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


def test_table_of_blocks() -> None:
    """Print how the blocks of each language are treated: `pytest tests/docs/test_snippets.py -k table -s`."""
    snippets = [snippet for page in WITH_CODE.values() for snippet in find_snippets(page)]
    counts = Counter((snippet.language, snippet.treatment) for snippet in snippets)
    print(f"\n{len(snippets)} blocks on {len(WITH_CODE)} pages")
    for (language, treatment), number in sorted(counts.items()):
        print(f"{language:<8} {treatment:<9} {number:>4}")
    not_run = [snippet for snippet in snippets if snippet.reason]
    for snippet in not_run:
        print(f"not run: {snippet.language}: {snippet.reason}")
    assert len(not_run) <= len(snippets) / 10
