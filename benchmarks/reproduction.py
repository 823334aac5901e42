"""Writes docs/reproduction.md: every number of the study that is known here, beside what peekbench makes of its data.

Numbers of the study are those printed in arXiv 2410.00179 and in its published notebooks. FOLDER holds the published
accuracies, few_shot/m100/nN/MODEL/TASK/accuracies.csv and zero_shot/...; STORE is that of specs/paper/pca.yaml, about
ten minutes of one core. The analyses are those of specs/paper/analysis_*.yaml.

    python benchmarks/reproduction.py FOLDER [--pca STORE] [--repeats 400] [--output docs/reproduction.md]
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from peekbench import Analysis, Figure, alt_text, analyze, load_results
from peekbench.reanalysis import load_reanalysis
from peekbench.store import Store
from peekbench.wording import with_sign
from peekbench_bayes import Hierarchical
from peekbench_bayes.arrays import Arms, split
from peekbench_bayes.model import CountPriors, DifferencePriors
from peekbench_bayes.slices import fit_count_slices, fit_difference_slices
from peekbench_figures import draw

if TYPE_CHECKING:
    import pandas as pd

TEMPLATE = Path(__file__).with_name("reproduction_template.md")
SPECS = Path(__file__).parents[1] / "specs" / "paper"
SIZES = (50, 100, 200, 500)
# Table 1, m=100, in points: boost and bias by model and n.
TABLE_1 = {
    ("bert", "boost"): ("6.2", "6.1", "4.1", "6.1"),
    ("bert", "bias"): ("-0.08", "-0.37", "0.33", "-0.16"),
    ("gpt2", "boost"): ("2.2", "2.5", "6.3", "3.9"),
    ("gpt2", "bias"): ("-0.05", "0.03", "-0.01", "-0.21"),
}
# Published notebooks: mean and sd in log-odds of the model with slopes by task, m=100.
NOTEBOOKS = {
    ("few-shot, n=500", "bias"): ("-0.0081", "0.0116"),
    ("few-shot, n=500", "boost"): ("0.2745", "0.0514"),
    ("zero-shot, n=100", "bias"): ("0.003", "0.023"),
    ("zero-shot, n=100", "boost"): ("0.313", "0.130"),
}
# Section 10: share of slices whose posterior mean lies beyond the region, and the region in log-odds.
SHARES = {"few-shot, n=500": ("47%", "0.04"), "zero-shot, n=100": ("49%", "0.07")}
RANKS, PCA_SIZES = (5, 10, 15, 20), (25, 50, 100, 200, 500)
Row = dict[str, Any]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path, help="the published accuracies")
    parser.add_argument("--pca", type=Path, help="store of specs/paper/pca.yaml")
    parser.add_argument("--repeats", type=int, default=400, help="data sets without bias")
    parser.add_argument("--output", type=Path, default=Path("docs/reproduction.md"))
    asked = parser.parse_args()
    few, zero = (load_results(asked.folder / name) for name in ("few_shot", "zero_shot"))
    folder = asked.output.parent / "figures"
    folder.mkdir(parents=True, exist_ok=True)
    parts = {
        **table_1(few), **posteriors(few, zero, folder), **shares(few, zero, folder), **section_8(few, zero),
        **checks(few), **pca(asked.pca, folder), **overconfidence(few, asked.repeats), **anomaly(few),
    }  # fmt: skip
    asked.output.write_text(TEMPLATE.read_text("utf-8").format(**parts), encoding="utf-8")


def run(spec: str, results: pd.DataFrame) -> tuple[Analysis, ...]:
    asked = load_reanalysis(SPECS / f"analysis_{spec}.yaml")
    return analyze(asked.only.of(results), asked.analyses)


def rows(analysis: Analysis, title: str) -> list[Row]:
    """Of the first table whose title begins so."""
    table = next(table for table in analysis.tables if table.title.startswith(title))
    return [dict(zip([column.name for column in table.columns], row, strict=True)) for row in table.rows]


def pick(among: Sequence[Row], **cells: Any) -> Row:
    (found,) = (row for row in among if all(row.get(name, value) == value for name, value in cells.items()))
    return found


def markdown(headings: Sequence[str], body: Sequence[Sequence[str]]) -> str:
    lines = [f"| {' | '.join(headings)} |", "|" + "---|" * len(headings)]
    return "\n".join([*lines, *(f"| {' | '.join(row)} |" for row in body)])


def picture(analysis: Analysis, title: str, file: Path) -> str:
    """Draw the figure whose title begins so, and say where it is."""
    figure: Figure = next(figure for figure in analysis.figures if figure.title.startswith(title))
    file.write_bytes(draw(figure, "svg"))
    return f"![{alt_text(figure)}](figures/{file.name})"


def points(value: float, digits: int = 2) -> str:
    return with_sign(value * 100, digits)


def table_1(few: pd.DataFrame) -> dict[str, str]:
    found = rows(run("table1", few)[0], "Boost and bias over tasks")
    body, same, ratios = [], 0, []
    for (model, effect), printed in TABLE_1.items():
        digits = 1 if effect == "boost" else 2
        cells = [f"{model}, {effect}"]
        for size, paper in zip(SIZES, printed, strict=True):
            row = pick(found, model=model, num_test=size, effect=effect)
            ours = f"{row['mean'] * 100:.{digits}f}"
            same += ours == paper
            ratios += [abs(row["mean"] / row["se, these tasks"])] if effect == "bias" else []
            cells.append(f"{paper}, **{ours}** ± {row['se, these tasks'] * 100:.2f}")
        body.append(cells)
    table = markdown(["", *(f"n={size}" for size in SIZES)], body)
    return {"table_1": table, "same": str(same), "largest_ratio": f"{max(ratios):.1f}"}


def posteriors(few: pd.DataFrame, zero: pd.DataFrame, folder: Path) -> dict[str, str]:
    analyses = {"few-shot": run("posteriors", few), "zero-shot": run("posteriors", zero)}
    fits = {data: [rows(one, "Boost and bias, preset") for one in found] for data, found in analyses.items()}
    body = []
    for (where, effect), (mean, sd) in NOTEBOOKS.items():
        data, _, size = where.partition(", n=")
        of_all = [row for row in fits[data][1] if row["mean log-odds"] is not None]
        row = pick(of_all, num_test=int(size), effect=effect)
        body.append([where, effect, f"{mean} ({sd})", f"**{row['mean log-odds']:.4f}** ({row['sd log-odds']:.4f})"])
    by_size = [[pick(fit, num_test=size, effect="bias", model="all") for fit in fits["few-shot"]] for size in SIZES]
    effects = [
        [f"n={size}", *(f"{points(row['mean'])} [{points(row['low'])}, {points(row['high'])}]" for row in of_size)]
        for size, of_size in zip(SIZES, by_size, strict=True)
    ]
    excludes = [
        [f"n={size}" for size, row in zip(SIZES, column, strict=True) if row["low log-odds"] * row["high log-odds"] > 0]
        for column in zip(*by_size, strict=True)
    ]
    return {
        "notebooks": markdown(["data", "effect", "the study", "here"], body),
        "predictive": markdown(["", "`printed`", "`random_slopes`", "`calibrated`"], effects),
        "printed_excludes": ", ".join(excludes[0]) or "no size",
        "slopes_exclude": ", ".join(excludes[1]) or "no size",
        "predictive_figure": picture(
            analyses["few-shot"][0], "Posterior predictive distribution of the average bias", folder / "predictive.svg"
        ),
        "posterior_figure": picture(analyses["few-shot"][2], "Posterior of the average bias", folder / "posterior.svg"),
    }


def shares(few: pd.DataFrame, zero: pd.DataFrame, folder: Path) -> dict[str, str]:
    found = {"few-shot, n=500": run("meta", few), "zero-shot, n=100": run("meta_zero_shot", zero)}
    body = []
    for where, (paper, region) in SHARES.items():
        of_models = (rows(one, "Posterior means")[0] for one in found[where][:2])
        cells = (
            f"**{row[f'beyond {region}']:.0%}**; intervals of {row['interval excludes 0']:.0%} exclude zero"
            for row in of_models
        )
        body.append([where, f"±{region}", paper, *cells])
    calibrated = rows(found["few-shot, n=500"][2], "Posterior means")[0]
    return {
        "shares": markdown(["data", "region", "the study", "`random_slopes`", "`printed`"], body),
        "conclusions_figure": picture(found["few-shot, n=500"][0], "What studies", folder / "conclusions.svg"),
        "calibrated_beyond": f"{calibrated['beyond 0.5 points']:.0%}",
        "calibrated_excludes": f"{calibrated['interval excludes 0']:.0%}",
    }


def section_8(few: pd.DataFrame, zero: pd.DataFrame) -> dict[str, str]:
    name = "p adjusted, test > extra"
    body = []
    for where, results in (("few-shot", few), ("zero-shot", zero)):
        tests = rows(run("permutation", results)[0], "Permutation tests")
        for model, size in dict.fromkeys((row.get("model", ""), row.get("num_test", 100)) for row in tests):
            among = [row for row in tests if (row.get("model", ""), row.get("num_test", 100)) == (model, size)]
            least = min(among, key=lambda row: row[name])
            two_sided = min(row["p adjusted"] for row in among)
            body.append(
                [f"{where} {model}".strip(), f"n={size}", f"{least[name]:.3f}", least["task"], f"{two_sided:.3f}"]
            )
    return {"section_8": markdown(["data", "n", "smallest adjusted p", "task", "smallest, two-sided"], body)}


def checks(few: pd.DataFrame) -> dict[str, str]:
    *priors, recovery = run("checks", few)
    body = []
    for name, one in zip(("printed", "random_slopes", "calibrated"), priors, strict=True):
        (row,) = rows(one, "Mean effects")
        middle = f"{points(row['2.5%'], 1)} to {points(row['97.5%'], 1)}"
        body.append([f"`{name}`", middle, points(row["observed"]), f"{row['percentile']:.0%}"])
    known = [
        [
            points(row["true bias"]), points(row["mean estimate"]), f"{row['coverage']:.0%}",
            f"{row['interval excludes 0']:.0%}",
        ]
        for row in rows(recovery, "Known biases")
    ]  # fmt: skip
    return {
        "priors": markdown(["preset", "middle 95%", "observed", "percentile"], body),
        "recovery": markdown(["true bias", "mean estimate", "intervals that hold it", "that exclude 0"], known),
    }


PCA = """Bias in R^2 ± 1.96 standard errors, from {trials:,} trials of `{spec}.yaml`. As in the study's figure, it grows
with the effective rank and falls with n. There is one data set of each rank and n, and data sets of one rank differ by
more than these errors (sd 0.01 to 0.03). The signal falls as n grows, because each data set has 100 + 2n rows.

{table}

{figure}"""


def pca(store: Path | None, folder: Path) -> dict[str, str]:
    if store is None:
        return {"pca": "Not run for this page: `--pca` takes the store of `specs/paper/pca.yaml`."}
    results = load_results(store)
    (summary,) = analyze(store, ["summary"])
    by_task = {row["task"]: row for row in rows(summary, "Boost and bias by task")}
    body = []
    for rank in RANKS:
        of_rank = (by_task[f"rank{rank}-n{size}"] for size in PCA_SIZES)
        body.append([f"rank {rank}", *(f"{row['bias']:.3f} ± {1.96 * row['se of bias']:.3f}" for row in of_rank)])
    table = markdown(["", *(f"n={size}" for size in PCA_SIZES)], body)
    drawn = picture(summary, "Bias by number of test texts", folder / "pca.svg")
    with Store.open(store) as opened:
        spec = opened.spec()["name"]
    return {"pca": PCA.format(trials=len(results) // results["arm"].nunique(), spec=spec, table=table, figure=drawn)}


def overconfidence(few: pd.DataFrame, repeats: int) -> dict[str, str]:
    options = Hierarchical()
    _, parts = split(few, ("bias",))
    body = []
    for arms in parts:
        rng = np.random.default_rng([0, arms.num_test or 0])
        data = list(swapped(arms, repeats, rng))
        found = (
            fit_count_slices(data, "printed", CountPriors(), options.level),
            fit_count_slices(data, "random_slopes", CountPriors(), options.level),
            fit_difference_slices(data, DifferencePriors(), options.draws, options.level, rng),
        )
        held = (float(((one.low <= 0) & (one.high >= 0)).mean()) for one in found)
        body.append([f"n={arms.num_test}", *(f"{share:.0%}" for share in held)])
    error = 0.5 / repeats**0.5
    return {
        "coverage": markdown(["both models", "`printed`", "`random_slopes`", "`calibrated`"], body),
        "repeats": str(repeats),
        "coverage_error": f"{error * 100:.1f} points",
    }


def swapped(arms: Arms, repeats: int, rng: np.random.Generator) -> Iterator[Arms]:
    """Data sets without bias."""
    for _ in range(repeats):
        is_swapped = rng.random(arms.control.shape) < 0.5
        yield replace(
            arms,
            control=np.where(is_swapped, arms.treatment, arms.control),
            treatment=np.where(is_swapped, arms.control, arms.treatment),
        )


def anomaly(few: pd.DataFrame) -> dict[str, str]:
    summary, consistency = run("table1", few)
    scores = rows(summary, "Mean accuracy by arm")
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
        "faults": markdown(["fault", "where", "evidence"], faults),
    }


if __name__ == "__main__":
    main()
