"""The notebooks in `examples/`, whose cells run one after the other in one process, without a kernel."""

from __future__ import annotations

import ast
import json
from pathlib import Path
from typing import Any

import pytest

EXAMPLES = Path(__file__).parents[2] / "examples"


def run_cells(notebook: Path) -> list[Any]:
    """Run the cells of code, and return the value of the last expression of each."""
    cells = json.loads(notebook.read_text(encoding="utf-8"))["cells"]
    namespace: dict[str, Any] = {"__name__": "__main__"}
    values = []
    for cell in cells:
        if cell["cell_type"] == "code":
            assert cell["outputs"] == []
            body = ast.parse("".join(cell["source"])).body
            last = body.pop() if isinstance(body[-1], ast.Expr) else None
            exec(compile(ast.Module(body, []), notebook.name, "exec"), namespace)
            if isinstance(last, ast.Expr):
                values.append(eval(compile(ast.Expression(last.value), notebook.name, "eval"), namespace))
    return values


@pytest.mark.slow
@pytest.mark.parametrize("name", ["own_method", "own_scores", "reading_a_run"])
def test_notebook_runs(name: str) -> None:
    plt = pytest.importorskip("matplotlib.pyplot")
    pytest.importorskip("arviz_stats")
    values = run_cells(EXAMPLES / f"{name}.ipynb")
    plt.close("all")
    shown = [value._repr_html_() for value in values if hasattr(value, "_repr_html_")]
    assert shown
    assert all(shown)


def test_every_notebook_is_tested() -> None:
    assert {path.stem for path in EXAMPLES.glob("*.ipynb")} == {"own_method", "own_scores", "reading_a_run"}
