"""The notebooks in `examples/` run in real kernels; `tox run -e docs` has what they need."""

from __future__ import annotations

import asyncio
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("ipykernel")
pytest.importorskip("matplotlib")
nbformat = pytest.importorskip("nbformat")
nbclient = pytest.importorskip("nbclient")

NOTEBOOKS = sorted((Path(__file__).parents[2] / "examples").glob("*.ipynb"))
SECONDS = 300  # that a cell may take


async def run_notebooks(folder: Path) -> dict[str, Any]:
    """Run all notebooks at the same time, each in a folder of its own, and return them with their outputs."""
    notebooks = {path.stem: nbformat.read(path, 4) for path in NOTEBOOKS}
    runs = []
    for name, notebook in notebooks.items():
        assert all(not cell.get("outputs") for cell in notebook.cells), "keep notebooks without outputs"
        (folder / name).mkdir()
        resources = {"metadata": {"path": str(folder / name)}}
        client = nbclient.NotebookClient(
            notebook, timeout=SECONDS, kernel_name="python3", resources=resources, coalesce_streams=True
        )
        runs.append(client.async_execute())
    await asyncio.gather(*runs)
    return notebooks


@pytest.mark.slow
@pytest.mark.filterwarnings("default")  # those of Jupyter and its event loop
def test_notebooks_run(tmp_path: Path) -> None:
    shown: dict[str, Counter[str]] = {}
    for name, notebook in asyncio.run(run_notebooks(tmp_path)).items():
        shown[name] = Counter()
        for cell in notebook.cells:
            outputs = cell.get("outputs", ())
            assert len(outputs) <= 3, (name, cell.source, outputs[:5])
            data = [output.get("data", {}) for output in outputs]
            shown[name].update(kind for kinds in data for kind in kinds)
            shown[name]["svg"] += sum("<svg" in kinds.get("text/html", "") for kinds in data)
    assert set(shown) == {"own_method", "own_scores", "reading_a_run"}
    assert all(kinds["text/html"] for kinds in shown.values()), "reports and tables"
    assert shown["own_scores"]["svg"], "figures"
    assert shown["reading_a_run"]["image/png"] == 1, "a figure of matplotlib"
    assert {path.name for path in (tmp_path / "reading_a_run" / "reports" / "example").iterdir()} >= {"report.html"}
