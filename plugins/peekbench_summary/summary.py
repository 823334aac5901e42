"""The analyses `summary` and `summary.estimates`: from the results table to means, figures and verdicts."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import pandas as pd

from peekbench import Analysis, Column, Estimate, Table, Verdict
from peekbench.formatting import format_cell
from peekbench.records import (
    Cell,
    Figure,
    Looks,
    Predictions,
    Quantity,
    ScoreEstimate,
    ScoreUnits,
    TrialEvidence,
)
from peekbench.results import Configuration, Configurations
from peekbench_stats import estimates_table
from peekbench_summary import Summary
from peekbench_summary.biased_rule import NO_LOOKS
from peekbench_summary.estimates import (
    MeanEstimate,
    estimate_effect,
    estimate_other_tasks,
    estimate_task,
    shared_averages,
)
from peekbench_summary.families import judge_all, other_tasks_p_values, smallest_p
from peekbench_summary.figures import common_region, doses, forests, progress, sizes, violins
from peekbench_summary.leaderboard import leaderboard
from peekbench_summary.scores import (
    average_effect,
    choose_configurations,
    effect_cells,
    effect_columns,
    level_note,
    name_score,
    probabilistic_scores,
    resolve_options,
    same_texts_note,
    score_tables,
    shared_note,
    sign_note,
    verdict_note,
)

THESE_TASKS_NOTE = (
    "boost = extra - base, bias = test - extra. The interval beside the mean is for new subsamples of the same data "
    "sets. se: standard error of the mean."
)
OTHER_TASKS_NOTE = (
    " Other tasks: the interval of the same mean if these tasks are a sample of tasks like them (a paired t test over "
    "tasks)."
)


def summarize(
    results: pd.DataFrame, *, options: Summary, looks: Looks = NO_LOOKS, predictions: Predictions | None = None
) -> Analysis:
    """Compute means, standard errors and intervals, and a verdict on the bias of each configuration.

    Parameters
    ----------
    results
        The results table, controls included.
    options
        Level and region.
    looks
        Looks at the run that the results are from.
    predictions
        Answers to single texts, which tell whether a method is at chance.

    Returns
    -------
    Analysis
        Tables, figures and verdicts.
    """
    options = resolve_options(results, options)
    everything = choose_configurations(results, options, "summary", predictions)
    methods, controls = everything.without_controls(), everything.controls()
    probabilistic = probabilistic_scores(results, methods)
    verdicts = judge_all(everything, options, probabilistic, looks, predictions)
    method_verdicts = [verdict for verdict in verdicts if not verdict.control]
    control_verdicts = [verdict for verdict in verdicts if verdict.control]
    level = options.level
    return Analysis(
        "summary",
        tables=(
            *_method_tables(methods, method_verdicts, options),
            _task_table(everything, verdicts, level, options.score),
            *score_tables(probabilistic, method_verdicts, options),
            *([controls_table(controls, control_verdicts, level)] if control_verdicts else []),
        ),
        figures=(
            *_method_figures(methods, method_verdicts, level),
            *_control_figures(controls, control_verdicts, level),
        ),
        verdicts=verdicts,
    )


def _method_figures(methods: Configurations, verdicts: Sequence[Verdict], level: float) -> list[Figure]:
    """Return the figures of methods other than controls."""
    if not methods.configurations:
        return []
    region = common_region([verdict.region for verdict in verdicts])
    figures: list[Figure] = [
        *forests(methods, verdicts, level, region),
        *sizes(methods, verdicts, level, region),
        *doses(methods, verdicts, level, region),
    ]
    return [*figures, *violins(methods), *progress(methods, verdicts, level, region)]


def _control_figures(controls: Configurations, verdicts: Sequence[Verdict], level: float) -> list[Figure]:
    """Return the figures of controls: biases by task and dose response."""
    if not controls.configurations:
        return []
    region = common_region([verdict.region for verdict in verdicts])
    return [*forests(controls, verdicts, level, region), *doses(controls, verdicts, level, region)]


def _method_tables(methods: Configurations, verdicts: Sequence[Verdict], options: Summary) -> list[Table]:
    """Return the tables of methods other than controls."""
    if not methods.configurations:
        return []
    level = options.level
    tables = [leaderboard(methods, verdicts, options), _average_table(methods, verdicts, level)]
    if _has_several_tasks(methods):
        tables.append(_other_tasks_table(methods, verdicts, level))
    return tables


def _has_several_tasks(results: Configurations) -> bool:
    return any(len(configuration.scores["bias"]) > 1 for configuration in results.configurations)


def _average_table(results: Configurations, verdicts: Sequence[Verdict], level: float) -> Table:
    """Tabulate average effects with intervals for new subsamples and, if there are several tasks, for other tasks."""
    several = _has_several_tasks(results)
    rows = []
    for configuration, verdict in zip(results.configurations, verdicts, strict=True):
        for effect in list_effects(results):
            tasks, shared = list(configuration.scores[effect].values()), shared_averages(configuration, effect)
            error = _standard_error(estimate_effect(configuration, effect, level))
            others = estimate_other_tasks(tasks, level, configuration.step, shared)
            interval_of_others = (Estimate(low=others.low, high=others.high),) if several else ()
            cells = (effect, *effect_cells(configuration, [effect], level, verdict), error, *interval_of_others)
            rows.append((*configuration.cells, *cells))
    unit = results.units.difference
    columns = (
        *results.columns,
        Column("effect"),
        Column("mean", unit),
        Column("se", results.units.spread),
        *((Column("other tasks", unit),) if several else ()),
    )
    title = f"Boost and bias over these tasks, {level:.0%} intervals"
    note = THESE_TASKS_NOTE
    if several:
        note += OTHER_TASKS_NOTE
    note += verdict_note(verdicts, level) + shared_note(results) + extension_note(verdicts)
    note += same_texts_note(results)
    return Table(title, columns, tuple(rows), results.note(note))


def list_effects(results: Configurations) -> list[str]:
    """Return the effects that are averaged over subsamples.

    With folds, all - extra is left out: a deterministic fit to all texts is the same in all divisions, so an interval
    from divisions would not contain its luck.
    """
    return [effect for effect in results.effects if effect != "all - extra"]


def _standard_error(estimate: MeanEstimate) -> Cell:
    return None if math.isnan(estimate.standard_error) else estimate.standard_error


OTHER_TASKS_TEST_NOTE = (
    "The verdict is about these tasks. The two tests, a paired t test and exact sign flips of the task means, treat "
    "these tasks as a sample and test whether tasks like these have a bias on average. If they find none, the bias is "
    "limited to some of these tasks, or there are too few tasks to draw conclusions about others. Region: biases up to "
    "this size are negligible. The t test of tasks that share draws accounts for their covariance; sign flips do not "
    "apply."
)


def _other_tasks_table(results: Configurations, verdicts: Sequence[Verdict], level: float) -> Table:
    """Tabulate each verdict beside the tests over tasks, so that a disagreement is visible."""
    rows = []
    too_few = set()
    for configuration, verdict in zip(results.configurations, verdicts, strict=True):
        tasks = list(configuration.scores["bias"].values())
        p_values = other_tasks_p_values(tasks, shared_averages(configuration, "bias"))
        if p_values[1] is not None and smallest_p(len(tasks)) > (1 - level) / verdict.family.size:
            too_few.add(len(tasks))
        other_tasks = verdict.evidence.other_tasks if isinstance(verdict.evidence, TrialEvidence) else ""
        cells = (verdict.decision, verdict.estimate.mean, verdict.region, *p_values, other_tasks)
        rows.append((*configuration.cells, *cells))
    columns = (
        Column("verdict on these tasks"),
        Column("bias", results.units.difference),
        Column("region", results.units.spread),
        Column("p, paired t test", "p_value"),
        Column("p, sign flips", "p_value"),
        Column("bias in other tasks?"),
    )
    return Table(
        "Would other tasks like these also show a bias?",
        (*results.columns, *columns),
        tuple(rows),
        results.note(OTHER_TASKS_TEST_NOTE + "".join(map(_few_tasks_note, sorted(too_few)))),
    )


def _few_tasks_note(num_tasks: int) -> str:
    tasks = f"{num_tasks} tasks" if num_tasks > 1 else "one task"
    smallest = format_cell(smallest_p(num_tasks), "p_value")
    return f" Sign flips of {tasks} cannot give a p below {smallest}; if the level is lower, the t test alone answers."


def _task_table(results: Configurations, verdicts: Sequence[Verdict], level: float, score: str) -> Table:
    """Tabulate scores and effects of each task; those of a single task are the averages."""
    rows = []
    effects = list_effects(results)
    for configuration, verdict in zip(results.configurations, verdicts, strict=True):
        for task, biases in configuration.scores["bias"].items():
            scores = [math.fsum(configuration.scores[arm][task]) / len(biases) for arm in results.arms]
            estimates = [estimate_task(configuration, effect, task, level) for effect in effects]
            intervals: list[Cell] = []
            for effect, estimate in zip(effects, estimates, strict=True):
                is_exact = bool(configuration.control) and not any(configuration.scores[effect][task])
                intervals.append(Estimate(estimate.mean) if is_exact else estimate.as_cell)
            if len(configuration.scores["bias"]) == 1:
                intervals = effect_cells(configuration, effects, level, verdict)
            error = _standard_error(estimates[effects.index("bias")])
            rows.append((task, *configuration.cells, len(biases), *scores, *intervals, error))
    columns = (
        Column("task"),
        *results.columns,
        Column("subsamples", "count"),
        *(Column(arm, results.units.score) for arm in results.arms),
        *effect_columns(effects, results.units.difference),
        Column("se of bias", results.units.spread),
    )
    title = f"Scores, boost and bias by task, {level:.0%} intervals"
    note = "Each task on its own; intervals are for new subsamples of the same data set." + sign_note(score)
    note += same_texts_note(results)
    if not _has_several_tasks(results):
        note += verdict_note(verdicts, level)
    return Table(title, columns, tuple(rows), results.note(note))


CONTROLS_NOTE = (
    "Methods whose bias is known in advance: a negative control has none, a positive control has a planted one. They "
    "test the run and appear in no ranking."
)
EXTENDED_NOTE = (
    " The interval of a verdict that ends at 0 is extended to it, because sign flips of the trials do not exclude 0."
)


def extension_note(verdicts: Sequence[Verdict]) -> str:
    """Return a note on intervals that were extended to zero, with a space before it; empty if there are none."""
    if any(0 in verdict.estimate.limits and verdict.estimate.mean for verdict in verdicts):
        return EXTENDED_NOTE
    return ""


def controls_table(controls: Configurations, verdicts: Sequence[Verdict], level: float) -> Table:
    """Tabulate the kind of each control, its outcome and its effects.

    Parameters
    ----------
    controls
        Paired scores of the controls.
    verdicts
        One verdict for each control, in their order.
    level
        Nominal coverage of the intervals.
    """
    effects = list_effects(controls)
    rows = tuple(
        (
            *configuration.cells,
            configuration.control,
            verdict.decision,
            *effect_cells(configuration, effects, level, verdict),
        )
        for configuration, verdict in zip(controls.configurations, verdicts, strict=True)
    )
    columns = (
        *controls.columns,
        Column("control"),
        Column("outcome"),
        *effect_columns(effects, controls.units.difference),
    )
    return Table(
        f"Controls, {level:.0%} intervals",
        columns,
        rows,
        controls.note(CONTROLS_NOTE + level_note(verdicts, level) + extension_note(verdicts)),
    )


QUANTITIES: tuple[Quantity, ...] = ("extra", "bias", "boost")


def tabulate(
    results: pd.DataFrame, *, options: Summary, looks: Looks = NO_LOOKS, predictions: Predictions | None = None
) -> Analysis:
    """Tabulate the score of extra, the bias and the boost of each configuration.

    Parameters
    ----------
    results
        The results table, controls included.
    options
        Options of the verdicts; the intervals of average biases are theirs.
    looks
        Looks at the run that the results are from.
    predictions
        Answers to single texts.

    Returns
    -------
    Analysis
        The estimates, also as a table.
    """
    options = resolve_options(results, options)
    everything = choose_configurations(results, options, "summary.estimates", predictions)
    probabilistic = probabilistic_scores(results, everything.without_controls())
    verdicts = judge_all(everything, options, probabilistic, looks, predictions)
    metric = name_score(everything, options)
    quantities = [name for name in QUANTITIES if name in (*everything.arms, *everything.effects)]
    rows = tuple(
        row
        for configuration, verdict in zip(everything.configurations, verdicts, strict=True)
        for row in _Rows(configuration, verdict, metric, everything.units, options.level).of(quantities)
    )
    return Analysis("estimates", (estimates_table(rows),), estimates=rows)


@dataclass(frozen=True, slots=True)
class _Rows:
    configuration: Configuration
    verdict: Verdict
    metric: str
    units: ScoreUnits
    level: float

    def of(self, quantities: Sequence[Quantity]) -> Iterator[ScoreEstimate]:
        """Yield the average of each quantity, then its values by task."""
        for quantity in quantities:
            by_task = self.configuration.scores[quantity]
            num_trials = sum(map(len, by_task.values()))
            average = average_effect(self.configuration, quantity, self.level, self.verdict)
            yield self._row(quantity, "", average, len(by_task), num_trials)
            for task, values in by_task.items():
                estimate = Estimate(0.0)  # of a control without an effect, which is exact
                if any(values) or not self.configuration.control:
                    estimate = estimate_task(self.configuration, quantity, task, self.level)
                yield self._row(quantity, task, estimate, 1, len(values))

    def _row(self, quantity: Quantity, task: str, estimate: Estimate, num_tasks: int, num_trials: int) -> ScoreEstimate:
        method, model, num_train, num_test = self.configuration.key
        is_judged = quantity == "bias" and num_tasks == len(self.configuration.scores["bias"])
        limited = self.verdict.estimate if is_judged else estimate
        level = self.verdict.family.level if is_judged else self.level
        return ScoreEstimate(
            method=str(method),
            model=str(model or ""),
            num_train=num_train if isinstance(num_train, int) else None,
            num_test=num_test if isinstance(num_test, int) else None,
            control=self.configuration.control,
            task=task,
            quantity=quantity,
            metric=self.metric,
            units=self.units,
            estimate=Estimate(estimate.mean, limited.low, limited.high, estimate.standard_error, level),
            num_tasks=num_tasks,
            num_trials=num_trials,
            decision=self.verdict.decision if is_judged and not task else "",
        )
