"""The columns of the results table, and the one table of scores from which they follow."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from peekbench.records.scores import SCORES
from peekbench.results import COLUMNS
from peekbench.results.columns import USER_COLUMNS

DOCUMENTATION = Path(__file__).parents[3] / "docs" / "results-table.md"

# Edits the file of the scores before any other module imports it.
ADD_A_SCORE = """
import importlib.util, json, sys
from pathlib import Path

spec = importlib.util.find_spec("peekbench.records.scores")
source = Path(spec.origin).read_text()
end = source.index("\\n)\\n", source.index("SCORES: tuple"))
added = '''
    Score(
        "share_wrong", "negative error rate", "fraction",
        {"classification": lambda data: 1 - accuracy(data)}, is_higher_better=False, synonyms=("wrong",),
    ),'''
scores = importlib.util.module_from_spec(spec)
sys.modules[spec.name] = scores
exec(compile(source[:end] + added + source[end:], spec.origin, "exec"), vars(scores))

from peekbench.execution.runner import run
from peekbench.results import load_results
from peekbench.results.analyze import AnalysisOptions, analyze
from peekbench.spec.components import AnalysisSpec, make_component
from peekbench.spec.experiment import make_spec
from peekbench.store.reader import Store

path = run(make_spec(json.loads(sys.argv[1]), folder=Path())).store
with Store.open(path) as store:
    stored = store.result_columns()["share_wrong"]
results = load_results(path)
about_it = make_component(AnalysisSpec, "permutation", {"score": "share_wrong"})
print(json.dumps({
    "stored": stored,
    "results": results["share_wrong"].tolist(),
    "accuracy": results["score"].tolist(),
    "reported": [
        dict(zip(table.spread()[0], row))
        for analysis in analyze(results, AnalysisOptions(["summary", about_it])).analyses
        for table in analysis.tables
        for row in table.spread()[1]
        if table.title.startswith("Bias and boost by score")
    ],
}))
"""


@pytest.mark.slow
def test_a_score_is_added_in_one_place(make_raw: Callable[..., dict[str, Any]]) -> None:
    raw = json.dumps(make_raw(methods=["toy.vote"]))
    done = subprocess.run([sys.executable, "-c", ADD_A_SCORE, raw], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    seen = json.loads(done.stdout)
    assert seen["stored"] == seen["results"] == pytest.approx([1 - accuracy for accuracy in seen["accuracy"]])
    assert [row["negative error rate"] for row in seen["reported"]] == pytest.approx(
        [row["accuracy"] for row in seen["reported"]]
    )
    assert {row["effect"] for row in seen["reported"]} == {"bias", "boost"}


def test_every_score_is_a_column() -> None:
    names = [column.name for column in COLUMNS]
    start = names.index(SCORES[0].name)
    assert names[start : start + len(SCORES)] == [score.name for score in SCORES]


def test_the_documentation_describes_every_column_and_its_synonyms() -> None:
    lines = DOCUMENTATION.read_text(encoding="utf-8").splitlines()
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in lines if line.startswith("| `")]
    documented = {row[0]: (row[1], row[-1]) for row in rows if len(row) == 5}
    expected = {f"`{c.name}`": (c.type, ", ".join(f"`{name}`" for name in c.synonyms)) for c in USER_COLUMNS}
    assert documented == expected
