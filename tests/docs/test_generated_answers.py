"""The task in the guide on generated answers is short."""

from __future__ import annotations

from pathlib import Path

from doc_snippets import find_snippets

GUIDE = Path(__file__).parents[2] / "docs" / "guides" / "generated-answers.md"


def test_a_task_with_its_grader_and_a_method_is_one_short_file() -> None:
    """The tests of snippets run it."""
    (example,) = [snippet for snippet in find_snippets(GUIDE) if snippet.file == "my_days.py"]
    assert len(example.source.strip().splitlines()) <= 25
    for name in ("grade", "load_days", "fit"):
        assert f"def {name}(" in example.source
