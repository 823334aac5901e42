"""Columns of users' tables: recognized, named by the user, harmless, or refused."""

from __future__ import annotations

import datetime
import io
import re
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

import peekbench as pb
from peekbench.cli.app import app
from peekbench.errors import ResultsError
from peekbench.records.data import TableOptions
from peekbench.records.verdicts import POINTS
from peekbench.results import pair_arms, tidy
from peekbench.results.columns import USER_COLUMNS, score_units
from peekbench.results.tidying import tidy_table
from peekbench.results.user_columns import normalize

LONG = pd.DataFrame(
    {
        "task": "news", "method": ["a", "a", "b", "b"] * 2, "num_test": 100, "subsample": [3] * 4 + [5] * 4,
        "arm": ["extra", "test"] * 4, "score": [0.5, 0.52, 0.6, 0.58, 0.7, 0.75, 0.65, 0.68],
    }
)  # fmt: skip
EXPECTED = tidy(LONG, "canonical")
WIDE = LONG.pivot(index=["task", "method", "num_test", "subsample"], columns="arm", values="score").reset_index()


def parse(text: str, **options: Any) -> pd.DataFrame:
    return tidy(pd.read_csv(io.StringIO(text)), "here", **options)


def describe(table: pd.DataFrame, **options: Any) -> str:
    return str(tidy_table(table, "here", TableOptions(**options)).columns)


@pytest.mark.parametrize(
    ("names", "options"),
    [
        ({"task": "Dataset", "method": "system", "num_test": "N", "subsample": "Random Seed", "score": "Acc"}, {}),
        ({"task": "TASK", "method": "Method Name", "num_test": "test-size", "subsample": "fold"}, {}),
        ({"arm": "condition", "subsample": "run", "score": "accuracy"}, {}),
        ({"method": "config"}, {"columns": {"config": "method"}}),
        ({"subsample": "no", "arm": "unlabeled"}, {"columns": {"no": "Subsample", "unlabeled": "arm"}}),
        ({"extra": "Extra", "test": "TEST"}, {}),
        ({"extra": "acc_extra", "test": "acc_test"}, {}),
        ({"extra": "extra accuracy", "test": "test accuracy"}, {}),
        ({"extra": "Accuracy (extra)", "test": "Accuracy (test)"}, {}),
    ],
)
def test_columns_are_recognized_or_named(names: dict[str, str], options: dict[str, Any]) -> None:
    table = WIDE if "extra" in names else LONG
    pd.testing.assert_frame_equal(tidy(table.rename(columns=names), "here", **options), EXPECTED)


@pytest.mark.parametrize(
    ("write", "options"),
    [
        (lambda scores: (scores * 100).round(3), {"percent": True}),
        (lambda scores: (scores * 100).round(3).astype(str) + " %", {}),
        (lambda scores: (scores * 100).round(3).astype(str).str.replace(".", ",") + "%", {"percent": True}),
        (lambda scores: scores.astype(str).str.replace(".", ","), {}),
    ],
)
def test_percentages_and_decimal_commas_are_read_exactly(write: Any, options: dict[str, Any]) -> None:
    table = WIDE.assign(extra=write(WIDE["extra"]), test=write(WIDE["test"]))
    pd.testing.assert_frame_equal(tidy(table, "here", **options), EXPECTED, check_exact=True)


@pytest.mark.parametrize("cell", ["0.72", "1.0", 1.0])
def test_fractions_are_refused_if_scores_are_percentages_which_remain_percentages(cell: Any) -> None:
    table = pd.DataFrame({"task": "a", "extra": ["71.5", cell], "test": ["71.5", "72"]})
    with pytest.raises(ResultsError, match=f"row 2, column 'extra': {cell} is at most 1, but --percent is given"):
        tidy(table, "mixed", percent=True)
    signed = table.assign(extra=["71.5", "0.72%"])
    read = tidy(signed, "mixed", percent=True)
    assert read["score"].min() == 0.0072
    assert "points. Undecided (the percentage: extra 36.1%)." in repr(pb.analyze(read))


def test_scores_of_the_seeds_of_a_fold_are_averaged() -> None:
    rng = np.random.default_rng(1)
    keys = pd.MultiIndex.from_product([["a", "b"], range(10), range(3)], names=["task", "fold", "seed"])
    counts = pd.DataFrame(rng.integers(140, 150, (60, 2)), keys, ["extra", "test"])
    counts["test"] += np.repeat(rng.permutation(20) - 7, 3)  # an effect of the fold, which its seeds share
    table = (counts / 200).reset_index().assign(n=200)
    read = tidy_table(table.sample(frac=1, random_state=0), "here", TableOptions())
    sums = counts.groupby(["task", "fold"]).sum().add_prefix("num_correct_").reset_index()
    pd.testing.assert_frame_equal(read.results, tidy(sums.assign(num_test=200, num_scored=600), "here"))
    fact = "The scores of each fold are averaged over seed (3 at most), because they are not independent."
    assert read.columns.warnings == (fact,)
    joined = {"fold": "subsample", "seed": "subsample"}
    reports = [pb.analyze(table, ["summary"], independent_tasks=True, columns=columns) for columns in ({}, joined)]
    assert [report.verdicts[0].decision for report in reports] == ["inconclusive", "biased up"]
    long = table.melt(["task", "fold", "seed", "n"], var_name="arm", value_name="score")
    pd.testing.assert_frame_equal(tidy(long, "here"), read.results)
    with pytest.raises(ResultsError, match="subsample 0: not all arms have the seed 0; .*--allow-incomplete"):
        tidy(long.drop(index=0), "here")
    report = pb.analyze(long.drop(index=0), ["summary"], allow_incomplete=True)
    assert report.warnings[0] == "1 empty or unpaired score left out, as missing trials."
    sized = long.assign(n=199 + (long["fold"] < 3), score=long["score"].round(1))
    assert [verdict.method for verdict in pb.analyze(sized, ["summary"]).verdicts] == ["method"]


def test_other_columns_that_number_subsamples_are_ignored_joined_or_averaged() -> None:
    table = LONG.assign(seed=[1, 1, 1, 1, 2, 2, 2, 2], fold="f7").drop(columns="subsample")
    expected = EXPECTED.assign(subsample=(EXPECTED["subsample"] - 1) // 2)
    pd.testing.assert_frame_equal(tidy(table, "here"), expected)
    assert "mapped seed=subsample; ignored fold (equal in all rows)" in describe(table)
    table = table.rename(columns={"seed": "repeat"}).assign(fold=[1, 1, 1, 1, 2, 2, 2, 2])
    columns = {"fold": "subsample", "repeat": "subsample"}
    pd.testing.assert_frame_equal(tidy(table, "here", columns=columns), expected)
    for repeats, fold, problem in (
        ([1, 2] * 4, pd.Series(["f7", None] * 4), "the cell is empty"),
        ([1] * 8, "f7", "f7, 1 is duplicated"),
        (["1", "Mean"] * 4, "f7", "f7, Mean summarizes other rows"),
    ):
        with pytest.raises(ResultsError, match=f"column 'fold', 'repeat': {problem}"):
            tidy(table.assign(repeat=repeats, fold=fold), "here", columns=columns)


def test_what_was_done_with_each_column_is_described() -> None:
    table = LONG.rename(columns={"subsample": "seed", "method": "config"}).assign(notes=list("stuvwxyz"))
    assert describe(table, columns={"config": "method"}, ignore=["notes"]) == (
        "used task, num_test, arm, score; mapped config=method, seed=subsample; ignored notes (by request)"
    )
    wide = WIDE.drop(columns="subsample").assign(extra=WIDE["extra"] * 100, test=WIDE["test"] * 100)
    assert describe(wide, percent=True) == (
        "used task, method, num_test, extra, test; no column numbers the subsamples, so arms "
        "are paired by row and methods are not paired"
    )


@pytest.mark.parametrize("column", ["notes", "Subsamples"])
def test_unknown_columns_are_refused(column: str) -> None:
    table = LONG.assign(**{column: range(8)})
    with pytest.raises(ResultsError, match=rf"is unknown: '{column}'(?s:.*):\n  --ignore {column}$"):
        tidy(table, "here")
    pd.testing.assert_frame_equal(tidy(table, "here", ignore=[column]), EXPECTED)


def test_rows_of_arms_without_numbers_are_refused() -> None:
    table = LONG.drop(columns="subsample")
    with pytest.raises(ResultsError, match=r"2 rows have the same method, .* (?s:.*)COLUMN=subs"):
        tidy(table, "here")
    single = tidy(table[:4], "here")  # one row for each arm of a method
    assert single["subsample"].tolist() == [0] * 4


def test_rows_of_a_wide_table_are_draws_whose_numbers_do_not_depend_on_their_order() -> None:
    generator = np.random.default_rng(0)
    table = pd.DataFrame({"task": ["x", "y"] * 50, "method": ["a"] * 40 + ["b"] * 60, "extra": 0.5, "test": 0.5})
    table[["extra", "test"]] += generator.normal(0, 0.1, (100, 2)).round(2)
    results = tidy(table, "here")
    pd.testing.assert_frame_equal(tidy(table.sample(frac=1, random_state=1), "here"), results)
    numbers = results.groupby("method")["subsample"].agg(set)
    assert not numbers["a"] & numbers["b"], "nothing says that the methods share draws"
    wide = pair_arms(results).loc["a"].sort_index(level="subsample")
    ranks = np.corrcoef(np.arange(len(wide)), wide["extra"].to_numpy())[0, 1]
    assert abs(ranks) < 0.5, "the first subsamples are not those of the lowest scores"


@pytest.mark.parametrize("values", [["t1", "t1", "t2", "t2"], [-1, -1, 7, 7], [2**60, 2**60, 2**60 + 1, 2**60 + 1]])
def test_draws_that_the_user_names_are_numbered_in_order(values: list[Any]) -> None:
    table = LONG[:4].drop(columns="method").assign(subsample=values).rename(columns={"subsample": "draw"})
    results = tidy(table, "here", columns={"draw": "subsample"})
    assert results["subsample"].tolist() == ([1, 1, 2, 2])


def test_an_index_that_could_distinguish_rows_is_refused() -> None:
    table = LONG.drop(columns="method")
    with pytest.raises(
        ResultsError, match="the index has no name, and its values are not row numbers, but 'a', 'a', 'b'"
    ):
        tidy(table.set_axis(LONG["method"].to_numpy(), axis="index"), "here")
    pd.testing.assert_frame_equal(tidy(pd.concat([LONG[:4], LONG[4:].reset_index(drop=True)]), "here"), EXPECTED)


def test_each_synonym_belongs_to_one_column() -> None:
    names = [normalize(synonym) for column in USER_COLUMNS for synonym in column.synonyms]
    assert len(names) == len(set(names)) <= 48
    assert not set(names) & {normalize(column.name) for column in USER_COLUMNS}


def test_every_format_of_a_report_has_the_columns(tmp_path: Path) -> None:
    LONG.assign(notes=list("abcdefgh")).to_csv("scores.csv", index=False)
    arguments = ["analyze", "scores.csv", "--analysis", "toy.count", "--ignore", "notes", "--reports", "out"]
    ran = CliRunner().invoke(app, arguments)
    assert ran.exit_code == 0, ran.output
    for name in ("html", "md", "json"):
        text = (tmp_path / "out" / "scores" / f"report.{name}").read_text("utf-8").replace("\\_", "_")
        assert "used task, method, num_test, subsample, arm, score; ignored notes (by request)" in " ".join(
            text.split()
        )


@pytest.mark.parametrize("arguments", [["compare", "scores.csv"], ["compare", "scores.csv", "again.csv"]])
def test_commands_for_several_tables_take_the_same_options(arguments: list[str]) -> None:
    table = LONG.rename(columns={"subsample": "no"}).assign(notes=list("abcdefgh"))
    for name in ("scores.csv", "again.csv"):
        table.to_csv(name, index=False)
    ran = CliRunner().invoke(app, [*arguments, "--map", "no=subsample", "--ignore", "notes", "--full"])
    assert ran.exit_code == 0, ran.output


def wide(**columns: Any) -> pd.DataFrame:
    rng = np.random.default_rng(0)
    size = max(map(len, columns.values()))
    return pd.DataFrame({**columns, "extra": rng.random(size), "test": rng.random(size)})


def long(**columns: Any) -> pd.DataFrame:
    scores = wide(task=["a", "b"] * 3, seed=[0, 0, 1, 1, 2, 2])
    table = scores.melt(id_vars=["task", "seed"], var_name="arm", value_name="score")
    return table.assign(**{name: table["arm"].map(values) for name, values in columns.items()})


@pytest.mark.parametrize(
    ("table", "message"),
    [
        (wide(task=["a"] * 4, method=["lsa", "", "bow", ""]), "'method': the cell is empty, but other rows"),
        (wide(task=["a"] * 4, model=["bert", "", "gpt2", None]), "'model': the cell is empty, but other rows"),
        (wide(task=["a", "b", "Macro avg"]), "Macro avg summarizes other tasks"),
        (long(metric={"extra": "f1", "test": "acc"}), "column 'metric': acc differs from the first row of its task"),
    ],
)
def test_tables_that_would_change_a_verdict_silently_are_refused(table: pd.DataFrame, message: str) -> None:
    with pytest.raises(ResultsError, match=message):
        tidy_table(table, "here", TableOptions())


OWN_NAMES = {"base": "none", "extra": "independent", "test": "transductive"}
RENAMED = {own: arm for arm, own in OWN_NAMES.items()}


@pytest.mark.parametrize("requested", [{}, {"condition": "arm"}])
def test_arms_with_names_of_their_own_are_renamed(requested: dict[str, str]) -> None:
    own = LONG.assign(arm=LONG["arm"].map(OWN_NAMES)).rename(columns={"arm": "condition"})
    renamed = {own: arm for own, arm in RENAMED.items() if arm != "base"}
    pd.testing.assert_frame_equal(tidy(own, "own", columns={**renamed, **requested}), EXPECTED)
    pd.testing.assert_frame_equal(tidy(WIDE.rename(columns=OWN_NAMES), "own", columns=renamed), EXPECTED)


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({}, "in place of each ARM:\n  --map independent=ARM --map transductive=ARM"),
        ({"condition": "arm"}, "row 1, column 'condition': independent is not an arm"),
        ({"none": "base"}, "'condition', has no such value, but independent, transductive"),
        ({"none": "bse"}, "--map none=bse: no such column of the results table; did you mean 'base'?"),
        ({"condition": "arm", "nothing": "subsample"}, "--map nothing=subsample: t has no column 'nothing'"),
    ],
)
def test_messages_name_unknown_arms_and_the_remedy(columns: dict[str, str], message: str) -> None:
    own = LONG.assign(arm=LONG["arm"].map(OWN_NAMES)).rename(columns={"arm": "condition"})
    with pytest.raises(ResultsError, match=re.escape(message)):
        tidy(own, "t", columns=columns)


ONE_TASK = pd.DataFrame({"seed": range(3), "base_acc": 0.6, "extra_acc": [0.7, 0.72, 0.71], "test_acc": 0.73})
PER_TEXT = pd.DataFrame({"id": [1, 1, 2, 2], "arm": ["extra", "test"] * 2, "grade": [0, 1, 0.5, 1]})


@pytest.mark.parametrize(
    ("table", "command"),
    [
        (ONE_TASK.rename(columns={"test_acc": "tset_acc"}), "--map tset_acc=test"),
        (ONE_TASK.assign(extra_acc=[70, 72, 71], test_acc=73, base_acc=60, host="a"), "--ignore host --percent"),
        (ONE_TASK.assign(suite=["a", "a", "b"], host="a", note=["x", "y", "z"]),
         "--map suite=task --ignore host --ignore note"),
        (PER_TEXT, "--map id=text"),
        (PER_TEXT.assign(seed=[0, 0, 1, 1], note=""), "--map id=text --ignore note"),
    ],
)  # fmt: skip
def test_one_command_solves_all_known_problems(table: pd.DataFrame, command: str) -> None:
    with pytest.raises(ResultsError) as caught:
        tidy(table, "here")
    assert caught.value.arguments == command.split()
    assert len(tidy_table(table, "here", caught.value.added).results)


def test_scores_that_are_called_accuracies_are_in_points() -> None:
    assert score_units(tidy(ONE_TASK, "here")) is POINTS
    assert score_units(tidy(ONE_TASK.rename(columns=lambda name: name.removesuffix("_acc")), "here")) is not POINTS


def test_a_mapping_that_cannot_be_used_is_to_be_removed() -> None:
    with pytest.raises(
        ResultsError, match="--map seed=fit: here: 'seed' distinguishes fits of a subsample, .*; remove the option$"
    ):
        tidy(ONE_TASK, "here", columns={"seed": "fit"})


def test_an_arm_is_never_another_arm() -> None:
    base = WIDE.rename(columns={"extra": "base"})
    with pytest.raises(ResultsError, match="no column 'extra'.* Scores of extra can only come from fits in this arm"):
        tidy(base, "here")
    with pytest.raises(ResultsError, match=r"no column 'extra'.* did you mean 'extr'(?s:.*)--map extr=extra"):
        tidy(base.assign(extr=0.5, seed=0, fold=0), "here")
    for table, mapping in ((base, {"base": "extra"}), (LONG.replace({"extra": "base"}), {"base": "extra"})):
        with pytest.raises(ResultsError, match="--map base=extra: .* base has no unlabeled text"):
            tidy(table, "here", columns=mapping)


@pytest.mark.parametrize(
    ("table", "message"),
    [
        (LONG.assign(num_test=["100"] * 7 + [""]), "row 8, column 'num_test': .* use --ignore num_test"),
        (LONG.replace({"b": "A"}), 'A differs from "a" only by case'),
        (LONG.assign(model=["x", "X"] * 4), 'X differs from "x" only by case'),
    ],
)
def test_empty_sizes_and_two_spellings_are_refused(table: pd.DataFrame, message: str) -> None:
    with pytest.raises(ResultsError, match=message):
        tidy(table, "here")


@pytest.mark.parametrize(
    ("column", "values", "is_read"),
    [
        ("score", [Decimal("0.5"), Decimal("0.75")], True),
        ("method", [datetime.date(2026, 1, 5)] * 2, True),
        ("method", pd.Categorical(["a", "a"]), True),
        ("score", [0.5, 10**400], False),
        ("score", [0.5, 1j], False),
        ("method", pd.arrays.IntervalArray.from_breaks([0, 1, 2]), False),
    ],
)
def test_other_types_of_cells_are_read_or_refused(column: str, values: Any, is_read: bool) -> None:
    table = pd.DataFrame({"task": "a", "method": "m", "arm": ["extra", "test"], "score": 0.5})
    table[column] = values
    if is_read:
        assert len(tidy(table, "here")) == 2
        return
    with pytest.raises(ResultsError, match=f"column '{column}': .* is not a"):
        tidy(table, "here")


def test_controls_that_only_a_table_declares_are_reported() -> None:
    report = pb.analyze(LONG.assign(control=LONG["method"].map({"a": "", "b": "negative"})), ["summary"]).document
    assert any("Controls according to the table itself: b" in warning for warning in report.warnings)
    assert report.details["columns"]["controls"] == ["b"]
