"""Writes docs/reproduction.md: every number of the study that is known here, beside what peekbench makes of its data.

Numbers of the study are those printed in arXiv 2410.00179 and in its published notebooks (study_numbers.py). FOLDER
holds the published accuracies, few_shot/m100/nN/MODEL/TASK/accuracies.csv and zero_shot/...; STORE is that of
specs/paper/pca.yaml, which two cores run in two minutes. The analyses are those of specs/paper/analysis_*.yaml. Takes
about six minutes of one core.

    python benchmarks/reproduction.py FOLDER [--pca STORE] [--output docs/reproduction.md]
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from reproduction_simulated import checks, overconfidence, pca, shares
from reproduction_tables import SPECS, markdown, pick, picture, points, rows, run
from study_numbers import EVALUATED_MODELS, NOTEBOOKS, SAMPLED, SIZES, TABLE_1, TRAINING_RUNS, TRUNCATED

from peekbench import Analysis, load_results
from peekbench.spec.experiment import load_spec

if TYPE_CHECKING:
    import pandas as pd

TEMPLATE = Path(__file__).with_name("reproduction_template.md")
ARMS, RUNS_OF_A_TRIAL = 3, 5  # base is trained once, extra and test twice: on texts, then on classes


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("folder", type=Path, help="the published accuracies")
    parser.add_argument("--pca", type=Path, help="store of specs/paper/pca.yaml")
    parser.add_argument("--repeats", type=int, default=400, help="data sets without bias")
    parser.add_argument("--data-sets", type=int, default=1000, help="data sets with known biases")
    parser.add_argument("--slices", type=int, default=10_000, help="slices without replication")
    parser.add_argument("--output", type=Path, default=Path("docs/reproduction.md"))
    asked = parser.parse_args()
    few, zero = (load_results(asked.folder / name) for name in ("few_shot", "zero_shot"))
    folder = asked.output.parent / "figures"
    folder.mkdir(parents=True, exist_ok=True)
    parts = {
        **design(), **counts(few), **table_1(few), **posteriors(few, zero, folder), **section_9(zero),
        **shares(few, zero, asked.slices, folder), **section_8(few, zero), **checks(few, asked.data_sets, folder),
        **pca(asked.pca, folder), **overconfidence(few, asked.repeats), **anomaly(few),
    }  # fmt: skip
    asked.output.write_text(TEMPLATE.read_text("utf-8").format(**parts), encoding="utf-8")


def design() -> dict[str, str]:
    """Trials of the few-shot experiment, from its spec."""
    spec = load_spec(SPECS / "few_shot_bert_gpt2.yaml")
    repeats = spec.design.num_subsamples
    assert isinstance(repeats, dict)
    trials = len(spec.tasks) * len(spec.methods) * len(spec.design.num_train) * sum(repeats.values())
    body = [
        ["evaluated models", f"{EVALUATED_MODELS:,}", f"**{trials * ARMS:,}**"],
        ["training runs", f"{TRAINING_RUNS:,}", f"**{trials * RUNS_OF_A_TRIAL:,}**"],
        ["time", "about 5 days of one T4", "not run; [steps are timed](performance.md)"],
    ]
    return {"design": markdown(["", "the study", "`few_shot_bert_gpt2.yaml`"], body)}


def counts(few: pd.DataFrame) -> dict[str, str]:
    """Counts of right answers that are one low where accuracy times n is cut off instead of rounded."""
    right = few["score"].to_numpy() * few["num_test"].to_numpy()
    low = np.trunc(right) != np.round(right)
    return {
        "truncated_study": f"{TRUNCATED:,}",
        "truncated": f"{low.sum():,}",
        "num_counts": f"{len(few):,}",
        "truncated_at": ", ".join(str(int(count)) for count in np.unique(np.round(right[low]))),
    }


def truncated(results: pd.DataFrame) -> pd.DataFrame:
    """The scores that the study's code made counts of."""
    return results.assign(score=np.trunc(results["score"] * results["num_test"]) / results["num_test"])


def table_1(few: pd.DataFrame) -> dict[str, str]:
    found = rows(run("table1", few)[0], "Boost and bias over these tasks")
    here = sorted(few["num_train"].unique().tolist())
    body, same, ratios = [], 0, []
    for (num_train, model, effect), printed in TABLE_1.items():
        digits = 1 if effect == "boost" else 2
        cells = [f"m={num_train}, {model}, {effect}"]
        for size, paper in zip(SIZES, printed, strict=True):
            if num_train not in here:
                cells.append(f"{paper}, no scores")
                continue
            row = pick(found, model=model, num_test=size, effect=effect)
            ours = f"{row['mean'] * 100:.{digits}f}"
            same += ours == paper
            ratios += [abs(row["mean"] / row["se"])] if effect == "bias" else []
            cells.append(f"{paper}, **{ours}** ± {row['se'] * 100:.2f}")
        body.append(cells)
    table = markdown(["", *(f"n={size}" for size in SIZES)], body)
    return {"table_1": table, "same": str(same), "largest_ratio": f"{max(ratios):.1f}"}


def posteriors(few: pd.DataFrame, zero: pd.DataFrame, folder: Path) -> dict[str, str]:
    analyses = {"few-shot": run("posteriors", few), "zero-shot": run("posteriors", zero)}
    cut = {"few-shot": run("posteriors", truncated(few)), "zero-shot": run("posteriors", truncated(zero))}
    title = "Boost and bias, preset"
    fits, of_cut = (
        {data: [rows(one, title) for one in found] for data, found in analyzed.items()} for analyzed in (analyses, cut)
    )
    body = []
    for (where, effect), (mean, sd) in NOTEBOOKS.items():
        data, _, size = where.partition(", n=")
        cells = [where, effect, f"{mean} ({sd})"]
        for fit in (of_cut[data][1], fits[data][1]):
            of_all = [row for row in fit if row["log-odds"] is not None]
            row = pick(of_all, num_test=int(size), effect=effect)
            cells.append(f"**{row['log-odds']:.4f}** ({row['sd of log-odds']:.4f})")
        body.append(cells)
    moved = max(
        abs(one["log-odds"] - other["log-odds"])
        for data in fits
        for fit, cut_fit in zip(fits[data][:2], of_cut[data][:2], strict=True)
        for one, other in zip(fit, cut_fit, strict=True)
        if one["log-odds"] is not None
    )
    by_size = [[pick(fit, num_test=size, effect="bias", model="all") for fit in fits["few-shot"]] for size in SIZES]
    effects = [
        [
            f"n={size}",
            *(f"{points(row['mean'])} [{points(row['mean, low'])}, {points(row['mean, high'])}]" for row in of_size),
        ]
        for size, of_size in zip(SIZES, by_size, strict=True)
    ]
    sampled = []
    for number, preset in enumerate(("printed", "random_slopes")):
        for num_test in SIZES:
            row = pick(of_cut["few-shot"][number], num_test=num_test, effect="bias", model="all")
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
        "notebooks": markdown(["data", "effect", "the study", "here, counts as the study's", "here"], body),
        "sampled": markdown(["", "MCMC", "here, the same counts"], sampled),
        "predictive": markdown(["", "`printed`", "`random_slopes`", "`calibrated`"], effects),
        "printed_excludes": ", ".join(excludes[0]) or "no size",
        "slopes_exclude": ", ".join(excludes[1]) or "no size",
        "predictive_figure": picture(
            analyses["few-shot"][0], "Posterior predictive distribution of the average bias", folder / "predictive.svg"
        ),
        "posterior_figure": picture(analyses["few-shot"][2], "Posterior of the average bias", folder / "posterior.svg"),
        "r_hat": f"{_largest_r_hat(analyses['few-shot'][2]):.3f}",
    }


def _largest_r_hat(analysis: Analysis) -> float:
    found = rows(analysis, "Checks of the fits")
    return max(float(row["value"]) for row in found if row["check"].startswith("R-hat"))


def section_9(zero: pd.DataFrame) -> dict[str, str]:
    found = rows(run("table1", zero)[0], "Boost and bias over these tasks")
    body = [
        [row["effect"], f"**{points(row['mean'])}** ± {row['se'] * 100:.2f}",
         f"{points(row['other tasks, low'])} to {points(row['other tasks, high'])}"]
        for row in found
    ]  # fmt: skip
    trials = len(zero) // zero["arm"].nunique()
    return {
        "section_9": markdown(["zero-shot, n=100", "mean", "95%, for other tasks"], body),
        "zero_trials": str(trials),
    }


def section_8(few: pd.DataFrame, zero: pd.DataFrame) -> dict[str, str]:
    name = "adjusted p, test > extra"
    body = []
    for where, results in (("few-shot", few), ("zero-shot", zero)):
        tests = rows(run("permutation", results)[0], "Permutation tests")
        for model, size in dict.fromkeys((row.get("model", ""), row.get("num_test", 100)) for row in tests):
            among = [row for row in tests if (row.get("model", ""), row.get("num_test", 100)) == (model, size)]
            least = min(among, key=lambda row: row[name])
            two_sided = min(row["adjusted p"] for row in among)
            body.append(
                [f"{where} {model}".strip(), f"n={size}", f"{least[name]:.3f}", least["task"], f"{two_sided:.3f}"]
            )
    return {"section_8": markdown(["data", "n", "smallest adjusted p", "task", "smallest, two-sided"], body)}


def anomaly(few: pd.DataFrame) -> dict[str, str]:
    summary, consistency = run("table1", few)
    scores = rows(summary, "Leaderboard")
    base = [
        [model, *(f"{pick(scores, model=model, num_test=size)['base']:.3f}" for size in SIZES)]
        for model in ("bert", "gpt2")
    ]
    faults = [
        [str(row[name]) for name in ("what", "where", "evidence")]
        for row in rows(consistency, "")
        if row["weight"] == "fault"
    ]
    return {
        "base": markdown(["base accuracy", *(f"n={size}" for size in SIZES)], base),
        "errors": markdown(["error", "where", "evidence"], faults),
    }


if __name__ == "__main__":
    main()
