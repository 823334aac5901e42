"""`summary.estimates`: uncontaminated scores, biases and boosts with their intervals, by task and on average."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import pandas as pd

from peekbench import Analysis, Estimate, Verdict
from peekbench.records import Looks, Predictions, Quantity, ScoreEstimate, estimates_table
from peekbench.results import Configuration
from peekbench_summary import Summary
from peekbench_summary.choice import choose_configurations, resolve_options, score_title
from peekbench_summary.estimates import estimate_effect
from peekbench_summary.looks import NO_LOOKS
from peekbench_summary.probabilistic_scores import probabilistic_scores
from peekbench_summary.verdict import judge_all

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
        One table in the form of `peekbench.records.estimates_table`.
    """
    options = resolve_options(results, options)
    everything = choose_configurations(results, options, "summary.estimates")
    probabilistic = probabilistic_scores(results, everything.without_controls())
    verdicts = judge_all(everything, options, probabilistic, looks, predictions)
    metric = "accuracy" if everything.is_accuracy else score_title(options)
    quantities = [name for name in QUANTITIES if name in (*everything.arms, *everything.effects)]
    rows = [
        row
        for configuration, verdict in zip(everything.configurations, verdicts, strict=True)
        for row in _Rows(configuration, verdict, metric, options.level).of(quantities)
    ]
    return Analysis("estimates", (estimates_table(rows),))


@dataclass(frozen=True, slots=True)
class _Rows:
    configuration: Configuration
    verdict: Verdict
    metric: str
    level: float

    def of(self, quantities: Sequence[Quantity]) -> Iterator[ScoreEstimate]:
        """Yield the average of each quantity, then its values by task."""
        for quantity in quantities:
            by_task = self.configuration.scores[quantity]
            num_trials = sum(map(len, by_task.values()))
            average = estimate_effect(self.configuration, quantity, self.level)
            yield self._row(quantity, "", average, len(by_task), num_trials)
            for task, values in by_task.items():
                single = replace(self.configuration, scores={quantity: {task: values}})
                estimate = estimate_effect(single, quantity, self.level)
                yield self._row(quantity, task, estimate, 1, len(values))

    def _row(self, quantity: Quantity, task: str, estimate: Estimate, num_tasks: int, num_trials: int) -> ScoreEstimate:
        method, model, num_train, num_test = self.configuration.key
        is_judged = quantity == "bias" and not task
        limited = self.verdict.estimate if is_judged else estimate
        return ScoreEstimate(
            method=str(method),
            model=str(model or ""),
            num_train=num_train if isinstance(num_train, int) else None,
            num_test=num_test if isinstance(num_test, int) else None,
            control=self.configuration.control,
            task=task,
            quantity=quantity,
            metric=self.metric,
            estimate=Estimate(estimate.mean, limited.low, limited.high, estimate.standard_error, self.level),
            num_tasks=num_tasks,
            num_trials=num_trials,
            decision=self.verdict.decision if is_judged else "",
        )
