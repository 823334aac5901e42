"""The answers with which a report begins, and the sentence of a verdict."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from peekbench.data.preflight import describe_tasks
from peekbench.execution.runner import run
from peekbench.records import PredictedAlone, Report, TrialEvidence
from peekbench.records.report import Analysis, Extension
from peekbench.records.trials import Draw, RowLimit, Trial, TrialFailure
from peekbench.records.verdicts import (
    Advice,
    Estimate,
    FailedCheck,
    FixedTexts,
    LooksTaken,
    PosteriorEvidence,
    Settling,
    Verdict,
)
from peekbench.report.facts.reports import add_analyses, limit_advice, report_of_run
from peekbench.report.facts.run_facts import describe_extension, find_command
from peekbench.report.render.advice import Answer
from peekbench.report.render.answers import answer
from peekbench.report.render.content import make_sections
from peekbench.report.render.html import render_html
from peekbench.report.render.json_report import render_json
from peekbench.report.render.markdown import render_markdown
from peekbench.report.render.sentences import state, state_briefly
from peekbench.store.writer import StoreWriter

OPEN = TrialEvidence(5, 60, settling=Settling(Advice(120, 0.81)))
UP = Verdict("lsa", "bias", "biased up", Estimate(0.02, 0.01, 0.03), 0.005)
UNDECIDED = Verdict("tapt", "bias", "inconclusive", Estimate(0.002, -0.01, 0.014), 0.005, evidence=OPEN)
SAME = Verdict("pca", "bias", "equivalent", Estimate(-0.001, -0.002, 0.001), 0.005)
NULL = Verdict("null", "bias", "passed", Estimate(0.0, -0.1, 0.1), 0.005, control="negative")
RUN = Extension("peekbench run r.yaml", "run", num_subsamples=12)
INTERRUPTED = replace(RUN, num_missing=7)


def ask(*verdicts: Verdict, extension: Extension = RUN, **parts: Any) -> dict[str, Answer]:
    report = Report("r", "h", verdicts, extension=extension, **parts)
    return {given.question: given for given in answer(report)}


OFFICIAL = replace(OPEN, published=0.7, extra=0.69, num_texts=200)
KNOWN = FixedTexts("inconclusive", Estimate(0.02, -0.01, 0.05), Estimate(0.69, 0.65, 0.73, level=0.95))


def test_an_official_test_set_leads_with_the_score_to_publish() -> None:
    verdict = replace(UP, evidence=replace(OFFICIAL, fixed_texts=KNOWN))
    answers = ask(verdict)
    assert [*answers][:4] == ["Question", "To publish", "Usual score", "Biased?"]
    same = replace(verdict, estimate=Estimate(0.0), rows="rows", evidence=OFFICIAL)
    assert "neither profit nor suffer" in ask(same)["Usual score"].details
    assert "No interval for other rows is known, because" in ask(same)["To publish"].details
    assert [*ask(verdict, replace(SAME, evidence=OFFICIAL))][1:5] == [
        "To publish (lsa)", "Usual score (lsa)", "To publish (pca)", "Usual score (pca)"
    ]  # fmt: skip


def test_predicting_together_without_a_known_effect_is_a_clause() -> None:
    clauses: dict[Any, str] = {
        "inert": "changes no score",
        "equivalent": "0.50 points:",
        "inconclusive": "undecided: +1",
    }
    for decision, clause in clauses.items():
        alone = PredictedAlone(0.5, Estimate(0.01, -0.01, 0.03, level=0.95), decision)
        text = ask(replace(SAME, evidence=replace(OPEN, alone=alone)))["Biased?"].text
        assert text.startswith("No. pca is equivalent.") and clause in text


def test_a_fixed_test_set_gives_two_answers() -> None:
    limited = replace(UP, evidence=replace(OFFICIAL, fixed_texts=KNOWN))
    answers = ask(limited)
    assert answers["Biased?"].text == (
        "On these texts yes; for other texts of this kind unknown. lsa is biased up on these texts."
    )
    assert answers["How large?"].details.startswith("For other texts of this kind: [-1.00, +5.00] points.")
    assert "For other texts of this kind, the bias is undecided: -1.00 to +5.00 points." in state(limited)
    both = replace(UP, evidence=replace(OFFICIAL, fixed_texts=replace(KNOWN, decision="biased up")))
    assert ask(both)["Biased?"].text == "Yes, on these texts and for other texts of this kind. lsa is biased up."
    assert "This also holds for other texts of this kind" in state(both)
    unknown = replace(SAME, evidence=replace(OFFICIAL, score="macro_f1", fixed_texts=FixedTexts()))
    answers = ask(unknown)
    assert answers["Biased?"].short == "On these texts no; for other texts of this kind unknown"
    assert "so it may keep some of the bias, and no interval for other texts is known" in str(answers)
    assert "negligible on these texts; only more test texts" in answers["What next?"].details
    assert ask(both, unknown)["Biased?"].short == "On these texts yes; for other texts of this kind unknown"
    report = Report("r", "h", (limited,), extension=RUN)
    assert "**lsa**: **biased up on these texts**." in render_markdown(report)
    assert "biased up on these texts</span>" in render_html(report)


def test_a_score_that_adapting_lowers_is_explained_and_what_remains_is_not_called_unbiased() -> None:
    evidence = replace(OPEN, published=0.6, extra=0.63, score="micro_f1")
    down = replace(UP, decision="biased down", estimate=Estimate(-0.03, -0.04, -0.02), unit="difference")
    answers = ask(replace(down, evidence=evidence))
    shown = " ".join(map(str, answers.values()))
    assert "60.0% micro-F1 for one fit that adapts to all these test texts" in shown
    assert "Fits suffer by 3.00 points" in shown
    assert "This score is not known to be a mean over texts, so it may keep some of the bias" in shown
    assert (
        answers["What next?"].text == "Report the score to publish. No text is predicted by a fit that adapted to it."
    )
    by_chance = replace(UNDECIDED, evidence=evidence)
    assert "adapting to more texts change this score by -3.20 points." in ask(by_chance)["Usual score"].details


def test_the_answers_count_the_decisions_and_name_the_extremes() -> None:
    answers = ask(UP, UNDECIDED, SAME, NULL, warnings=("careful",))
    assert answers["Biased?"].text == "Yes. Of 3 methods, 1 is biased up, 1 equivalent, 1 inconclusive."
    early = replace(UP, evidence=TrialEvidence(1, 20, looks=LooksTaken(number=2, share=0.4)))
    at_end = replace(UP, evidence=TrialEvidence(1, 50, looks=LooksTaken(number=5, share=1.0)))
    assert "estimates tend to be too far from 0" in ask(early, SAME)["How large?"].details
    for others in (ask(at_end), ask(replace(early, decision="equivalent")), ask(early, extension=INTERRUPTED)):
        assert "too far" not in others["How large?"].details
    weak = ask(replace(SAME, decision="no signal"))["Biased?"].text
    assert weak == "Cannot be seen. pca has no signal (predictions are at chance)."


@pytest.mark.parametrize(
    ("extension", "how"),
    [
        (RUN, "set num_subsamples to 132, then run:"),
        (replace(RUN, num_subsamples=None), "add 120 to each num_subsamples, then run:"),
        (Extension("peekbench analyze r.csv"), "add them to the table, then run:"),
        (Extension(earlier=(20,)), "add them to the table, then analyze it with earlier=[20]."),
        (replace(RUN, command=""), "set num_subsamples=132, then run it again."),
    ],
)
def test_what_settles_open_verdicts_is_one_number_and_one_command(extension: Extension, how: str) -> None:
    following = ask(UNDECIDED, extension=extension)["What next?"]
    assert following.short == "Add subsamples"
    assert following.details == f"120 more per task settle tapt with 81% probability, given these results: {how}"
    assert following.command == extension.command
    both = ask(UP, UNDECIDED, extension=extension)["What next?"]
    assert both.text.startswith("Report the extra scores. Their fits did not see the test texts")
    assert both.text.endswith(f" {following.text}") and both.command == extension.command


def test_an_inconclusive_verdict_says_what_it_excludes() -> None:
    low, high = Estimate(-0.003, -0.01, 0.004), Estimate(0.003, -0.004, 0.01)
    shown, excluded = (
        state_briefly(replace(UNDECIDED, estimate=low)),
        "of accuracy by more than 0.50 points is excluded",
    )
    assert shown == f"An increase {excluded}."
    assert state_briefly(replace(UNDECIDED, estimate=high)) == f"A decrease {excluded}."
    uncertain = (
        ": too uncertain to distinguish from zero, or to call smaller than 0.50 points, but an increase by more "
    )
    assert uncertain in state(replace(UNDECIDED, estimate=low))
    assert "excluded" not in state_briefly(UNDECIDED) + state(UNDECIDED)
    unseen = replace(UNDECIDED, evidence=replace(OPEN, unseen_share=0.058, tolerated_loss=0.0031))
    (section,) = make_sections(Report("run", "", (unseen,)))
    assert section.findings[0].short == (
        "Within ±0.50 points, but up to 5.8% of trials could fail unseen and lose more than 0.31 points each."
    )
    lost = replace(OPEN, unseen_share=0.058, tolerated_loss=1.0318)
    assert "costs at most" not in state(replace(SAME, evidence=lost)), "accuracy can lose at most 100 points"
    assert section.explanation.endswith("Inconclusive: neither, or rare failures are not excluded.")
    failed = FailedCheck("R-hat", 1.2, limit="below 1.01", remedy="increase the option draws")
    for evidence in (
        TrialEvidence(1, 90, is_zero=True),  # the interval is one of the share of trials
        TrialEvidence(1, 3, has_too_few=True),
        PosteriorEvidence(1, 90, failed=(failed,)),
    ):
        assert replace(UNDECIDED, estimate=low, evidence=evidence).size == ""


def test_a_verdict_that_cannot_be_settled_leaves_an_interval_to_report() -> None:
    hopeless = replace(UNDECIDED, evidence=replace(OPEN, settling=Settling(None, half_width=0.009)))
    following = ask(SAME, hopeless)["What next?"]
    assert following.text == (
        "Report the interval. tapt: 1,000 more subsamples per task settle this with less than 80% probability (the "
        "interval would be about ±0.90 points); larger test sets or other tasks have less noise; report that a bias "
        "beyond ±1.40 points is excluded."
    )
    noisy = replace(
        hopeless, method="net", evidence=replace(OPEN, settling=Settling(None, half_width=0.01), disagreement=0.47)
    )
    both = ask(hopeless, noisy)["What next?"].text
    assert "disagree on 47% of the texts (fits of net that average several seeds may agree more)" in both
    assert "the interval of net would be about ±1.00 points" in both
    assert "a bias of tapt beyond ±1.40 points and of net beyond ±1.40 points is excluded" in both


def test_a_single_subsample_of_a_task_does_not_measure_the_noise() -> None:
    single = replace(UNDECIDED, evidence=TrialEvidence(3, 3))
    for extension, how in (
        (RUN, "set num_subsamples to 32, then run:"),
        (Extension("peekbench analyze s.csv --earlier 1", earlier=(1,)), "add them to the table, then run:"),
    ):
        following = ask(SAME, single, extension=extension)["What next?"]
        assert (following.short, following.command) == ("At least 20 more subsamples per task", extension.command)
        assert following.text.endswith(f"They measure the noise, which is unknown: {how}")
    assert ask(replace(single, method="single"), UNDECIDED)["What next?"].short == "Add subsamples"
    equal = replace(single, method="copy", evidence=TrialEvidence(1, 30, is_zero=True))
    following = ask(equal, UNDECIDED, extension=Extension("peekbench analyze s.csv"))["What next?"]
    assert following.short == "Check the table"
    assert "in all trials of copy: if one is a copy, correct it; otherwise, the test texts had no eff" in following.text
    assert "Add subsamples. 120 more per task settle tapt with" in following.text


def test_one_number_of_subsamples_is_advised_with_its_probability() -> None:
    assert "; 120 more subsamples per task settle this with 81% probability, given these results." in state(UNDECIDED)
    assert state_briefly(UNDECIDED) == "Undecided."
    single = replace(UNDECIDED, evidence=replace(OFFICIAL, num_tasks=1, fixed_texts=KNOWN))
    following = ask(single, extension=replace(RUN, seconds=2))["What next?"]
    assert following.text == (
        "Add subsamples. 120 more settle tapt on these texts with 81% probability, given these results: "
        "set num_subsamples to 132 (about 4 min 00 s with one worker), then run:"
    )


def test_no_more_subsamples_are_advised_than_the_rows_support() -> None:
    """12 subsamples of each of 5 tasks were drawn, and the rows support 140."""
    limits = {30: RowLimit(140, "news", 70), 60: RowLimit(500, "mails", 900)}
    settling = Settling(Advice(300, 0.8), half_width=0.002)
    verdict = replace(UNDECIDED, evidence=replace(OPEN, settling=settling))
    limited = limit_advice(verdict, limits)
    evidence = limited.evidence
    assert isinstance(evidence, TrialEvidence) and evidence.settling is not None
    assert (evidence.settling.advice, evidence.settling.maximum) == (None, 128)
    shown = "128 more subsamples per task settle this with less than 80% probability (the interval would be about ±0.54"
    used_up = replace(verdict, evidence=replace(evidence, settling=replace(evidence.settling, maximum=0)))
    limit = "; once each of the 70 texts of news was tested 20 times, more subsamples narrow the interval for these"
    assert shown in state(limited) and limit in state(limited) and limit in state(used_up)
    following = ask(limited)["What next?"]
    assert following.short == "Report the interval" and not following.command
    at_60 = replace(verdict, parts=(("method", "tapt"), ("num_test", 60)))
    assert limit_advice(at_60, limits) == at_60
    assert limit_advice(verdict, {}) == verdict, "the rows of a table are unknown"


def test_a_run_knows_its_rows_and_json_has_what_they_allow(make_spec: Any) -> None:
    report = report_of_run(run(make_spec()).store)
    (limit,) = report.extension.max_subsamples.values()
    assert limit.num_subsamples == 20 * 400 // (2 * 30), "each trial scores two sets of 30 texts"
    verdict = replace(UNDECIDED, evidence=replace(OPEN, settling=Settling(Advice(130, 0.81))))
    limited = add_analyses(replace(report, verdicts=()), [Analysis("summary", verdicts=(verdict,))])
    (written,) = json.loads(render_json(limited))["verdicts"]
    known = written["evidence"]["settling"]
    assert (known["advice"], known["maximum"]) == (None, 121)


def test_tables_cannot_show_what_the_intervals_assume() -> None:
    single = replace(SAME, evidence=TrialEvidence(1, 40, looks=LooksTaken()))
    for extension, looks in (
        (Extension(earlier=(20,)), ", of which no part was analyzed before (otherwise, state `earlier`)"),
        (Extension("peekbench analyze a.csv", earlier=(20,)), " (otherwise, state `--earlier`)"),
        (Extension(earlier=(20, 48)), " and were analyzed before at 20 subsamples per task only"),
        (Extension(earlier=(20, 48, 60)), " and were analyzed before at 20 and 48 subsamples per task only"),
    ):
        text = ask(UNDECIDED, single, extension=extension)["Checked?"].text
        assert "The intervals assume that the 40 to 60 pairs of scores of a method are independent samples" in text
        assert f"{looks}; a table does not show this." in text


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        (["peekbench", "quickstart", "--workers", "1"], "peekbench run quickstart.yaml"),
        (["peekbench", "quickstart", "--official", "a.csv", "b.csv", "--fresh"], "peekbench run official.yaml"),
        (["__main__.py", "run", "my spec.yaml", "--fresh"], "python -m peekbench run 'my spec.yaml'"),
        (["ipykernel_launcher.py", "-f", "kernel.json"], ""),
    ],
)
def test_the_command_that_extends_a_run_is_that_of_its_last_session(command: list[str], expected: str) -> None:
    sessions = [{"command": ["other"]}, {"command": command}]
    assert find_command(sessions) == expected
    assert find_command([]) == ""


def test_how_to_extend_a_run_depends_on_all_its_trials_and_tasks(make_spec: Any, tmp_path: Path) -> None:
    def extension_of(spec: Any) -> Extension:
        with StoreWriter.for_run(tmp_path / "run.sqlite", spec, describe_tasks(spec)) as store:
            return describe_extension(store)

    spec = make_spec(tasks=["toy.words"], methods=["toy.vote"], design=design(2))
    run(spec, store=tmp_path / "run.sqlite")
    extension = extension_of(spec)
    assert (extension.num_subsamples, extension.num_missing) == (2, 0)
    assert extension.max_subsamples == {30: RowLimit(20 * 400 // (2 * 30), "toy.words", 400)}
    own = {"use": "toy.words", "name": "b", "options": {"num_rows": 120}, "num_subsamples": 3}
    extension = extension_of(make_spec(tasks=[own, "toy.words"], methods=["toy.vote"], design=design(2)))
    assert (extension.num_subsamples, extension.num_missing) == (None, 3), "tasks differ, and none is run of the other"
    assert extension.max_subsamples == {30: RowLimit(20 * 120 // (2 * 30), "b", 120)}, (
        "the rows of the smaller task limit both"
    )


def design(num_subsamples: int) -> dict[str, int]:
    return {"num_train": 12, "num_test": 30, "num_subsamples": num_subsamples}


def test_a_run_is_checked_and_completed_before_it_is_extended() -> None:
    failure = TrialFailure(Trial(Draw("news", 5, 5, 0), "lsa"), "an error", "")
    failed = replace(NULL, decision="failed")
    assert ask(UNDECIDED, failed, failures=(failure,))["What next?"].short == "Find the cause"
    assert ask(UNDECIDED, failed)["Checked?"].short == "Control failed: null"
    assert ask(UNDECIDED, failures=(failure,))["What next?"].short == "Repeat the failed trials"
    copied = ask(UP, has_copies=True)["What next?"]
    assert (copied.short, copied.command) == ("Remove the copies", "peekbench run r.yaml --fresh")
    assert ask(UNDECIDED, extension=INTERRUPTED)["What next?"].text == "Finish the run. 7 trials are missing."
    undecided = replace(NULL, method="leak", control="positive", decision="undecided")
    assert ask(SAME, undecided)["What next?"].text == ("More data. The run is too small to be checked by leak.")
    assert ask(UP, undecided)["What next?"].short == "Report the extra scores"
    assert ask(NULL) == {}


def test_a_verdict_is_one_sentence() -> None:
    assert state_briefly(UP) == "Test texts raise accuracy by more than 0.50 points."
    assert state_briefly(UNDECIDED) == "Undecided."
    scored = TrialEvidence(5, 60, base=0.612, extra=0.64)
    assert state_briefly(replace(UP, evidence=scored)).endswith(
        "accuracy by more than 0.50 points (base 61.2%, extra 64.0%)."
    )
    undecided = replace(UNDECIDED, evidence=replace(OPEN, score="log_loss", extra=-1.5), unit="change")
    assert state_briefly(undecided) == "Undecided (the log-likelihood: extra -1.5)."
