"""Freezes what peekbench reports, so that code can be simplified without changing a result.

Small runs, and tables of scores in all documented forms. Reports are stored without times, paths, versions and
machines. `compare` prints what changed and ends with status 1 if anything did. `tests/core/test_mistakes.py` follows
the messages.

    python benchmarks/frozen.py capture FOLDER [--only runs tables]
    python benchmarks/frozen.py compare FOLDER [--only runs tables]
"""

from __future__ import annotations

import argparse
import contextlib
import difflib
import io
import json
import os
import re
import shutil
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from peekbench.cli.app import app
from peekbench.errors import PeekbenchError
from peekbench.results import load_results
from peekbench.yaml_loader import read_yaml

ROOT = Path(__file__).parents[1]
FIXTURES = ROOT / "tests" / "fixtures"
sys.path.append(str(FIXTURES))
os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [str(FIXTURES), os.environ.get("PYTHONPATH")]))

VOLATILE = {
    "provenance", "sessions", "command", "environment", "code", "versions", "created", "hosts", "identity", "digest",
    "seconds", "schema_version", "traceback",
}  # fmt: skip
TIMES = re.compile(
    r"\d+(\.\d+)? ?(s|ms|min|h|MB|GB|seconds)\b|\d{4}-\d\d-\d\d[T ][\d:.+]*Z?"
    r"|/tmp/[\w/.-]*|[0-9a-f]{12,}|/\S*, line \d+"
)
COSTS = re.compile(r"second|time|memory|version|date", re.IGNORECASE)
"""Titles of tables and names of columns that differ between repetitions of a run."""
MAX_DIFFERENCES = 40  # lines printed for each case

SMALL = {"num_train": 12, "num_test": 30, "num_subsamples": 4}
RUNS: dict[str, dict[str, Any]] = {
    "toy": {"tasks": ["toy.words", {"use": "toy.words", "name": "b", "options": {"seed": 1}}],
            "methods": ["toy.vote", "toy.constant"]},
    "regression": {"tasks": [{"use": "tabular.regression", "options": {"num_rows": 200}}],
                   "methods": ["tabular.pca", "tabular.screening"]},
    "features": {"tasks": ["tabular.classification"], "methods": ["tabular.pca", "controls.null"]},
    "doses": {"tasks": ["toy.words"], "methods": ["toy.vote", "classic.self_training"],
              "arms": ["base", "extra", "test", {"mix": 0.25}, {"mix": 0.5}],
              "design": {**SMALL, "crossover": False}},
    "failures": {"tasks": ["toy.words"], "methods": ["toy.vote", {"use": "toy.faulty", "options": {"error": "raise"}}]},
    "looks": {"tasks": ["toy.words"], "methods": ["toy.vote", {"use": "controls.leak", "options": {"share": 0.5}}],
              "design": {**SMALL, "num_subsamples": 40, "stop": {"looks": 4}}},
    "sizes": {"tasks": ["toy.words"], "methods": ["toy.vote", "classic.lsa"],
              "design": {"num_train": [12, 24], "num_test": [30, 60], "num_subsamples": 4}},
}  # fmt: skip


def quickstart() -> dict[str, Any]:
    """Return the spec of the quickstart with few subsamples."""
    spec: dict[str, Any] = read_yaml((ROOT / "specs" / "quickstart.yaml").read_text("utf-8"), "quickstart")
    return spec | {"design": {**spec["design"], "num_subsamples": 6}}


def simulated(arms: tuple[str, ...] = ("base", "extra", "test"), seed: int = 0) -> pd.DataFrame:
    """Return accuracies of two methods on two tasks, one row for each arm."""
    rng = np.random.default_rng(seed)
    keys = [(t, m, s, a) for t in ("news", "mail") for m in ("lsa", "tapt") for s in range(8) for a in arms]
    table = pd.DataFrame(keys, columns=["task", "method", "subsample", "arm"])
    gain = table["arm"].map({"base": -0.05, "test": 0.04}).fillna(0.0) * (table["method"] == "lsa")
    return table.assign(num_test=200, score=rng.binomial(200, 0.7 + gain) / 200)


def wide(table: pd.DataFrame, values: str = "score") -> pd.DataFrame:
    """Return a table with a column for each arm."""
    keys = [name for name in table.columns if name not in ("arm", "score", values)]
    return table.pivot(index=keys, columns="arm", values=values).reset_index().rename_axis(columns=None)


def texts() -> pd.DataFrame:
    """Return answers to single texts of three training seeds."""
    rng = np.random.default_rng(1)
    arms = ("base", "extra", "test")
    keys = [(t, s, a, f"q{n}") for t in ("news", "mail") for s in range(3) for a in arms for n in range(20)]
    table = pd.DataFrame(keys, columns=["task", "seed", "arm", "text"])
    return table.assign(correct=(rng.random(len(table)) < 0.6).astype(int))


def tables() -> dict[str, tuple[str | pd.DataFrame, list[str]]]:
    """Return tables as CSV or data frames, with the arguments of `peekbench analyze`."""
    plain = simulated()
    side = wide(plain)
    losses = plain.assign(score=1 - plain["score"]).drop(columns="num_test")
    own_arms = plain.assign(arm=plain["arm"].map({"base": "none", "extra": "independent", "test": "transductive"}))
    renamed = ["--map", "none=base", "--map", "independent=extra", "--map", "transductive=test"]
    sized = plain.assign(num_test=plain["task"].map({"news": 200, "mail": 400}))
    models = pd.DataFrame(
        {
            "model": [f"m{n}" for n in range(12)] * 2,
            "benchmark": ["a"] * 12 + ["b"] * 12,
            "num_correct": [*range(40, 52), *range(50, 62)],
            "num_test": 100,
        }
    )
    example = (ROOT / "docs" / "guides" / "example_scores.csv").read_text("utf-8")
    doses = wide(simulated(("base", "extra", "test", "mix-0.25", "mix-.5")))
    answers = texts()
    return {
        "guide": (example, ["--ignore", "notes"]),
        "guide consistency": (example, ["--ignore", "notes", "--analysis", "consistency"]),
        "guide unknown": (example, []),
        "long": (plain, []),
        "long shuffled": (plain.sample(frac=1, random_state=1), []),
        "wide": (side, []),
        "wide unnumbered": (side.drop(columns="subsample"), []),
        "wide by order": (side.drop(columns="subsample"), ["--pair-by-order"]),
        "wide counts": (wide(plain.assign(n=(plain["score"] * 200).round().astype(int)), "n").rename(
            columns={arm: f"num_correct_{arm}" for arm in ("base", "extra", "test")}), []),
        "two arms": (side.drop(columns="base"), []),
        "doses": (doses, []),
        "synonyms": (plain.rename(columns={"task": "Dataset", "method": "system", "subsample": "Random Seed",
                                           "num_test": "N", "score": "Acc"}), []),
        "spellings": (side.rename(columns={"num_test": "Num-Test", "extra": "Accuracy (extra)",
                                           "test": "acc_test"}), []),
        "combined": (plain.assign(seed=plain["subsample"] // 4, fold=plain["subsample"] % 4).drop(columns="subsample"),
                     ["--map", "seed=subsample", "--map", "fold=subsample"]),
        "mapped": (plain.rename(columns={"method": "config", "subsample": "draw_no"}),
                   ["--map", "config=method", "--map", "draw_no=subsample"]),
        "own arms": (own_arms, renamed),
        "own column of arms": (own_arms.rename(columns={"arm": "mode"}), [*renamed, "--map", "mode=arm"]),
        "own arms side by side": (wide(own_arms), renamed),
        "percent": (side.assign(**{arm: side[arm] * 100 for arm in ("base", "extra", "test")}), ["--percent"]),
        "percent signs": (plain.assign(score=(plain["score"] * 100).round(1).astype("str") + "%"), []),
        "percent in name": (plain.assign(score=plain["score"] * 100).rename(columns={"score": "acc %"}),
                            ["--map", "acc %=score", "--percent"]),
        "decimal commas": (side.to_csv(index=False, sep=";", decimal=","), []),
        "index": (plain.to_csv(), ["--ignore", "Unnamed: 0"]),
        "error rate": (losses.rename(columns={"score": "error_rate"}), []),
        "word error rate": (losses.rename(columns={"score": "WER"}), ["--region", "0.01"]),
        "log loss": (losses.rename(columns={"score": "log_loss"}), ["--map", "log_loss=loss", "--region", "0.01"]),
        "mapped loss": (losses.rename(columns={"score": "mae5"}), ["--map", "mae5=loss", "--region", "0.01"]),
        "lower is better": (losses, ["--map", "score=loss", "--region", "0.01"]),
        "unknown unit": (plain.drop(columns="num_test").assign(score=plain["score"] * 30), ["--region", "0.5"]),
        "no region": (plain.drop(columns="num_test").assign(score=plain["score"] * 30), []),
        "sizes of tasks": (sized, []),
        "several sizes": (pd.concat([plain, plain.assign(num_test=400)]), []),
        "models": (pd.concat([plain.assign(model="bert"), plain.assign(model="gpt2")]), []),
        "controls": (plain.assign(control=plain["method"].map({"lsa": "", "tapt": "negative"})), []),
        "measures": (plain.assign(log_loss=1 - plain["score"], macro_f1=plain["score"], majority=0.5), []),
        "incomplete": (plain.iloc[:-1], []),
        "incomplete allowed": (plain.iloc[:-1], ["--allow-incomplete"]),
        "texts": (answers, []),
        "texts side by side": (answers.pivot(index=["task", "seed", "text"], columns="arm", values="correct")
                               .reset_index().rename_axis(columns=None), []),
        "texts of one run": (answers[answers["seed"] == 0].drop(columns="seed"), []),
        "texts with scores": (answers.assign(score=0.5 + answers["correct"] / 3).drop(columns="correct"), []),
        "texts counted": (answers.assign(num_correct=3 * answers["correct"], num_test=4).drop(columns="correct"), []),
        "models without arms": (models, ["--analysis", "summary.selection"]),
        "models without pairs": (models, []),
    }  # fmt: skip


def stable(value: Any) -> Any:
    """Return a JSON value without what differs between repetitions."""
    if isinstance(value, dict):
        if "rows" in value and "columns" in value:
            kept = [n for n, column in enumerate(value["columns"]) if not COSTS.search(str(column))]
            rows = [] if COSTS.search(str(value.get("title"))) else value["rows"]
            value = {**value, "rows": [[row[n] for n in kept] for row in rows]}
        return {key: stable(item) for key, item in value.items() if key not in VOLATILE}
    if isinstance(value, list):
        return [stable(item) for item in value]
    if isinstance(value, float):
        return float(f"{value:.10g}")
    return TIMES.sub("...", value) if isinstance(value, str) else value


def outcome(arguments: list[str], report: str = "") -> dict[str, Any]:
    """Run a command in this process, and return its status, its message and the report that it wrote."""
    status, errors = 0, io.StringIO()
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(errors):
        try:
            app(arguments)
        except PeekbenchError as error:
            status = 2
            errors.write(f"peekbench: {error}")
        except SystemExit as ended:
            status = ended.code if isinstance(ended.code, int) else 2
    found = sorted(Path("out").rglob(report)) if report else []
    content = [stable(json.loads(path.read_text("utf-8"))) for path in found]
    message = "" if status in (0, 3) else TIMES.sub("...", errors.getvalue())
    return {"status": status, "message": message.splitlines(), "reports": content}


def run(spec: dict[str, Any], name: str) -> dict[str, Any]:
    """Run a spec, and return its report and scores."""
    whole = {"name": name, "seed": 7, "design": SMALL, **spec, "executor": {"use": "local", "options": {"workers": 1}}}
    Path("spec.yaml").write_text(json.dumps(whole), "utf-8")
    found = outcome(["run", "spec.yaml", "--reports", "out"], "report.json")
    stores = list(Path("runs").glob("*.sqlite"))
    scores = load_results(stores[0]).drop(columns=["fit_seconds", "predict_seconds"]) if stores else pd.DataFrame()
    return found | {"scores": scores.to_csv(index=False, float_format="%.10g").splitlines()}


def read(content: str | pd.DataFrame, arguments: list[str]) -> dict[str, Any]:
    """Analyze a table."""
    text = content if isinstance(content, str) else content.to_csv(index=False)
    Path("scores.csv").write_text(text, "utf-8")
    return outcome(["analyze", "scores.csv", *arguments, "--reports", "out"], "report.json")


def read_tree() -> dict[str, Any]:
    """Analyze a folder tree in the form of the study's published accuracies."""
    rng = np.random.default_rng(2)
    for model in ("bert", "gpt2"):
        for task in ("news", "mail"):
            place = Path("few_shot", "m100", "n50", model, task)
            place.mkdir(parents=True)
            scores = pd.DataFrame(rng.binomial(50, 0.7, (6, 3)) / 50, columns=["base", "extra", "test"])
            scores.assign(majority=0.5, majority_all=0.5, num_classes=2).to_csv(place / "accuracies.csv", index=False)
    return outcome(["analyze", "few_shot", "--reports", "out"], "report.json")


def cases(kinds: list[str]) -> Iterator[tuple[str, Callable[[], dict[str, Any]]]]:
    """Iterate over the cases, with functions that return their outcomes."""
    if "runs" in kinds:
        for name, spec in {**RUNS, "quickstart": quickstart()}.items():
            yield f"run {name}", partial(run, spec, name)
    if "tables" in kinds:
        for name, (content, arguments) in tables().items():
            yield f"table {name}", partial(read, content, arguments)
        yield "table tree", read_tree


def main() -> int:
    """Capture or compare."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("action", choices=["capture", "compare"])
    parser.add_argument("folder", type=Path)
    kinds = ["runs", "tables"]
    parser.add_argument("--only", nargs="+", choices=kinds, default=kinds)
    arguments = parser.parse_args()
    folder = arguments.folder.absolute()
    folder.mkdir(parents=True, exist_ok=True)
    warnings.simplefilter("ignore")
    num_cases = num_changed = 0
    for name, make in cases(arguments.only):
        num_cases += 1
        work = Path(tempfile.mkdtemp())
        os.chdir(work)
        text = json.dumps(make(), indent=1, sort_keys=True) + "\n"
        os.chdir(folder)
        shutil.rmtree(work)
        path = folder / f"{re.sub(r'[^a-z0-9]+', '-', name.lower())}.json"
        if arguments.action == "capture":
            path.write_text(text, "utf-8")
        elif not path.exists() or path.read_text("utf-8") != text:
            num_changed += 1
            before = path.read_text("utf-8").splitlines() if path.exists() else []
            lines = list(difflib.unified_diff(before, text.splitlines(), "before", "after", lineterm="", n=0))[2:]
            print(f"\n{name}: {len(lines)} lines", *lines[:MAX_DIFFERENCES], sep="\n  ", flush=True)
    print(f"{num_cases} cases, {num_changed} changed")
    return int(num_changed > 0)


if __name__ == "__main__":
    sys.exit(main())
