"""Tests the models of one comparison."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from peekbench.records import Problem
from peekbench_constat import Comparison, ConStat
from peekbench_constat.answers import Scores
from peekbench_constat.excess import Excess, Prediction, predict_scores
from peekbench_constat.models import choose_models, name_families

MIN_REFERENCES = 8  # with fewer, the shape of the curve and the scatter around it are guesses
MIN_FAMILIES = 5  # the same, if models of a family count as one


@dataclass(frozen=True, slots=True)
class Finding:
    """Result of the test of one model."""

    model: str
    comparison: Comparison
    score: float
    """Accuracy on the original benchmark."""
    reference_score: float
    """Accuracy on the reference benchmark."""
    num_answers: tuple[int, int]
    """Answers of the model on the original and on the reference benchmark."""
    num_references: int
    num_families: int
    """Families of the reference models."""
    excess: Excess | None
    """None if the reference models cannot predict the score."""
    problem: Problem = ""
    """Why they cannot."""
    minimum: int = 0
    """Reference models or families that are needed, if there are too few."""
    span: tuple[float, float] = (math.nan, math.nan)
    """Range of the reference models' scores on the reference benchmark."""


@dataclass(frozen=True, slots=True)
class Compared:
    """Results of one comparison."""

    comparison: Comparison
    original: Scores
    reference: Scores
    """Scores of the same models."""
    references: tuple[str, ...]
    """Reference models; if each model is tested against all others, all models."""
    prediction: Prediction | None
    """Prediction from all of `references`; None if they are too few."""
    findings: tuple[Finding, ...]


def compare(comparison: Comparison, original: Scores, reference: Scores, options: ConStat) -> Compared:
    """Test the models of a comparison.

    Parameters
    ----------
    comparison
        The benchmarks.
    original, reference
        Scores of the same models in the same order.
    options
        Models and seed.
    """
    suspects, references = choose_models(original.names, options)
    families = name_families(original.names, options)

    def count_families(models: tuple[str, ...]) -> int:
        return len({families[name] for name in models})

    def predict(models: tuple[str, ...]) -> Prediction | None:
        if (
            len(models) < MIN_REFERENCES
            or count_families(models) < MIN_FAMILIES
            or np.ptp(reference.select(models).observed) == 0
        ):
            return None
        rng = np.random.default_rng([options.seed, len(models)])
        numbers = {family: number for number, family in enumerate(dict.fromkeys(families[name] for name in models))}
        units = np.array([numbers[families[name]] for name in models])
        return predict_scores(original.select(models), reference.select(models), rng, units)

    prediction = predict(references)
    findings = []
    for model in suspects:
        own = (original.select((model,)), reference.select((model,)))
        others = tuple(name for name in references if families[name] != families[model])
        counts = (len(others), count_families(others))
        findings.append(_test(comparison, *own, counts, prediction if others == references else predict(others)))
    return Compared(comparison, original, reference, references, prediction, tuple(findings))


def _test(
    comparison: Comparison, original: Scores, reference: Scores, counts: tuple[int, int], prediction: Prediction | None
) -> Finding:
    """Test a model; `counts` are the numbers of its reference models and of their families."""
    excess, minimum, span = None, 0, (math.nan, math.nan)
    problem: Problem = ""
    num_references, num_families = counts
    score = float(reference.observed[0])
    if prediction is None and num_references < MIN_REFERENCES:
        problem, minimum = "too few reference models", MIN_REFERENCES
    elif prediction is None and num_families < MIN_FAMILIES:
        problem, minimum = "too few families", MIN_FAMILIES
    elif prediction is None:
        problem = "reference scores do not differ"
    elif not prediction.covers(score):
        problem, span = "out of range", prediction.span
    else:
        excess = prediction.compare(original, reference)
    return Finding(
        original.names[0],
        comparison,
        float(original.observed[0]),
        score,
        (int(original.num_answers[0]), int(reference.num_answers[0])),
        num_references,
        num_families,
        excess,
        problem,
        minimum,
        span,
    )
