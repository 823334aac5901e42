"""Writes docs/reproduction.md: what the study printed, compared with the results of peekbench on its published scores.

FOLDERS contain accuracies from the study's repository, https://github.com/kddubey/pretrain-on-test, in folders
few_shot, overtrained, zero_shot and zero_shot_packed (mM/nN/MODEL/TASK/accuracies.csv) and contamination (*.csv). The
specs reproduction_fits.py defines the analyses; pca.yaml is run. Slow parts are kept in the folder --work until
the code, the specs or the scores change, so an interrupted command resumes. published.toml has the printed numbers.

If a FOLDER is a checkout of the study's repository, its instructions are copied to specs/paper/prompts.yml first.

    python benchmarks/study/reproduction.py FOLDER [FOLDER ...] [--work FOLDER] [--output docs/reproduction.md]
"""

from __future__ import annotations

import argparse
import hashlib
import json
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from pages import markdown, pick, points, rows
from reproduction_fits import PUBLISHED, SPECS, Scores, checks, overconfidence, pca, posteriors, run, shares
from scipy.stats import chi2
from study_prompts import DATA, fill_prompts

from peekbench import load_results
from peekbench.execution.provenance import describe_session
from peekbench.results import tidy
from peekbench_summary.estimates import estimate_these_tasks

ROOT = SPECS.parents[1]
TEMPLATE = Path(__file__).with_name("reproduction_template.md")
CODE = (ROOT / "harness", ROOT / "plugins", SPECS, Path(__file__).parent)  # of slow parts, without this file
SIZES = (50, 100, 200, 500)
ARMS, RUNS_PER_TRIAL = 3, 5  # base is trained once, extra and test twice: on texts, then on classes
TREES = ("few_shot", "overtrained", "zero_shot", "zero_shot_packed")
ONE_SIDED = "adjusted p, test > extra"


def main() -> None:
    """Write the page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", nargs="+", type=Path, help="published accuracies, or a checkout")
    parser.add_argument("--prompts", type=Path, default=SPECS / "prompts.yml", help="file of instructions")
    parser.add_argument("--work", type=Path, default=Path("runs/reproduction"), help="folder of slow parts, resumed")
    parser.add_argument("--output", type=Path, default=ROOT / "docs" / "reproduction.md")
    arguments = parser.parse_args()
    checkouts = [each for each in arguments.folders if (each / DATA).is_file()]
    for checkout in checkouts:
        fill_prompts(checkout / DATA, arguments.prompts)
    if checkouts and not any((each / name).is_dir() for each in arguments.folders for name in TREES):
        print(f"no folders {', '.join(TREES)}: {arguments.output} is unchanged")
        return
    scores = load(arguments.folders)
    folder = arguments.output.parent / "figures"
    for needed in (folder, arguments.work):
        needed.mkdir(parents=True, exist_ok=True)
    data = digest(path for each in arguments.folders for path in each.rglob("*.csv"))
    files = (path for each in CODE for path in each.rglob("*") if path.suffix in (".py", ".yaml", ".toml"))
    code = digest(path for path in files if path.name != Path(__file__).name)
    session = describe_session(ROOT)
    machine = f"{session['machine']['processor']}, {session['machine']['cores']} cores, Python {session['python']}"
    parts = {"commit": str(session["commit"])[:12], "machine": machine, "data": data[:12]}
    for part in (design, draws, table_1, section_8, section_9, consistency):
        parts |= part(scores)
    for step in (posteriors, shares, checks, overconfidence, pca):
        parts |= resume(arguments.work, f"{data} {code} {folder.absolute()}", step, scores, folder)
    arguments.output.write_text(TEMPLATE.read_text("utf-8").format(**parts), encoding="utf-8")


def load(folders: Sequence[Path]) -> Scores:
    """Return the published scores by folder."""
    scores = {}
    for name in TREES:
        found = [load_results(folder / name, independent_tasks=True) for folder in folders if (folder / name).is_dir()]
        if not found:
            raise SystemExit(f"no folder {name!r} in {', '.join(map(str, folders))}: add the folder that contains it")
        scores[name] = pd.concat(found, ignore_index=True)
    for path in sorted(path for folder in folders for path in (folder / "contamination").glob("*.csv")):
        table = pd.read_csv(path).assign(task="ag_news", method=path.stem, num_test=500)
        table["subsample"] = table.index
        scores[path.stem] = tidy(table, str(path), ignore=["num_classes", "majority_all"], independent_tasks=True)
    return scores


def digest(paths: Iterable[Path]) -> str:
    """Return a hash of the contents of files."""
    hashes = sorted(hashlib.sha256(path.read_bytes()).hexdigest() for path in paths)
    return hashlib.sha256("".join(hashes).encode()).hexdigest()


def resume(
    work: Path, key: str, step: Callable[[Scores, Path], dict[str, str]], scores: Scores, folder: Path
) -> dict[str, str]:
    """Return the parts of the page that a step makes, from its file if code and scores have not changed."""
    file = work / f"{step.__name__}.json"
    kept: dict[str, Any] = json.loads(file.read_text("utf-8")) if file.is_file() else {}
    if kept.get("key") != key:
        started = time.monotonic()
        kept = {"key": key, "parts": step(scores, folder)}
        file.with_suffix(".part").write_text(json.dumps(kept), encoding="utf-8")
        file.with_suffix(".part").replace(file)
        print(f"{step.__name__}: {time.monotonic() - started:.0f} s", flush=True)
    parts: dict[str, str] = kept["parts"]
    return parts


def design(scores: Scores) -> dict[str, str]:
    """Return the numbers of models and training runs, and of counts that truncation makes one too low."""
    few = scores["few_shot"]
    right = few["score"].to_numpy() * few["num_test"].to_numpy()
    numbers = (len(few), len(few) // ARMS * RUNS_PER_TRIAL, int((np.trunc(right) != np.round(right)).sum()))
    return {name: f"{number:,}" for name, number in zip(("models", "training", "truncated"), numbers, strict=True)}


def draws(scores: Scores) -> dict[str, str]:
    """Return in how many tasks models drew different subsamples, which differ in the share of their largest class."""
    size = ["num_train", "num_test"]
    rows_of_base = pd.concat([scores["few_shot"], scores["overtrained"]]).query("arm == 'base'")
    majority = rows_of_base.pivot(index=[*size, "task", "subsample"], columns="model", values="majority")
    found = []
    for other in ("bert", "gpt2-epochs-2"):
        both = majority[["gpt2", other]].dropna()
        tasks = (both["gpt2"] != both[other]).groupby([*size, "task"]).any().groupby(size).sum()
        found.append(f"up to {tasks.max()} tasks at {(tasks > 0).sum()} of {len(tasks)} sizes")
    return dict(zip(("draws_of_bert", "draws_of_overtrained"), found, strict=True))


def table_1(scores: Scores) -> dict[str, str]:
    """Compare the means over tasks with Table 1, and test all biases jointly."""
    summary = run("table1", scores["few_shot"])[0]
    means = rows(summary, "Boost and bias over these tasks")
    verdicts = rows(summary, "Leaderboard")
    body, different, biases = [], [], []
    for configuration, study_values in PUBLISHED["table_1"].items():
        m, model, effect = configuration.split()
        cells = [f"m={m}, {model}, {effect}"]
        for size, study in zip(SIZES, study_values, strict=True):
            row = pick(means, model=model, num_train=int(m), num_test=size, effect=effect)
            ours = f"{row['mean'] * 100:.{1 if effect == 'boost' else 2}f}"
            cell = f"{ours} ± {row['se'] * 100:.2f}" + f" ({study})" * (ours != study)
            different += [f"{row['mean'] * 100:.4f}"] if ours != study else []
            if effect == "bias":
                biases.append(row)
                verdict = pick(verdicts, model=model, num_train=int(m), num_test=size)["verdict"]
                cell = f"**{cell}**" if verdict == "equivalent" else cell
            cells.append(cell)
        body.append(cells)
    frame = pd.DataFrame(biases)
    statistic = ((frame["mean"] / frame["se"]) ** 2).sum()
    average = frame.assign(variance=frame["se"] ** 2).groupby("model")[["mean", "variance"]].mean()
    average["se"] = (average["variance"] / len(SIZES) / 2) ** 0.5  # two values of m
    average_bound = average["mean"].abs() + 1.96 * average["se"]
    bounds = scores["few_shot"].groupby(["model", "num_train", "num_test"]).apply(largest_bias)
    counts = pd.Series([row["verdict"] for row in verdicts]).value_counts()
    return {
        "table_1": markdown(["", *(f"n={size}" for size in SIZES)], body),
        "same": str(sum(map(len, PUBLISHED["table_1"].values())) - len(different)),
        "different": " and ".join(different),
        "largest_ratio": f"{(frame['mean'] / frame['se']).abs().max():.1f}",
        "joint": f"{statistic:.1f} with {len(frame)} degrees of freedom, p = {chi2.sf(statistic, len(frame)):.2f}",
        "verdicts": ", ".join(f"{count} {verdict}" for verdict, count in counts.items()),
        "averages": " and ".join(
            f"{points(row['mean'])} ± {row['se'] * 100:.2f} ({model})" for model, row in average.iterrows()
        ),
        "average_bounds": " and ".join(f"{bound * 100:.2f}" for bound in average_bound),
        "single_bounds": " and ".join(f"{bound * 100:.1f}" for bound in bounds.groupby("model").max()),
    }


def bias_interval(results: pd.DataFrame) -> tuple[float, float]:
    """Return the 95% interval of the bias, without the adjustments of verdicts."""
    arms = results.pivot(index=["task", "subsample"], columns="arm", values="score")
    biases = (arms["test"] - arms["extra"]).groupby("task").agg(list)
    estimate = estimate_these_tasks(biases.tolist(), 0.95)
    return estimate.low, estimate.high


def largest_bias(results: pd.DataFrame) -> float:
    """Return the size of the largest bias in the 95% interval."""
    return max(map(abs, bias_interval(results)))


def tests_by_task(results: pd.DataFrame) -> pd.DataFrame:
    """Return the permutation tests of each task, adjusted within each configuration."""
    return pd.DataFrame(rows(run("permutation", results)[0], "Permutation tests of the bias"))


def section_8(scores: Scores) -> dict[str, str]:
    """Return boosts, biases and adjusted p-values of the overtrained model."""
    over = scores["overtrained"]
    summary = run("table1", over)[0]
    means = rows(summary, "Boost and bias over these tasks")
    tests = tests_by_task(over).drop(columns="bias")
    body = []
    for (m, n), group in tests.groupby(["num_train", "num_test"]):
        boost, bias = (pick(means, num_train=m, num_test=n, effect=effect) for effect in ("boost", "bias"))
        body.append([
            f"m={m}, n={n}", *(f"{points(row['mean'])} ± {row['se'] * 100:.2f}" for row in (boost, bias)),
            f"{group[ONE_SIDED].min():.3f}",
        ])  # fmt: skip
    smallest = tests.groupby(["num_train", "num_test"])[ONE_SIDED].min()
    return {
        "section_8": markdown(["", "boost", "bias", "smallest adjusted p"], body),
        "over_above": f"{(smallest > 0.5).sum()} of {len(smallest)}",
    }


def section_9(scores: Scores) -> dict[str, str]:
    """Return the effects of the experiments with Mistral-7B, with tests by task."""
    body = []
    for name, results in list(scores.items())[2:]:  # without few_shot and overtrained
        if results["subsample"].nunique() == 1:
            continue
        found = rows(run("table1", results)[0], "Boost and bias over these tasks")
        low, high = map(points, bias_interval(results))
        body.append([
            f"`{name}`",
            *(f"{points(row['mean'])} ± {row['se'] * 100:.2f}" for row in found),
            f"{low} to {high}",
            f"{tests_by_task(results)[ONE_SIDED].min():.2f}",
        ])  # fmt: skip
    headings = ["", "boost", "bias", "bias, 95%", "smallest adjusted p"]
    base = [
        scores[name].query("arm == 'base'").set_index(["task", "subsample"])["score"]
        for name in ("zero_shot", "zero_shot_packed")
    ]
    changed = (base[0] - base[1]).abs()
    return {
        "section_9": markdown(headings, body),
        "mistral_bound": f"{largest_bias(scores['zero_shot']) * 100:.1f}",
        "base_changed": f"{(changed > 0).sum()} of {len(changed)}",
    }


def consistency(scores: Scores) -> dict[str, str]:
    """Return accuracies by size, and the folders in which `consistency` finds no error."""
    configuration = ["arm", "model", "num_train", "num_test"]
    means = scores["few_shot"].groupby(configuration)["score"].mean()
    body = [
        [model, *(f"{means['base', model, 100, size]:.3f}, {means['extra', model, 100, size]:.3f}" for size in SIZES)]
        for model in ("bert", "gpt2")
    ]
    consistent = [
        f"`{name}`"
        for name, results in scores.items()
        if results["subsample"].nunique() > 1
        and all(row.get("severity") != "error" for row in rows(run("table1", results)[-1], ""))
    ]
    return {
        "runs": markdown(["base, extra", *(f"n={size}" for size in SIZES)], body),
        "consistent": ", ".join(sorted(consistent)),
    }


if __name__ == "__main__":
    main()
