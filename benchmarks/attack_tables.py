"""Mutate tables of scores at random. Each must be read, analyzed and reported, or refused, in bounded time."""

from __future__ import annotations

import random
import tempfile
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from attack_files import mutate_bytes
from attack_tally import Budget, Tally

from peekbench.report import report_of_table, write_report
from peekbench.results import load_results, tidy
from peekbench.results.analyze import analyze

ANALYSES = ("summary", "permutation", "consistency")
NAMES = (
    "task", "method", "model", "num_train", "num_test", "control", "subsample", "arm", "score", "accuracy",
    "num_correct",
    "log_loss", "brier", "macro_f1", "majority", "fit_seconds", "base", "extra", "test", "mix-0.25", "mix-0.5", "", " ",
    "Unnamed: 0", "__index_level_0__", "index", "seed", "run", "fold", "Task", "n_test", "model_name", "x" * 3000,
    "\x1b[2J", "\u202e", "task ", "test.1",
)  # fmt: skip
CELLS: tuple[Any, ...] = (
    None, "", " ", "nan", "NA", "inf", "-inf", "True", "False", True, False, 0, 1, -1, 0.5, 1.5, 50, 87.5, 1e-320,
    1e19, -1e19, 2**53 + 1, 2**64, 10**400, 1e308, -1e308, "1e400", "9" * 30, "0x10", "1_000", "0,5", "50%", "½",
    "١٢", "a", "x" * 5000, "\x00", "\ud800", "\x1b[31m", "\u202e", '"', "a,b", "a\nb", "<script>", "=1+1", "negative",
    "positive", "base", "extra", "test", "mix-0.0", "mix-.5", [], [1], {"a": 1}, (1, 2), {1}, b"x", 1j, np.nan, pd.NA,
    pd.NaT, pd.Timestamp("2026-01-01"), np.float64("inf"), np.array([1, 2]), float,
)  # fmt: skip


def make_table(rng: random.Random) -> pd.DataFrame:
    """Return a valid table with a random form, size and choice of columns."""
    generator = np.random.default_rng(rng.randrange(2**32))
    num_test = rng.choice([10, 50, 200])
    arms = rng.choice([["extra", "test"], ["base", "extra", "test"], ["base", "extra", "test", "mix-0.25"]])
    names = [
        (f"task {task}", f"method {method}", subsample)
        for task in range(rng.randint(1, 3))
        for method in range(rng.randint(1, 2))
        for subsample in range(rng.randint(2, 6))
    ]
    table = pd.DataFrame(names, columns=["task", "method", "subsample"])
    if rng.random() < 0.7:
        table["num_test"] = num_test
    if rng.random() < 0.5:
        table["num_train"] = 50
    if rng.random() < 0.3:
        table["control"] = np.where(table["method"] == "method 1", "negative", "")
    for arm in arms:
        table[arm] = generator.binomial(num_test, 0.7, len(table)) / num_test
    if rng.random() < 0.5:
        columns = [column for column in table.columns if column not in arms]
        table = table.melt(columns, arms, "arm", rng.choice(["score", "accuracy"]))
    return table


def mutate_table(table: pd.DataFrame, rng: random.Random) -> pd.DataFrame:
    """Return a table with one to three cells, columns or rows changed."""
    for _ in range(rng.randint(1, 3)):
        if table.empty or not len(table.columns):
            break
        row, position = rng.randrange(len(table)), rng.randrange(len(table.columns))
        columns = list(table.columns)
        match rng.randrange(9):
            case 0:
                table = table.drop(index=table.index[row])
            case 1:
                table = table.iloc[:, [each for each in range(len(columns)) if each != position]]
            case 2:
                columns[position] = rng.choice(NAMES)
                table = table.set_axis(columns, axis="columns")
            case 3:
                table = pd.concat([table, table.iloc[:, [position]]], axis="columns")
            case 4:
                table = table.sample(frac=1, random_state=rng.randrange(1000))
            case 5:
                values = [rng.choice(CELLS) for _ in range(3)]
                column = [values[rng.randrange(3)] for _ in range(len(table))]
                table = table.assign(**{rng.choice(NAMES) or "x": pd.Series(column, index=table.index, dtype="object")})
            case 6 if table.columns.is_unique:
                table = table.set_index(columns[position])
            case _:
                cells = table.iloc[:, position].astype("object").tolist()
                cells[row] = rng.choice(CELLS)
                values = [table.iloc[:, each] for each in range(len(columns))]
                values[position] = pd.Series(cells, index=table.index, dtype="object")
                table = pd.concat(values, axis="columns").set_axis(columns, axis="columns")
    return table


def judge_table(table: pd.DataFrame) -> None:
    """Check, analyze and report a table."""
    judge(tidy(table, "table"))


def judge_file(path: Path) -> None:
    """Read, analyze and report a file."""
    judge(load_results(path))


def judge(results: pd.DataFrame) -> None:
    """Analyze a table and make its report."""
    report = report_of_table(Path("scores.csv"), results, analyze(results, ANALYSES, allow_incomplete=True))
    with tempfile.TemporaryDirectory() as folder:
        write_report(replace(report, formats=("html", "markdown", "json")), Path(folder))


def tables(budget: Budget) -> Tally:
    """Read, analyze and report mutated tables: from memory, CSV text, and Parquet."""
    tally = Tally("tables")
    rng = random.Random(budget.seed)
    with tempfile.TemporaryDirectory() as folder:
        for position in budget:
            label = f"number {position} of seed {budget.seed}"
            table = make_table(rng)
            mutated = mutate_table(table, rng)
            path = Path(folder) / rng.choice(["scores.csv", "scores.tsv", "scores.parquet"])
            match position % 4:
                case 0:
                    tally.attempt(label, partial(judge_table, mutated))
                    continue
                case 1 | 2 if path.suffix != ".parquet":
                    separator = "\t" if path.suffix == ".tsv" else ","
                    path.write_bytes(mutated.to_csv(sep=separator, index=rng.random() < 0.3).encode("utf-8", "replace"))
                    if position % 4 == 2:
                        path.write_bytes(mutate_bytes(path.read_bytes(), rng))
                case _:
                    path = path.with_suffix(".parquet")
                    try:
                        mutated.to_parquet(path)
                    except Exception:  # Parquet cannot store these cells
                        table.to_parquet(path)
                    if position % 8 == 3:
                        path.write_bytes(mutate_bytes(path.read_bytes(), rng))
            tally.attempt(label, partial(judge_file, path))
    return tally
