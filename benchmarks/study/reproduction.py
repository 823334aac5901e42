"""Writes docs/reproduction.md: every available number of the study, compared with the result of peekbench on its data.

Numbers of the study are those printed in arXiv 2410.00179 and in its published notebooks (study_numbers.py). FOLDER
contains the published accuracies, few_shot/m100/nN/MODEL/TASK/accuracies.csv and zero_shot/...; STORE is the store of
specs/paper/pca.yaml, which takes two minutes on two cores. The specs specs/paper/analysis_*.yaml define the analyses.
The script takes about six minutes on one core.

    python benchmarks/study/reproduction.py FOLDER [--pca STORE] [--output docs/reproduction.md]
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
import pandas as pd
from pages import markdown, pick, picture, points, rows
from reproduction_simulated import checks, overconfidence, pca, shares
from reproduction_tables import SPECS, run
from study_numbers import EVALUATED_MODELS, NOTEBOOKS, SAMPLED, SIZES, TABLE_1, TRAINING_RUNS, TRUNCATED

from peekbench import Analysis, load_results
from peekbench.spec.experiment import load_spec

TEMPLATE = Path(__file__).with_name("reproduction_template.md")
ARMS, RUNS_PER_TRIAL = 3, 5  # base is trained once, extra and test twice: on texts, then on classes


def main() -> None:
    """Write the page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, help="the published accuracies")
    parser.add_argument("--pca", type=Path, help="store of specs/paper/pca.yaml")
    parser.add_argument("--repeats", type=int, default=400, help="data sets without bias")
    parser.add_argument("--data-sets", type=int, default=1000, help="data sets with known biases")
    parser.add_argument("--slices", type=int, default=10_000, help="slices without replication")
    parser.add_argument("--output", type=Path, default=Path("docs/reproduction.md"))
    arguments = parser.parse_args()
    few, zero = (load_results(arguments.folder / name) for name in ("few_shot", "zero_shot"))
    folder = arguments.output.parent / "figures"
    folder.mkdir(parents=True, exist_ok=True)
    parts = {
        **design(), **counts(few), **table_1(few), **posteriors(few, zero, folder), **section_9(zero),
        **shares(few, zero, arguments.slices, folder), **section_8(few, zero),
        **checks(few, arguments.data_sets, folder), **pca(arguments.pca, folder),
        **overconfidence(few, arguments.repeats), **base_arms(few),
    }  # fmt: skip
    arguments.output.write_text(TEMPLATE.read_text("utf-8").format(**parts), encoding="utf-8")


def design() -> dict[str, str]:
    """Return the numbers of trials of the few-shot experiment, from its spec."""
    spec = load_spec(SPECS / "few_shot_bert_gpt2.yaml")
    repeats = spec.design.num_subsamples
    assert isinstance(repeats, dict)
    trials = len(spec.tasks) * len(spec.methods) * len(spec.design.num_train) * sum(repeats.values())
    body = [
        ["evaluated models", f"{EVALUATED_MODELS:,}", f"**{trials * ARMS:,}**"],
        ["training runs", f"{TRAINING_RUNS:,}", f"**{trials * RUNS_PER_TRIAL:,}**"],
        ["time", "about 5 days of one T4", "not run; [steps are timed](performance.md)"],
    ]
    return {"design": markdown(["", "the study", "`few_shot_bert_gpt2.yaml`"], body)}


def counts(few: pd.DataFrame) -> dict[str, str]:
    """Return how many counts are one too low if accuracy times n is truncated instead of rounded."""
    right = few["score"].to_numpy() * few["num_test"].to_numpy()
    is_low = np.trunc(right) != np.round(right)
    return {
        "truncated_study": f"{TRUNCATED:,}",
        "truncated": f"{is_low.sum():,}",
        "num_counts": f"{len(few):,}",
        "truncated_at": ", ".join(str(int(count)) for count in np.unique(np.round(right[is_low]))),
    }


def truncate(results: pd.DataFrame) -> pd.DataFrame:
    """Return the scores that correspond to the study's truncated counts."""
    sizes = results["num_test"].astype("float64")
    return results.assign(score=np.trunc(results["score"] * sizes) / sizes)


def table_1(few: pd.DataFrame) -> dict[str, str]:
    """Compare the means over tasks with Table 1."""
    means = rows(run("table1", few)[0], "Boost and bias over these tasks")
    available = sorted(few["num_train"].unique().tolist())
    body, same, ratios = [], 0, []
    for (num_train, model, effect), study_values in TABLE_1.items():
        digits = 1 if effect == "boost" else 2
        cells = [f"m={num_train}, {model}, {effect}"]
        for size, study in zip(SIZES, study_values, strict=True):
            if num_train not in available:
                cells.append(f"{study}, no scores")
                continue
            row = pick(means, model=model, num_test=size, effect=effect)
            ours = f"{row['mean'] * 100:.{digits}f}"
            same += ours == study
            ratios += [abs(row["mean"] / row["se"])] if effect == "bias" else []
            cells.append(f"{study}, **{ours}** ± {row['se'] * 100:.2f}")
        body.append(cells)
    table = markdown(["", *(f"n={size}" for size in SIZES)], body)
    return {"table_1": table, "same": str(same), "largest_ratio": f"{max(ratios):.1f}"}


def posteriors(few: pd.DataFrame, zero: pd.DataFrame, folder: Path) -> dict[str, str]:
    """Compare posteriors with those of the notebooks and of MCMC, and draw figures 2 to 4."""
    analyses = {"few-shot": run("posteriors", few), "zero-shot": run("posteriors", zero)}
    truncated = {"few-shot": run("posteriors", truncate(few)), "zero-shot": run("posteriors", truncate(zero))}
    title = "Boost and bias, preset"
    fits, truncated_fits = (
        {data: [rows(analysis, title) for analysis in presets] for data, presets in by_data.items()}
        for by_data in (analyses, truncated)
    )
    body = []
    for (source, effect), (mean, sd) in NOTEBOOKS.items():
        data, _, size = source.partition(", n=")
        cells = [source, effect, f"{mean} ({sd})"]
        for fit in (truncated_fits[data][1], fits[data][1]):
            all_models = [row for row in fit if row["log-odds"] is not None]
            row = pick(all_models, num_test=int(size), effect=effect)
            cells.append(f"**{row['log-odds']:.4f}** ({row['sd of log-odds']:.4f})")
        body.append(cells)
    moved = max(
        abs(first["log-odds"] - second["log-odds"])
        for data in fits
        for fit, truncated_fit in zip(fits[data][:2], truncated_fits[data][:2], strict=True)
        for first, second in zip(fit, truncated_fit, strict=True)
        if first["log-odds"] is not None
    )
    by_size = [[pick(fit, num_test=size, effect="bias", model="all") for fit in fits["few-shot"]] for size in SIZES]
    effects = [
        [
            f"n={size}",
            *(f"{points(row['mean'])} [{points(row['mean, low'])}, {points(row['mean, high'])}]" for row in presets),
        ]
        for size, presets in zip(SIZES, by_size, strict=True)
    ]
    sampled = []
    for number, preset in enumerate(("paper", "random_slopes")):
        for num_test in SIZES:
            row = pick(truncated_fits["few-shot"][number], num_test=num_test, effect="bias", model="all")
            ours = f"**{row['log-odds']:.4f}** [{row['log-odds, low']:.4f}, {row['log-odds, high']:.4f}]"
            sampled.append([f"`{preset}`, n={num_test}", SAMPLED[preset, num_test], ours])
    excludes = [
        [
            f"n={size}"
            for size, row in zip(SIZES, column, strict=True)
            if row["log-odds, low"] * row["log-odds, high"] > 0
        ]
        for column in zip(*by_size, strict=True)
    ]
    return {
        "moved": f"{moved:.4f}",
        "notebooks": markdown(["data", "effect", "the study", "here, truncated counts", "here, rounded counts"], body),
        "sampled": markdown(["", "MCMC", "here, truncated counts"], sampled),
        "predictive": markdown(["", "`paper`", "`random_slopes`", "`calibrated`"], effects),
        "paper_excludes": ", ".join(excludes[0]) or "no size",
        "slopes_exclude": ", ".join(excludes[1]) or "no size",
        "predictive_figure": picture(
            analyses["few-shot"][0], "Posterior predictive distribution of the average bias", folder / "predictive.svg"
        ),
        "posterior_figure": picture(analyses["few-shot"][2], "Posterior of the average bias", folder / "posterior.svg"),
        "r_hat": f"{_largest_r_hat(analyses['few-shot'][2]):.3f}",
    }


def _largest_r_hat(analysis: Analysis) -> float:
    checks = rows(analysis, "Checks of the fits")
    return max(float(row["value"]) for row in checks if row["check"].startswith("R-hat"))


def section_9(zero: pd.DataFrame) -> dict[str, str]:
    """Return the means of the zero-shot experiment."""
    means = rows(run("table1", zero)[0], "Boost and bias over these tasks")
    body = [
        [row["effect"], f"**{points(row['mean'])}** ± {row['se'] * 100:.2f}",
         f"{points(row['other tasks, low'])} to {points(row['other tasks, high'])}"]
        for row in means
    ]  # fmt: skip
    trials = len(zero) // zero["arm"].nunique()
    return {
        "section_9": markdown(["zero-shot, n=100", "mean", "95%, for other tasks"], body),
        "zero_trials": str(trials),
    }


def section_8(few: pd.DataFrame, zero: pd.DataFrame) -> dict[str, str]:
    """Return the smallest adjusted p-value of each configuration."""
    name = "adjusted p, test > extra"
    body = []
    for data, results in (("few-shot", few), ("zero-shot", zero)):
        tests = rows(run("permutation", results)[0], "Permutation tests of the bias")
        for model, size in dict.fromkeys((row.get("model", ""), row.get("num_test", 100)) for row in tests):
            by_task = [row for row in tests if (row.get("model", ""), row.get("num_test", 100)) == (model, size)]
            smallest = min(by_task, key=lambda row: row[name])
            two_sided = min(row["adjusted p"] for row in by_task)
            body.append(
                [f"{data} {model}".strip(), f"n={size}", f"{smallest[name]:.3f}", smallest["task"], f"{two_sided:.3f}"]
            )
    return {"section_8": markdown(["data", "n", "smallest adjusted p", "task", "smallest, two-sided"], body)}


def base_arms(few: pd.DataFrame) -> dict[str, str]:
    """Return base accuracies by size, and the errors that `consistency` finds."""
    summary, consistency = run("table1", few)
    scores = rows(summary, "Leaderboard")
    base = [
        [model, *(f"{pick(scores, model=model, num_test=size)['base']:.3f}" for size in SIZES)]
        for model in ("bert", "gpt2")
    ]
    errors = [
        [str(row[name]) for name in ("finding", "location", "evidence")]
        for row in rows(consistency, "")
        if row["severity"] == "error"
    ]
    return {
        "base": markdown(["base accuracy", *(f"n={size}" for size in SIZES)], base),
        "errors": markdown(["error", "location", "evidence"], errors),
    }


if __name__ == "__main__":
    main()
