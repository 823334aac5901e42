"""Tables with one row for each test text: added up, paired by text if there is a single run, or refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from commands import run_command

import peekbench as pb
from peekbench.errors import ResultsError
from peekbench.records import Estimate
from peekbench.records.data import TableOptions
from peekbench.report.render.content import basis_of
from peekbench.results.analyze import AnalysisOptions, analyze
from peekbench.results.tidying import TidyTable, tidy_table

ARMS = ("base", "extra", "test")


def make_rows(seeds: int = 3, texts: int = 20, tasks: tuple[str, ...] = ("mail", "news")) -> pd.DataFrame:
    """Correct answers of training seeds, in the columns of a typical log."""
    rng = np.random.default_rng(0)
    place = [
        (task, seed, arm, f"q{text}")
        for task in tasks for seed in range(seeds) for arm in ARMS for text in range(texts)
    ]  # fmt: skip
    table = pd.DataFrame(place, columns=["task", "seed", "arm", "doc_id"])
    return table.assign(correct=rng.random(len(table)) < 0.6)


ROWS = make_rows()


def read(table: pd.DataFrame, **options: Any) -> TidyTable:
    return tidy_table(table, "here", TableOptions(**options))


def test_groups_of_texts_reach_analyses_or_are_refused() -> None:
    grouped = ROWS.assign(group=ROWS["doc_id"].map(lambda name: f"author {int(name[1:]) // 2}"))
    table = read(grouped)
    assert table.predictions is not None
    answers = table.predictions.answers("mail", "method", None, 20, ("extra", "test"))
    assert answers is not None
    assert answers.groups is not None
    assert [len({*of_draw}) for of_draw in answers.groups.tolist()] == [10] * 3
    pd.testing.assert_frame_equal(table.results, read(ROWS).results)
    with pytest.raises(ResultsError, match="each arm has a single draw.*; number other draws"):
        read(grouped[grouped["seed"] == 0].drop(columns="seed"))
    with pytest.raises(ResultsError, match="row 21.*differs from the group of the same text"):
        read(grouped.assign(group=[f"{row // 20}" for row in range(len(grouped))]))
    with pytest.raises(ResultsError, match="row 1.*name the group of each text"):
        read(grouped.assign(group=["", *grouped["group"][1:]]))
    with pytest.raises(ResultsError, match="'group' is of single texts, and no column names the text"):
        read(pd.DataFrame({"task": "t", "seed": [0, 1], "group": ["a", "b"], "extra": [0.5, 0.6], "test": [0.6, 0.7]}))


def means(table: pd.DataFrame, column: str = "correct") -> list[float]:
    return table.groupby(["task", "seed", "arm"])[column].mean().tolist()


def test_rows_of_texts_are_added_up_for_each_seed_and_arm() -> None:
    table = read(ROWS.sample(frac=1, random_state=1))
    assert table.results["score"].tolist() == means(ROWS)
    assert set(table.results["num_test"]) == {20}
    assert (table.results["num_correct"] / 20 == table.results["score"]).all()
    assert "mapped seed=subsample, doc_id=text, correct=num_correct" in str(table.columns)
    assert table.predictions is not None
    answers = table.predictions.answers("news", "method", None, 20, ["test", "extra"])
    assert answers is not None
    assert answers.subsamples.tolist() == [0, 1, 2]
    rows = ROWS[(ROWS["task"] == "news") & (ROWS["arm"] == "test")]
    assert np.array_equal(answers.scores["test"], rows["correct"].to_numpy().reshape(3, 20))
    assert len(np.unique(answers.rows)) == 20

    wide = ROWS.pivot(index=["task", "seed", "doc_id"], columns="arm", values="correct").reset_index()
    sized = ROWS.assign(n=20, task="all", text=ROWS["task"] + ROWS["doc_id"])
    for other, options in (
        (wide, {}),
        (wide.rename(columns={"doc_id": "question"}), {"columns": {"question": "text"}}),
        (ROWS.assign(n=20, correct=100 * ROWS["correct"]).rename(columns={"correct": "acc"}), {"percent": True}),
    ):
        pd.testing.assert_frame_equal(read(other, **options).results, table.results)
    with pytest.raises(ResultsError, match="has rows of 40 texts, and num_test is another number"):
        read(sized.drop(columns="doc_id"))


def test_default_analyses_tell_seeds_and_texts_apart(tmp_path: Path) -> None:
    names = [analysis.name for analysis in analyze(ROWS).analyses]
    assert names == ["summary", "permutation", "texts"]
    summary, _, texts = analyze(ROWS).analyses
    (row,) = texts.tables[0].rows
    (verdict,) = summary.verdicts
    assert basis_of(verdict) == "2 tasks, 6 trials"
    assert isinstance(row[1], Estimate)
    assert verdict.estimate.mean == pytest.approx(row[1].mean)
    assert row[1].high - row[1].low > 2 * 1.96 * verdict.estimate.standard_error, "other texts add variance"
    folds = ROWS.assign(doc_id=ROWS["doc_id"] + "." + ROWS["seed"].astype(str))
    report = pb.analyze(folds[folds["doc_id"] != "q7.1"])
    assert basis_of(report.verdicts[0]) == "2 tasks, 6 trials", "folds of 19 and 20 texts are one configuration"
    ROWS.to_csv("rows.csv", index=False)
    done = run_command("analyze", "rows.csv")
    assert "Bias for other texts" not in done.stdout, "one interval of the bias"
    done = run_command("analyze", "rows.csv", "--analysis", "summary.texts")
    assert "Bias for other texts of these 2 tasks" in done.stdout, "the question that was asked"
    done = run_command("analyze", "rows.csv", "--task", "news", "--analysis", "summary.texts")
    assert "Bias for other texts of this task" in done.stdout
    done = run_command("compare", "rows.csv")
    assert "2 tasks" in done.stdout, done.stderr


def test_a_single_run_of_each_arm_has_texts_as_subsamples() -> None:
    tasks = make_rows(1, 20, ("mail",)), make_rows(1, 30, ("news",))
    rows = pd.concat(tasks, ignore_index=True)
    table = read(rows)
    assert table.predictions is None
    assert "so each text is one" in str(table.columns)
    assert set(table.results["num_test"]) == {1}
    mapped = read(
        rows[["task", "arm", "doc_id", "correct"]].assign(n=1, correct=rows["correct"] + 0),
        columns={"doc_id": "subsample"},
    )
    renumbered = mapped.results.assign(subsample=mapped.results["subsample"] - 1)
    pd.testing.assert_frame_equal(table.results, renumbered)
    with pytest.raises(ResultsError, match="task mail, .*: 10 of 30 subsamples missing or incomplete"):
        analyze(mapped.results, AnalysisOptions(["summary"]))
    report = pb.analyze(rows)
    assert basis_of(report.verdicts[0]) == "2 tasks, 50 trials"
    assert any("not for models that are trained again" in warning for warning in report.warnings)
    assert "for these fits" in str(report).partition("How large?")[0]
    assert not any("unequal" in warning.lower() for warning in report.warnings)


def test_rows_whose_scores_are_all_0_or_1_are_about_single_texts() -> None:
    long = make_rows(1).drop(columns="seed")
    wide = long.pivot(index=["task", "doc_id"], columns="arm", values="correct").reset_index()
    expected = read(long)
    for table in (long, wide, wide.assign(method="method", n=20)):
        for name in ("id", "idx", "Example ID"):
            found = read(table.rename(columns={"doc_id": name}).assign(mode="test"), ignore=["mode"])
            pd.testing.assert_frame_equal(found.results, expected.results)
    rows = read(wide.drop(columns="doc_id").astype({"test": int}))
    assert rows.has_texts_as_draws
    sums, right = (table.results.groupby(["task", "arm"])["num_correct"].sum() for table in (rows, expected))
    assert sums.equals(right)
    question = long.rename(columns={"doc_id": "question"})
    for table, message in (
        (question.assign(source="web"), r"(?s)'question'; 'source'.*:\n  --map question=text --ignore source$"),
        (long.drop(columns="doc_id"), "20 rows have the same .* Add a column 'text', or name yours with --map .*=text"),
        (wide.drop(columns="doc_id").assign(seed=0), "row 2, .*; name the text of each row in a column 'text'"),
    ):
        with pytest.raises(ResultsError, match=message):
            read(table)


def test_repeated_answers_to_a_text_are_counted() -> None:
    rows = ROWS.assign(num_test=4, num_correct=3 * ROWS["correct"], score=0.75 * ROWS["correct"])
    table = read(rows.drop(columns="correct"))
    assert set(table.results["num_test"]) == {80}
    assert table.results["score"].tolist() == pytest.approx([0.75 * mean for mean in means(ROWS)])


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        (ROWS.drop(index=3), "task mail, .*, subsample 0: not all arms have the text 'q3'"),
        (
            ROWS[(ROWS["seed"] != 1) | (ROWS["doc_id"] != "q7")],
            "task mail, .*, subsample 0 has rows of 20 texts, but other subsamples have fewer",
        ),
        (pd.concat([ROWS, ROWS.head(1)]), "row 361, column 'doc_id': q0 occurs twice .rows 1 and 361.; delete one"),
        (ROWS.drop(columns="seed"), "3 rows have the same .*, task, arm, text"),
        (ROWS.assign(doc_id=ROWS["doc_id"].where(ROWS.index != 5, "")), "row 6, column 'doc_id': the cell is empty"),
        (ROWS.assign(macro_f1=1.0), r"'macro_f1' is a measure of all texts(?s:.*)--ignore macro_f1"),
        (ROWS.assign(correct=1.0).rename(columns={"correct": "bpb"}), "no column 'score'.* 'bpb' is a measure of all"),
        (ROWS.assign(question_id=ROWS["doc_id"]), "'doc_id', 'question_id' can all mean 'text'"),
    ],
)
def test_rows_of_texts_that_do_not_fit_together_are_refused(rows: pd.DataFrame, message: str) -> None:
    with pytest.raises(ResultsError, match=message):
        read(rows)


def make_answers() -> pd.DataFrame:
    """The same rows with a label for each text, and another class as each wrong answer."""
    labels = (ROWS["task"] + ROWS["doc_id"]).map(hash_of_text)
    return ROWS.assign(label=labels, answer=labels.where(ROWS["correct"], (labels + 1) % 3)).drop(columns="correct")


def hash_of_text(text: str) -> int:
    return sum(map(ord, text)) % 3


def test_answers_are_compared_with_labels() -> None:
    table = make_answers()
    expected = read(ROWS)
    names = {0: "sports", 1: "business", 2: "None"}
    as_floats = table.assign(answer=table["answer"].astype(float))
    as_names = table.assign(**{column: table[column].map(names) for column in ("label", "answer")})
    renamed = as_names.rename(columns={"answer": "y_pred", "label": "Gold label", "doc_id": "example_id"})
    for answers in (table, as_floats, renamed):
        found = read(answers)
        pd.testing.assert_frame_equal(found.results, expected.results)
    assert "used task, arm, label, answer;" in str(read(table).columns)
    wide = table.pivot(index=["task", "seed", "doc_id", "label"], columns="arm", values="answer").add_prefix("y_pred_")
    pd.testing.assert_frame_equal(read(wide.rename_axis(columns=None).reset_index()).results, expected.results)
    one = wide.xs(0, level="seed").reset_index().sort_values("task", kind="stable")
    for form in (one.rename(columns={"doc_id": "id"}), one.drop(columns="doc_id")):
        assert read(form).results["num_correct"].sum() == expected.results.query("subsample == 0")["num_correct"].sum()
    with pytest.raises(ResultsError, match="'label' is no score without the columns text, answer and label"):
        read(wide.reset_index().drop(columns="doc_id"))


def test_answers_need_labels_and_texts_in_the_same_form() -> None:
    table = make_answers()
    is_first = table.index == 0
    with pytest.raises(ResultsError, match="row 1, column 'answer': the cell is empty"):
        read(table.assign(answer=table["answer"].mask(is_first)))
    with pytest.raises(ResultsError, match="row 21, column 'label': . differs from the label of the same text"):
        read(table.assign(label=table["label"].mask(is_first, 7)))
    for column in ("label", "doc_id"):
        with pytest.raises(ResultsError, match="'answer' is no score without the columns text, answer and label"):
            read(table.drop(columns=column))
    graded = read(table.assign(correct=ROWS["correct"]))
    assert graded.columns.ignored == {"label": "not a score", "answer": "not a score"}
    pd.testing.assert_frame_equal(graded.results, read(ROWS).results)
    with pytest.raises(ResultsError, match="'answer': class 0 is none of the labels, and neither is any other answer"):
        read(table.assign(answer="class " + (table["answer"] * 0).astype(str)))
