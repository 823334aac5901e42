"""What rules of adaptation are worth: the scores under each rule, minus those with independent unlabeled texts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from peekbench import Column, Table, Verdict
from peekbench.figures import Forest, Interval
from peekbench.formatting import ScoreWords, difference_unit, pluralize, score_unit
from peekbench.records import Cell, Decision, Looks
from peekbench.results import Configuration, Configurations
from peekbench_summary import Summary
from peekbench_summary.columns import interval_columns
from peekbench_summary.estimates import Estimate, mean_over_tasks
from peekbench_summary.evidence import Bias, Evidence, Levels, conclude
from peekbench_summary.figures import DOSE_EFFECT, effect_axis
from peekbench_summary.looks import levels_of
from peekbench_summary.region import make_region

RULES = {
    "test": "Methods may adapt to the unlabeled texts of the whole test set",
    "cross": (
        "The test texts are divided into {blocks} parts, and a model that predicts a part has not adapted to "
        "any of its texts"
    ),
    "leave-one-out": "A model that predicts a test text has not adapted to this text",
    "stream": (
        "The test texts arrive in {blocks} parts in a fixed order, and a model that predicts a part has adapted to no "
        "later part"
    ),
    "blocks": (
        "The test texts are divided into {blocks} parts, and a model that predicts a part has adapted to no other part"
    ),
    "single": "A model that predicts a test text has adapted to no other test text",
}
"""Rules of a benchmark that the arms implement, by kind of arm."""
ORDER = (*RULES, "swap-in")
WORTH_NOTE = (
    "minus extra: the score under the rule minus that with independent unlabeled texts, on average over these tasks, "
    "which is what the rule adds to a score. "
)
SWAP_NOTE = (
    "swap-in replaces a part of the extra texts by the texts that are scored, so its difference estimates the bias "
    "itself, from fits that are more alike. "
)
FAMILY_NOTE = (
    "The verdicts and {level:.0%} intervals of rules are adjusted for {size}; the row of the arm test is the "
    "verdict on the bias."
)


@dataclass(frozen=True, slots=True)
class _Worth:
    """The difference of one rule from independent texts, for one configuration."""

    configuration: Configuration
    rule: str
    estimate: Estimate
    decision: Decision


def rule_arms(results: Configurations) -> list[str]:
    """Return the arms of results that are rules, without base, extra, test and doses."""
    differences = {arm: f"{arm} - extra" for arm in results.arms}
    arms = [arm for arm, name in differences.items() if name in results.effects and not DOSE_EFFECT.fullmatch(name)]
    return sorted(arms, key=lambda arm: ORDER.index(_split(arm)[0]))


def _split(arm: str) -> tuple[str, str]:
    """Return the kind of an arm and its number of blocks, which is empty for blocks of one text."""
    kind, _, blocks = arm.rpartition("-")
    return (kind, blocks) if blocks.isdigit() else (arm, "")


def rule_tables(
    results: Configurations, verdicts: Sequence[Verdict], options: Summary, looks: Looks, words: ScoreWords
) -> tuple[list[Table], list[Forest]]:
    """Judge the rules of all configurations as one family; return nothing without arms that are rules.

    Parameters
    ----------
    results
        Paired scores by configuration, without controls.
    verdicts
        Verdicts on their biases, which stand for the arm test.
    options
        Level and region.
    looks
        Looks at the run that the results are from.
    words
        Words for the scores.

    Returns
    -------
    tuple of list
        The table of what each rule is worth, a table of sentences for the rules of a benchmark, and a forest plot.
    """
    arms = rule_arms(results)
    if not arms or not results.configurations:
        return [], []
    worths = _judge(results, arms, options, looks)
    rows: list[tuple[Cell, ...]] = []
    for configuration, verdict in zip(results.configurations, verdicts, strict=True):
        of_test = (verdict.estimate, verdict.low, verdict.high, verdict.decision)
        rows.append((*configuration.cells, "test", _mean(configuration, "test"), *of_test))
        rows += [
            (*configuration.cells, worth.rule, _mean(configuration, worth.rule), worth.estimate.mean,
             *worth.estimate.limits, worth.decision)
            for worth in worths if worth.configuration is configuration
        ]  # fmt: skip
    unit = difference_unit(results.is_accuracy)
    columns = (
        *results.columns,
        Column("rule"),
        Column("score", score_unit(results.is_accuracy)),
        *interval_columns("minus extra", unit),
        Column("verdict"),
    )
    note = WORTH_NOTE + SWAP_NOTE * any(arm.startswith("swap-in") for arm in arms)
    note += FAMILY_NOTE.format(level=options.level, size=pluralize(len(worths), "difference"))
    overview = (*(column.name for column in results.columns), "rule", "minus extra", "verdict", "score")
    title = results.title("What each rule is worth")
    sentences = tuple(_sentences(results, verdicts, worths, words))
    tables = [Table(title, columns, tuple(rows), note, overview=overview)]
    if sentences:
        about = "Each can be pasted into the rules of a benchmark, as far as the methods and tasks resemble its own."
        tables.append(Table("Rules for a benchmark", (Column("rule"), Column("sentence")), sentences, about))
    return tables, _draw(results, worths, options, verdicts)


def _judge(results: Configurations, arms: Sequence[str], options: Summary, looks: Looks) -> list[_Worth]:
    pairs = [(configuration, arm) for configuration in results.configurations for arm in arms]
    biases = [
        Bias(
            list(configuration.scores[f"{arm} - extra"].values()),
            make_region(configuration.scores, options, is_accuracy=results.is_accuracy),
            configuration.step,
            levels_of(configuration, looks),
        )
        for configuration, arm in pairs
    ]
    family = Evidence.of_family(biases, 1 - options.level)
    levels = Levels.of_family(family, 1 - options.level)
    conclusions = [conclude(evidence, levels) for evidence in family]
    return [
        _Worth(configuration, arm, conclusion.estimate, conclusion.decision)
        for (configuration, arm), conclusion in zip(pairs, conclusions, strict=True)
    ]


def _mean(configuration: Configuration, arm: str) -> float:
    return mean_over_tasks(list(configuration.scores[arm].values()))


def _sentences(
    results: Configurations, verdicts: Sequence[Verdict], worths: Sequence[_Worth], words: ScoreWords
) -> Iterator[tuple[str, str]]:
    """Yield each arm that is a rule of a benchmark, with a sentence that states it and what it was worth here."""
    tasks = max(len(configuration.scores["bias"]) for configuration in results.configurations)
    place = f"On {pluralize(tasks, 'task')}" + (f" ({results.fixed})" if results.fixed else "")
    of_test = [(verdict.estimate, verdict.decision) for verdict in verdicts]
    by_rule: dict[str, list[tuple[float | None, str]]] = {"test": [(mean, str(decision)) for mean, decision in of_test]}
    for worth in worths:
        by_rule.setdefault(worth.rule, []).append((worth.estimate.mean, worth.decision))
    for rule, found in by_rule.items():
        kind, blocks = _split(rule)
        if kind not in RULES:
            continue
        means = [mean for mean, _ in found if mean is not None]
        low, high = words.format_signed(min(means)), words.format_signed(max(means))
        amount = f"{low}{words.unit}" if len(means) == 1 else f"{low} to {high}{words.unit}"
        counts = Counter(decision for _, decision in found)
        listed = ", ".join(f"{number} {decision}" for decision, number in counts.items())
        among = found[0][1] if len(found) == 1 else f"{pluralize(len(found), 'method')}: {listed}"
        yield (
            rule,
            f"{RULES[kind].format(blocks=blocks)}. {place}, scores under this rule differed from "
            f"scores with independent texts by {amount} ({among}).",
        )


def _draw(
    results: Configurations, worths: Sequence[_Worth], options: Summary, verdicts: Sequence[Verdict]
) -> list[Forest]:
    """Draw the differences of all rules, and the bias, by configuration."""
    groups = []
    for configuration, verdict in zip(results.configurations, verdicts, strict=True):
        intervals = [
            Interval(worth.rule, worth.estimate.mean, worth.estimate.low, worth.estimate.high)
            for worth in worths
            if worth.configuration is configuration and worth.estimate.has_interval
        ]
        if verdict.estimate is not None and verdict.low is not None and verdict.high is not None:
            intervals.insert(0, Interval("test", verdict.estimate, verdict.low, verdict.high))
        if intervals:
            groups.append((configuration.label, tuple(intervals)))
    if not groups:
        return []
    title = results.title(f"What each rule is worth: score minus the score of extra, {options.level:.0%} intervals")
    region = verdicts[0].region or 0.0
    axis = effect_axis(results, "difference from extra", region)
    note = "Intervals are for new subsamples of the same data sets, adjusted as the verdicts are."
    return [Forest(title, tuple(groups), note, axis.unit, axis.label, region)]
