"""The scores of a results table: the configurations in the chosen score, effects in all scores, and their columns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import pandas as pd

from peekbench import Column, Estimate, Table, Verdict
from peekbench.formatting import SHARED_DRAWS, capitalize, join_words
from peekbench.records import POINTS, Cell, Predictions, Unit
from peekbench.results import SCORES, Configuration, Configurations, configurations, find_score
from peekbench_stats import resolve_score, select_score
from peekbench_summary import Summary
from peekbench_summary.estimates import estimate_effect
from peekbench_summary.text_noise import with_fixed_texts


def resolve_options(results: pd.DataFrame, options: Summary) -> Summary:
    """Return the options with the name of the score that `score: score` stands for in these results."""
    return options.model_copy(update={"score": resolve_score(results, options.score)})


def choose_configurations(
    results: pd.DataFrame, options: Summary, analysis: str, predictions: Predictions | None = None
) -> Configurations:
    """Return the configurations of a results table in the chosen score, whose name is added to titles.

    Parameters
    ----------
    results
        The results table.
    options
        The score.
    analysis
        Name of the analysis, for errors.
    predictions
        Answers to single texts, whose means the default score is.

    Raises
    ------
    SpecError
        If the results lack the score.
    """
    paired = configurations(select_score(results, options.score, analysis))
    is_mean = options.score == "score"
    paired = with_fixed_texts(paired, predictions, is_mean=is_mean)
    if is_mean:
        return paired
    return replace(paired, fixed=", ".join(filter(None, (score_title(options), paired.fixed))))


def score_title(options: Summary) -> str:
    """Return the name of the chosen score in reports, in which higher is better."""
    return find_score(options.score).title


def name_score(results: Configurations, options: Summary) -> str:
    """Name the scores of results, as in reports."""
    return ACCURACY if results.is_accuracy else score_title(options)


def sign_note(name: str) -> str:
    """Return a sentence about a score that reports negate, with a space before it; empty for other scores."""
    score = find_score(name)
    if score.is_higher_better:
        return ""
    return f" The {score.title} is the negative of {score.name}, so that higher is better."


def shared_note(results: Configurations) -> str:
    """Return a sentence on the unit of averages if tasks share draws, with a space before it; otherwise nothing."""
    if not any(configuration.shares_draws for configuration in results.configurations):
        return ""
    return f" Each subsample, averaged over tasks, counts once. {SHARED_DRAWS}"


OF_OTHER_TEXTS = (
    " All trials test the same texts. Ties and the interval of the boost account for other texts of this kind; the "
    "verdict and the interval of the bias are for these texts."
)
OF_THESE_TEXTS = (
    " All trials test the same texts. Ties and intervals are for these texts only, because this score is not known to "
    "be a mean over texts."
)


def same_texts_note(results: Configurations) -> str:
    """Return a sentence on the texts that intervals are for if all trials test the same, with a space before it."""
    if any(configuration.fixed_texts for configuration in results.configurations):
        return OF_OTHER_TEXTS
    if any(configuration.has_fixed_texts for configuration in results.configurations):
        return OF_THESE_TEXTS
    return ""


EFFECTS = ("bias", "boost")


def effect_columns(effects: Sequence[str], unit: Unit) -> list[Column]:
    """Return a column for each effect."""
    return [Column(effect, unit) for effect in effects]


def effect_cells(configuration: Configuration, effects: Sequence[str], level: float, verdict: Verdict) -> list[Cell]:
    """Return the cells for `effect_columns`: each effect on average over these tasks, with its interval."""
    return [average_effect(configuration, effect, level, verdict).as_cell for effect in effects]


def average_effect(configuration: Configuration, effect: str, level: float, verdict: Verdict) -> Estimate:
    """Return an effect on average over these tasks, with its interval.

    The interval of the bias is that of the verdict, so that all tables and figures show the same one. Others are not
    adjusted for the number of configurations, or for further looks. An effect of a control that is zero in all trials
    is exact.
    """
    if effect == verdict.effect:
        return verdict.estimate
    if configuration.control and not any(map(any, configuration.scores[effect].values())):
        return Estimate(0.0)
    return estimate_effect(configuration, effect, level)


def verdict_note(verdicts: Sequence[Verdict], level: float, those: str = "the bias", others: str = "others") -> str:
    """Return a note on tables and figures that show intervals of verdicts beside others, with a space before it."""
    adjusted = "earlier and later analyses"
    if any(verdict.family.unadjusted is not None for verdict in verdicts):
        adjusted = f"the number of methods and sizes, and for {adjusted}"
    note = f" The intervals of {those} are those of the verdicts, adjusted for {adjusted}; those of {others} are not."
    return note + level_note(verdicts, level)


def level_note(verdicts: Sequence[Verdict], level: float) -> str:
    """Return a note on the intervals of verdicts that have a lower level than the others; empty without any."""
    lower = sorted({verdict.family.level for verdict in verdicts if verdict.family.level < level})
    return "".join(
        f" The interval of an equivalent bias has a level of {level:.0%} (two one-sided tests)." for level in lower
    )


ACCURACY = "accuracy"
OTHER_SCORES = sorted(
    (score for score in SCORES if score.name not in ("num_correct", "score")),
    key=lambda score: score.unit != "fraction",
)
"""All scores except accuracy, those in points first."""
LOG_LIKELIHOOD = next(score.title for score in OTHER_SCORES if score.name == "log_loss")


def _describe_scores(scores: Mapping[str, Configurations]) -> str:
    """Return a note on the units and the meaning of scores."""
    in_points = [name for name, configurations in scores.items() if configurations.units == POINTS]
    verb = "is" if len(in_points) == 1 else "are"
    note = f"Higher is better in all scores. {capitalize(join_words(in_points))} {verb} in points."
    if LOG_LIKELIHOOD in scores:
        note += f" The {LOG_LIKELIHOOD} is the mean of ln p of the true class, the negative of the log loss."
    return f"{note} Means over these tasks, intervals for new subsamples."


def probabilistic_scores(results: pd.DataFrame, paired: Configurations) -> dict[str, Configurations]:
    """Return accuracy and every other score that is available for all methods, by name.

    Parameters
    ----------
    results
        The results table.
    paired
        The configurations of `results` without controls; those of each score have the same order.

    Returns
    -------
    dict
        Empty if scores are not accuracies, or if no other score is available.
    """
    rows = results[results["control"] == ""]
    if not paired.is_accuracy or rows.empty:
        return {}
    scores = {}
    for score in OTHER_SCORES:
        values = rows[score.name] if score.is_higher_better else -rows[score.name]
        if values.notna().all() and not values.equals(rows["score"]):  # as mean grades are
            rescored = configurations(rows.assign(score=values, num_correct=None))
            by_key = {configuration.key: configuration for configuration in rescored.configurations}
            ordered = tuple(by_key[configuration.key] for configuration in paired.configurations)
            scores[score.title] = replace(rescored, configurations=ordered)
    return {ACCURACY: paired, **scores} if scores else {}


def score_tables(scores: Mapping[str, Configurations], verdicts: Sequence[Verdict], options: Summary) -> list[Table]:
    """Tabulate boost and bias in every score that `probabilistic_scores` returned; nothing without other scores."""
    if not scores:
        return []
    paired = scores[ACCURACY]
    rows: list[tuple[Cell, ...]] = []
    level = options.level
    for position, (configuration, verdict) in enumerate(zip(paired.configurations, verdicts, strict=True)):
        for effect in (effect for effect in EFFECTS if effect in paired.effects):
            cells: list[Cell] = []
            for name, score in scores.items():
                same = score.configurations[position]
                if name == ACCURACY and options.score == "score":
                    cells.append(average_effect(same, effect, level, verdict).as_cell)
                else:
                    cells.append(estimate_effect(same, effect, level).as_cell)
            rows.append((*configuration.cells, effect, *cells))
    columns = [*paired.columns, Column("effect")]
    for name, score in scores.items():
        columns += effect_columns([name], score.units.difference)
    note = _describe_scores(scores)
    if options.score == "score":
        note += verdict_note(verdicts, level, "the bias in accuracy", "other numbers")
    return [Table(f"Bias and boost by score, {level:.0%} intervals", tuple(columns), tuple(rows), paired.note(note))]
