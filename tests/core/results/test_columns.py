"""The columns of users' tables and their documentation."""

from __future__ import annotations

from pathlib import Path

from peekbench.results.columns import USER_COLUMNS

DOCUMENTATION = Path(__file__).parents[3] / "docs" / "results-table.md"


def test_the_documentation_describes_every_column_and_its_synonyms() -> None:
    lines = DOCUMENTATION.read_text(encoding="utf-8").splitlines()
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in lines if line.startswith("| `")]
    documented = {row[0]: (row[1], row[-1]) for row in rows if len(row) == 5}
    expected = {f"`{c.name}`": (c.type, ", ".join(f"`{name}`" for name in c.synonyms)) for c in USER_COLUMNS}
    assert documented == expected
