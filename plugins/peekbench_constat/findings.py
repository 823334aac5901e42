"""The models that are compared, and the test of each."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from difflib import get_close_matches

import numpy as np
import pandas as pd

from peekbench.errors import SpecError
from peekbench.formatting import list_names
from peekbench.records import Problem
from peekbench.results import label_configuration
from peekbench_constat import Comparison, ConStat
from peekbench_constat.excess import Excess, Prediction, Scores, predict_scores

MAX_LISTED = 8  # names in a message
NAMING = ("method", "model", "num_train")


def label_models(results: pd.DataFrame) -> pd.DataFrame:
    """Return the base arms with a column `label`: the method, with its model and number of train texts if these vary.

    Parameters
    ----------
    results
        The results table.
    """
    base = results[results["arm"] == "base"]
    varying = [name for name in NAMING if name == "method" or base[name].nunique(dropna=False) > 1]
    keys = list(zip(*(base[name] for name in varying), strict=True))
    labels = {key: label_configuration(dict(zip(varying, key, strict=True))) for key in set(keys)}
    return base.assign(label=[labels[key] for key in keys])


def check_names(options: ConStat, tasks: Sequence[str], models: Sequence[str]) -> None:
    """Refuse options that name no comparison, an unknown task or an unknown model.

    Parameters
    ----------
    options
        Options of the user.
    tasks, models
        Names in the results.

    Raises
    ------
    SpecError
        The message names the option and the nearest valid name.
    """
    if not options.comparisons:
        first, second = (*sorted(tasks, key=len), "gsm8k", "gsm8k-rephrased")[:2]
        raise SpecError(
            f"analysis constat, option comparisons: none is given; the tasks are {_list(tasks)}. Name the benchmark "
            "that models may have seen and another that predicts its scores in a spec, and use it with --spec:\n"
            "name: contamination\nanalyses:\n  - use: constat\n    options:\n      comparisons:\n"
            f"        - {{original: {first}, reference: {second}}}"
        )
    for comparison in options.comparisons:
        for field in ("original", "reference"):
            _check(f"comparisons: {field}", getattr(comparison, field), tasks)
        if comparison.original == comparison.reference:
            raise SpecError(
                f"analysis constat, option comparisons: {comparison.original!r} is both original and reference; name "
                "two benchmarks"
            )
    for field in ("suspects", "references"):
        for name in getattr(options, field):
            _check(field, name, models)
    members = Counter(name for family in options.model_families.values() for name in family)
    for name, count in members.items():
        _check("model_families", name, models)
        if count > 1:
            raise SpecError(f"analysis constat, option model_families: {name!r} is named {count} times; name it once")


def _check(option: str, name: str, known: Sequence[str]) -> None:
    if name not in known:
        close = get_close_matches(name[:100], known, n=1)
        remedy = f"did you mean {close[0]}?" if close else f"the results have {_list(known)}"
        raise SpecError(f"analysis constat, option {option}: there is no {name!r}; {remedy}")


def _list(names: Sequence[str]) -> str:
    return list_names(names, MAX_LISTED)


def name_families(models: Sequence[str], options: ConStat) -> dict[str, tuple[str, ...]]:
    """Return a key of each model's family: its models, or the model itself if the options name no family.

    Parameters
    ----------
    models
        Labels of models.
    options
        Families that the user names.
    """
    named = {name: family for family in options.model_families.values() for name in family}
    return {name: named.get(name, (name,)) for name in models}


def choose_models(names: Sequence[str], options: ConStat) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the models to test and the reference models; both are all models if the options name none.

    Parameters
    ----------
    names
        Models that have scores on both benchmarks.
    options
        Models that the user names.
    """

    def select(chosen: Collection[str], excluded: Collection[str]) -> tuple[str, ...]:
        return tuple(name for name in names if (name in chosen if chosen else name not in excluded))

    return select(options.suspects, options.references), select(options.references, options.suspects)


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
    return Compared(comparison, references, prediction, tuple(findings))


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
