"""The words that all formats share: what each decision states, long and short, its mark and color, and numbers.

`sentences` fills these texts with the facts of a verdict, `answers` with those of a report. No module reads a sentence.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from peekbench.formatting import format_cell, format_signed
from peekbench.records.scores import find_score
from peekbench.records.verdicts import ControlOutcome, Decision, Estimate, TrialEvidence, Unit


@dataclass(frozen=True, slots=True)
class Claim:
    """What a decision states."""

    short: str
    """In a few words, for the first page."""
    long: str
    """In a clause with all numbers, which follows the name of the method and a colon."""


UNCERTAIN = (
    "a bias of {bias} {scope} {interval}: too uncertain to distinguish from zero, or to call smaller than {region}"
)
PREDICTED = (
    "its score on {original}, {own_score}, is {distance} the {predicted} that its score on {reference}, "
    "{reference_score}, predicts"
)
CLAIMS: Mapping[tuple[str, str], Claim] = {
    ("bias", "biased up"): Claim(
        "Test {rows} raise {score}", "seeing the test {rows} raised {score} by {size} {scope} {interval}"
    ),
    ("bias", "biased down"): Claim(
        "Test {rows} lower {score}", "seeing the test {rows} lowered {score} by {size} {scope} {interval}"
    ),
    ("bias", "equivalent"): Claim(
        "Test {rows} change {score} by less than {region}",
        "seeing the test {rows} changed {score} by less than {region} {scope}{nonzero}: {bias} {interval}",
    ),
    ("bias", "inconclusive"): Claim("Inconclusive", UNCERTAIN),
    ("bias", "not above"): Claim(
        "An increase of {score} by more than {region} is excluded",
        UNCERTAIN + ", but an increase by more than {region} is excluded",
    ),
    ("bias", "not below"): Claim(
        "A decrease of {score} by more than {region} is excluded",
        UNCERTAIN + ", but a decrease by more than {region} is excluded",
    ),
    ("bias", "inert"): Claim(
        "The predictions do not depend on the unlabeled {rows}",
        "its predictions are the same with the {rows} of extra and of test in all {num_trials:,} trials, so they do "
        "not depend on the unlabeled {rows} and cannot show a bias; check that the method uses them.",
    ),
    ("bias", "no signal"): Claim(
        "The predictions are at chance, so a bias could not be seen",
        "its predictions carry no information on the labels (their balanced accuracy, or R^2, is not above that of "
        "chance), so a bias could not be seen; use more train {rows}, or other options of the method.",
    ),
    ("contamination", "biased up"): Claim("The score is higher than predicted", PREDICTED + " {interval}."),
    ("contamination", "biased down"): Claim("The score is lower than predicted", PREDICTED + " {interval}."),
    ("contamination", "equivalent"): Claim(
        "The score differs from the predicted one by less than {region}",
        PREDICTED + " {interval}, which is negligible.",
    ),
    ("contamination", "inconclusive"): Claim(
        "Inconclusive",
        PREDICTED + " {interval}, too uncertain to distinguish from zero, or to call smaller than {region}.",
    ),
}
"""What a verdict states, by effect and decision, or by what an inconclusive one excludes."""
SMALLER = "a bias of {bias} {scope} {interval}: smaller than {region}, which these trials do not settle"
"""What an inconclusive verdict states if its interval lies within the region."""
OUTCOMES: Mapping[tuple[str, str], str] = {
    ("negative", "passed"): "As expected: a negative control cannot have a bias.",
    ("negative", "undecided"): "A negative control cannot have a bias, but the interval is too wide to exclude one "
    "that is not negligible.",
    ("negative", "failed"): "This should be impossible: a negative control cannot have a bias.",
    ("positive", "passed"): "As expected: a positive control has a planted bias.",
    ("positive", "undecided"): "A positive control has a planted bias, which is not detected yet.",
    ("positive", "failed"): "This should be impossible: a positive control has a planted bias.",
}
"""Sentence on a control, by kind and outcome."""
UNEXPECTED: Mapping[tuple[str, str], str] = {
    ("negative", "undecided"): "The negative control {} cannot have a bias, but its interval is too wide to exclude "
    "one that is not negligible: test {rows} may leak to it unnoticed. Draw more subsamples",
    ("negative", "failed"): "The negative control {} cannot have a bias, but this run finds one: by chance, or because "
    "test {rows} leak to it. Find the cause before you trust any other verdict",
    ("positive", "undecided"): "The positive control {} has a planted bias, but this run does not detect it: the run "
    "may also miss the bias of another method. Draw more subsamples, or plant a larger bias",
    ("positive", "failed"): "The positive control {} has a planted bias, but this run finds one of the opposite sign. "
    "Find the cause before you trust any other verdict",
}
"""Warning of a control whose known bias a run does not find, by kind and outcome."""
RULES: Mapping[str, str] = {
    "test": "Methods may adapt to the unlabeled {row}s of the test set",
    "not test": "Methods must not adapt to the unlabeled {row}s of the test set",
    "cross": (
        "The test {row}s are divided into {blocks} blocks, and a model that predicts a block has not adapted to any of "
        "its {row}s"
    ),
    "leave-one-out": "A model that predicts a test {row} has not adapted to this {row}",
    "stream": (
        "The test {row}s arrive in {blocks} blocks in a fixed order, and a model that predicts a block has adapted to "
        "no later block"
    ),
    "blocks": (
        "The test {row}s are divided into {blocks} blocks, and a model that predicts a block has adapted to no other "
        "block"
    ),
    "single": "A model that predicts a test {row} has adapted to no other test {row}",
}
"""Rules of a benchmark that the arms implement, by kind of arm; 'not test' is the opposite of that of 'test'."""
SPECIFIC: Mapping[str, str] = {
    "": "",
    "syntax": " The excess does not generalize to the same texts in other words (syntax-specific contamination).",
    "sample": " The excess does not generalize to other texts of this kind (sample-specific contamination).",
    "benchmark": " The excess does not generalize to another benchmark (benchmark-specific contamination).",
}
"""What an excess is limited to, by the kind of the reference benchmark."""
MARKS: Mapping[Decision | ControlOutcome, str] = {
    "biased up": "▲",
    "biased down": "▼",
    "equivalent": "≈",
    "inconclusive": "?",
    "inert": "∅",
    "no signal": "∅",
    "passed": "✓",
    "undecided": "?",
    "failed": "✗",
}
TONES: Mapping[str, str] = {
    **dict.fromkeys(("inert", "no signal", "undecided"), "inconclusive"),
    "passed": "equivalent",
    "failed": "biased-up",
}
"""CSS class of the colors of a control's outcome; other decisions have a class of their own."""
DECISION_STYLES = {
    **dict.fromkeys(("inconclusive", "inert", "no signal", "undecided"), "bold"),
    "biased up": "bold red",
    "biased down": "bold magenta",
    "equivalent": "bold green",
    "passed": "bold green",
    "failed": "bold red",
}
"""Style of each decision: colors that are legible on dark and on light backgrounds, which yellow and cyan are not."""
QUESTIONS: Mapping[str, str] = {
    "bias": "Does a method score higher if its unlabeled data come from the test set?",
    "contamination": "Does a model score higher on a benchmark than its score on another benchmark predicts?",
}
"""Question that the verdicts on an effect answer; that of 'bias' for other effects."""
TERMS: Mapping[str, str] = {
    "bias": "Each method is scored three times. Base: without unlabeled {rows}. Extra: with independent ones. Test: "
    "with those of the test set. Bias: test - extra.",
    "contamination": "Excess: the score of a model minus the score that reference models predict from its score on the "
    "reference benchmark.",
}
"""What the words in the verdicts on an effect mean; those of 'bias' for other effects."""


def capitalize(text: str) -> str:
    """Return a clause as the beginning of a sentence."""
    return text[:1].upper() + text[1:]


def points(unit: Unit) -> str:
    """Return the name of the unit of a difference, to follow a number; empty if it has none."""
    return " points" if unit == "difference" else ""


def format_estimate(estimate: Estimate, unit: Unit) -> str:
    """Return an estimate with its interval and unit: '+1.47 [+0.91, +2.03] points'; empty if it is unknown."""
    if not estimate.is_known:
        return ""
    text = format_signed(estimate.mean, unit)
    if estimate.has_interval:
        text += f" [{format_signed(estimate.low, unit)}, {format_signed(estimate.high, unit)}]"
    return text + points(unit)


def format_size(value: float, unit: Unit) -> str:
    """Return the size of a difference with its unit."""
    return f"{value * 100:.2f} points" if unit == "difference" else f"{value:.4f}"


def format_range(low: float, high: float, unit: Unit) -> str:
    """Return the ends of an interval: '-0.10 to +0.40'."""
    return f"{format_signed(low, unit)} to {format_signed(high, unit)}"


def list_numbers(numbers: Sequence[int]) -> str:
    """Return a list of ascending numbers in words."""
    *others, last = (f"{number:,}" for number in numbers)
    return f"{', '.join(others)} and {last}" if others else last


def name_score(score: str, unit: Unit) -> str:
    """Return the name of the score that a verdict is about, as in 'seeing the test texts raised accuracy'."""
    if score != "score":
        return f"the {find_score(score).title}"
    return "accuracy" if unit == "difference" else "the score"


def list_scores(evidence: TrialEvidence, unit: Unit) -> str:
    """Return the scores beside a bias, as 'base 61.2%, extra 64.0%'; empty if they are unknown."""
    score_unit: Unit = "fraction" if unit == "difference" else "number"
    known = (("base", evidence.base), ("extra", evidence.extra))
    return ", ".join(f"{arm} {format_cell(score, score_unit)}" for arm, score in known if score is not None)
