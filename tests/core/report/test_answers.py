"""The answers with which a report begins, and the sentence of a verdict."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from peekbench.records import Report, TrialEvidence
from peekbench.records.trials import Draw, Trial, TrialFailure
from peekbench.records.verdicts import Advice, Estimate, Settling, Verdict
from peekbench.report.render.answers import Answer, answer, summarize
from peekbench.report.render.markdown import render_markdown

OPEN = TrialEvidence(5, 60, settling=Settling(Advice(120, 0.81), Advice(40, 0.87), bias=0.005))
UP = Verdict("lsa", "bias", "biased up", Estimate(0.02, 0.01, 0.03), 0.005)
UNDECIDED = Verdict("tapt", "bias", "inconclusive", Estimate(0.002, -0.01, 0.014), 0.005, evidence=OPEN)
SAME = Verdict("pca", "bias", "equivalent", Estimate(-0.001, -0.002, 0.001), 0.005)
NULL = Verdict("null", "bias", "passed", Estimate(0.0, -0.1, 0.1), 0.005, control="negative")
DESIGN: dict[str, Any] = {"num_subsamples": 12}


def ask(*verdicts: Verdict, command: str = "peekbench run r.yaml", **parts: Any) -> dict[str, Answer]:
    report = Report("r", "h", verdicts, command=command, **parts)
    return {each.question: each for each in answer(report)}


def test_the_answers_count_the_decisions_and_name_the_extremes() -> None:
    answers = ask(UP, UNDECIDED, SAME, NULL, warnings=("careful",))
    assert answers["Biased?"].text == "Yes. Of 3 methods, 1 is biased up, 1 equivalent, 1 inconclusive."
    assert answers["How large?"].text == "-0.10 to +2.00 points. From pca to lsa. Up to 0.50 points is negligible."
    assert answers["Trust it?"].text == "1 of 1 control passed. 1 warning."


@pytest.mark.parametrize(
    ("verdicts", "short"),
    [
        ((UP, SAME), "Yes"),
        ((SAME, UNDECIDED), "Undecided"),
        ((SAME, replace(SAME, decision="inert")), "No"),
        ((replace(SAME, decision="no signal"),), "Cannot be seen"),
    ],
)
def test_one_word_answers_for_all_methods(verdicts: tuple[Verdict, ...], short: str) -> None:
    assert ask(*verdicts)["Biased?"].short == short


@pytest.mark.parametrize(
    ("spec", "how"),
    [
        ({"design": DESIGN, "tasks": []}, "set num_subsamples to 132, then run:"),
        ({"design": DESIGN, "tasks": [{"name": "a", "num_subsamples": 3}]}, "add 120 to each num_subsamples"),
        ({"design": {**DESIGN, "stop": {"looks": 4}}, "tasks": []}, "so plan them under another name"),
        (None, "probability: add them, then run:"),
    ],
)
def test_what_settles_open_verdicts_is_one_number_and_one_command(spec: Any, how: str) -> None:
    following = ask(UP, UNDECIDED, details={} if spec is None else {"spec": spec})["What next?"]
    assert following.short == "120 more subsamples per task"
    assert "settle tapt with 81% probability" in following.details and how in following.details
    assert following.command == "peekbench run r.yaml"


def test_too_few_subsamples_for_any_verdict_are_raised_to_the_least_number() -> None:
    few = replace(UNDECIDED, evidence=TrialEvidence(1, 3, min_subsamples=6))
    run: dict[str, Any] = {"spec": {"design": DESIGN, "tasks": []}}
    following = ask(UP, few, details=run)["What next?"]
    assert following.text == (
        "At least 6 subsamples per task. Fewer cannot support a verdict: set num_subsamples to at least 6, then run:"
    )
    assert ask(few)["What next?"].details == "Fewer cannot support a verdict: add them, then run:"


def test_commands_are_not_escaped_in_markdown() -> None:
    command = "peekbench run 'my spec_1.yaml' --store runs/a_1.sqlite"
    details = {"spec": {"design": DESIGN, "tasks": []}}
    report = Report("r", "h", (UNDECIDED,), command=command, details=details)
    assert f"```sh\n{command}\n```" in render_markdown(report)


def test_no_command_is_given_that_would_not_extend_the_run() -> None:
    run: dict[str, Any] = {"spec": {"design": DESIGN, "tasks": []}}
    for command in ("ipykernel_launcher.py -f kernel.json", "peekbench report small --analysis bayes"):
        following = ask(UNDECIDED, command=command, details=run)["What next?"]
        assert following.command == "" and following.details.endswith("then run it again.")


def test_a_run_is_checked_and_completed_before_it_is_extended() -> None:
    failure = TrialFailure(Trial(Draw("news", 5, 5, 0), "lsa"), "an error", "")
    failed = replace(NULL, decision="failed")
    assert ask(UNDECIDED, failed, failures=(failure,))["What next?"].short == "Find the cause"
    assert ask(UNDECIDED, failed)["Trust it?"].short == "Control failed: null"
    assert ask(UNDECIDED, failures=(failure,))["What next?"].short == "Repeat the failed trials"
    assert ask(UP)["What next?"].short == "Report the scores of extra"
    excess = replace(UP, effect="contamination")
    assert ask(excess)["What next?"].short == "Report the scores of the reference benchmark"
    assert ask(SAME)["What next?"].short == "Nothing"
    undecided = replace(NULL, method="leak", control="positive", decision="undecided")
    assert ask(SAME, undecided)["What next?"].text == (
        "More data. The run does not detect the bias that is planted in leak."
    )
    assert ask(UP, undecided)["What next?"].short == "Report the scores of extra"
    assert ask(NULL) == {}


def test_a_verdict_is_one_sentence() -> None:
    assert summarize(UP) == "Test texts raise accuracy by more than 0.50 points."
    assert summarize(UNDECIDED) == "120 more subsamples per task settle it."
    few = replace(UNDECIDED, evidence=TrialEvidence(1, 3, min_subsamples=6))
    assert summarize(few) == "A verdict takes at least 6 subsamples per task."
    hopeless = replace(UNDECIDED, evidence=TrialEvidence(1, 3, settling=Settling(None, Advice(9, 0.8), bias=0.01)))
    assert summarize(hopeless) == "Inconclusive."
