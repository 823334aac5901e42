"""What messages about tables advise is typed, until the command works."""

from __future__ import annotations

import datetime
import shlex
from decimal import Decimal
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from commands import run_command

import peekbench as pb

LONG = pd.DataFrame(
    [
        {"task": task, "method": method, "subsample": fold, "arm": arm, "score": score + fold / 50}
        for task in "ab"
        for method in ("lsa", "nb")
        for fold in range(4)
        for arm, score in (("extra", 0.5), ("test", 0.6))
    ]
)  # fmt: skip
WIDE = LONG.pivot(index=["task", "method", "subsample"], columns="arm", values="score").reset_index()


def follow(table: pd.DataFrame, *arguments: str, attempts: int = 3) -> str:
    """Type the commands that messages advise until one works; return its output."""
    table.to_csv("scores.csv", index=False)
    command = ["peekbench", "analyze", "scores.csv", *arguments]
    for _ in range(attempts):
        done = run_command(*command[1:])
        if done.returncode == 0:
            return done.stdout
        command = shlex.split(done.stderr.splitlines()[-1])
        assert command[0] == "peekbench", done.stderr
    raise AssertionError(done.stderr)


@pytest.mark.parametrize(
    "table",
    [
        WIDE.rename(columns={"test": "tset"}),
        WIDE.rename(columns={"extra": "extar", "test": "tset"}),
        (1 - WIDE.set_index(["task", "method", "subsample"])).add_prefix("error_").reset_index(),
        LONG.rename(columns={"arm": "arms"}),
        LONG.assign(lr=[1, 1, 2, 2] * 8, **{"my notes": "x"}),
        LONG.assign(fold=LONG["subsample"]),
    ],
    ids=["tset", "two typos", "error rates", "arms", "unknown columns", "two numbers of the draw"],
)
def test_advised_commands_lead_on(table: pd.DataFrame) -> None:
    assert "biased up" in follow(table, "--independent-tasks")


def test_incomplete_tables_are_not_sent_in_a_circle() -> None:
    LONG.drop(index=3).to_csv("gap.csv", index=False)
    assert "--allow-incomplete analyzes the complete trials" in run_command("analyze", "gap.csv").stderr
    assert run_command("analyze", "gap.csv", "--allow-incomplete").returncode == 0
    unpaired = LONG[(LONG["arm"] == "test") == (LONG["subsample"] % 2 == 0)]
    with pytest.raises(pb.PeekbenchError, match="no subsample has all arms .*give the rows of a draw the same number"):
        pb.analyze(unpaired)
    paired = unpaired.assign(subsample=unpaired["subsample"] // 2)
    assert pb.analyze(paired, ["summary"]).verdicts


def test_an_arm_is_never_another_arm() -> None:
    base = WIDE.rename(columns={"extra": "base"})
    base.to_csv("base.csv", index=False)
    done = run_command("analyze", "base.csv")
    assert "no column 'extra'" in done.stderr
    assert "Scores of extra can only come from fits in this arm" in done.stderr
    assert "--map" not in done.stderr
    refused = run_command("analyze", "base.csv", "--map", "base=extra")
    assert "--map base=extra: base.csv has scores of the arm base there" in refused.stderr
    for table, mapping in (
        (base, {"base": "extra"}),
        (base.rename(columns={"base": "acc_base"}), {"acc_base": "extra"}),
        (LONG.replace({"extra": "base"}), {"base": "extra"}),
    ):
        with pytest.raises(pb.PeekbenchError, match="base has no unlabeled text"):
            pb.analyze(table, columns=mapping)
    with pytest.raises(pb.PeekbenchError, match="no row has the arm 'extra'.* Run the method in each arm"):
        pb.analyze(LONG.replace({"extra": "base"}))


def with_means(number: int) -> pd.DataFrame:
    means = LONG.groupby(["task", "method", "arm"])["score"].mean().reset_index()
    return pd.concat([LONG, means.assign(subsample=number)], ignore_index=True)


@pytest.mark.parametrize(
    ("table", "options", "message"),
    [
        (LONG.assign(num_test=["100"] * 31 + [""]), {}, r"row 32, column 'num_test': .* use ignore=\['num_test'\]"),
        (LONG.replace({"nb": "LSA"}), {}, 'LSA differs from "lsa" only by case'),
        (LONG.replace({"b": "a."}), {}, 'a. differs from "a" only by punctuation at the end'),
        (LONG.assign(model=["x", "X"] * 16), {}, 'X differs from "x" only by case'),
        (with_means(99999), {}, "99999 numbers rows with the means of the others"),
        (with_means(-1), {"columns": {"subsample": "subsample"}}, "-1 numbers rows with the means of the others"),
        (with_means(9).astype({"subsample": "str"}).replace({"9": "Mean"}), {"columns": {"subsample": "subsample"}},
         "Mean summarizes other rows"),
    ],
)  # fmt: skip
def test_rows_that_are_no_draws_and_two_spellings_are_refused(table: Any, options: Any, message: str) -> None:
    with pytest.raises(pb.PeekbenchError, match=message):
        pb.analyze(table, ["summary"], **options)


def test_seeds_far_from_each_other_are_draws() -> None:
    seeds = LONG.assign(subsample=LONG["subsample"].map({0: 0, 1: 1, 2: 2, 3: 1337}))
    assert pb.analyze(seeds, ["summary"], independent_tasks=True).verdicts[0].decision == "biased up"


@pytest.mark.slow
@pytest.mark.parametrize("column", list(LONG.columns))
def test_categories_are_read_as_their_values(column: str) -> None:
    pytest.importorskip("pyarrow")
    expected = pb.analyze(LONG, ["summary"]).verdicts
    categories = LONG.astype({column: "category"})
    categories.to_parquet("scores.parquet")
    for source in (categories, Path("scores.parquet")):
        assert pb.analyze(source, ["summary"]).verdicts == expected


@pytest.mark.parametrize(
    ("column", "values", "is_read"),
    [
        ("score", [Decimal("0.5"), Decimal("0.75")], True),
        ("method", [datetime.date(2026, 1, 5)] * 2, True),
        ("method", pd.array([True] * 2, dtype="boolean"), True),
        ("score", [datetime.timedelta(seconds=1)] * 2, False),
        ("score", [True] * 2, False),
        ("score", [[0.5], [0.6]], False),
        ("method", pd.arrays.IntervalArray.from_breaks([0, 1, 2]), False),
    ],
)
def test_other_types_of_cells_are_read_or_refused(column: str, values: Any, is_read: bool) -> None:
    table = pd.DataFrame({"task": "a", "method": "m", "arm": ["extra", "test"], "score": 0.5})
    table[column] = values
    if is_read:
        assert len(pb.analyze(table, ["summary"]).verdicts) == 1
        return
    with pytest.raises(pb.PeekbenchError, match=f"row 1, column '{column}': .* is not a"):
        pb.analyze(table, ["summary"])


def test_options_of_tables_are_not_ignored_for_runs(tmp_path: Path, make_spec: Any) -> None:
    store = pb.run(make_spec(), store=tmp_path / "small.sqlite").store
    with pytest.raises(pb.PeekbenchError, match="is the store of a run, whose columns are known; remove percent="):
        pb.analyze(store, percent=True)


def test_controls_that_only_a_table_declares_are_reported() -> None:
    report = pb.analyze(LONG.assign(control=LONG["method"].map({"lsa": "", "nb": "negative"})), ["summary"]).document
    assert any("Controls according to the table itself: nb" in warning for warning in report.warnings)
    assert report.details["columns"]["controls"] == ["nb"]
