"""What rules of adaptation are worth: the scores under each rule, minus those with independent unlabeled texts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby

from peekbench import Column, Table, Verdict
from peekbench.records import Cell, Forest, Interval, RuleWorth
from peekbench.records.scores import find_score
from peekbench.results import IN_RULES, RULE_KINDS, Configuration, Configurations, find_families
from peekbench_summary import Summary
from peekbench_summary.biased_rule import Bias
from peekbench_summary.estimates import mean_over_tasks
from peekbench_summary.families import judge_family
from peekbench_summary.figures import common_region, effect_axis
from peekbench_summary.scores import level_note, name_score

ORDER = tuple(RULE_KINDS)
"""Kinds of arms in the order of reports; those with blocks of one text are kinds of their own."""
MEMBERS = {kind for kind, sees_as_many_texts in RULE_KINDS.items() if sees_as_many_texts}
"""Kinds of arms whose difference from extra is a bias."""
WORTH_NOTE = (
    "minus extra: the score under the rule minus that with independent unlabeled texts, on average over these texts. "
    "For most rules, it includes the effect of adapting to fewer texts, so scores are 'higher' or 'lower', not biased. "
)
SWAP_NOTE = (
    "swap-in replaces a block of the extra texts by the texts that are scored, so its difference also estimates the "
    "bias. "
)
BATCHES = ("batches", "alone")
"""Kinds of arms that predict fewer texts together by the fits of extra."""
BATCHES_NOTE = (
    "{listed} predicts fewer texts together than extra, by the same fits. If that changes the scores of a method, "
    "those of its other arms are for texts that arrive together, and test minus extra is the effect of adapting to all "
    "of them before predicting them together, not that of a text's own membership. "
)
FAMILY_NOTE = (
    "The verdicts and {level:.0%} intervals of rules are adjusted for {size} differences; the row of the arm test is "
    "the verdict on the bias, which has a family of its own."
)
NO_MEAN = (
    "No rule is recommended: this score is not known to be a mean over texts, so cross-fitting need not remove its "
    "bias. Judge rules by accuracy, or with the option score: log_loss, brier, f1_samples of multi-label tasks, or "
    "neg_mean_squared_error of regressions"
)


@dataclass(frozen=True, slots=True)
class _Worth:
    """The difference of one rule from independent texts, for one configuration."""

    configuration: Configuration
    rule: str
    verdict: Verdict

    @property
    def decision(self) -> str:
        """The decision in words: 'higher' or 'lower' if the rule's fits adapt to fewer texts than those of extra."""
        decision = str(self.verdict.decision)
        return decision if _split(self.rule)[0] in MEMBERS else IN_RULES.get(decision, decision)


def rule_arms(results: Configurations) -> list[str]:
    """Return the arms of results that are rules, without base, extra, test and doses."""
    differences = {arm: f"{arm} - extra" for arm in results.arms}
    arms = [arm for arm, name in differences.items() if name in results.effects and _split(arm)[0] in ORDER]
    return sorted(arms, key=lambda arm: (ORDER.index(_split(arm)[0]), int(_split(arm)[1] or 0)))


def is_mean_over_texts(results: Configurations, options: Summary) -> bool:
    """Return whether the theorem of membership holds for the score of an analysis.

    It nearly holds for bits per byte: it holds for the sum over texts, and only the number of bytes varies.
    """
    if options.score == "score":
        return results.is_accuracy
    return options.score == "bits_per_byte" or find_score(options.score).is_mean


def other_effects(results: Configurations) -> list[str]:
    """Return boost, bias and the differences of doses, without those of rules, which have a table of their own.

    With folds, all - extra is left out: a deterministic fit to all texts is the same in all divisions, so an interval
    from divisions would not contain its luck.
    """
    left_out = {f"{arm} - extra" for arm in (*rule_arms(results), "all")}
    return [effect for effect in results.effects if effect not in left_out]


def _split(arm: str) -> tuple[str, str]:
    """Return the kind of an arm and its number of blocks, which is empty for blocks of one text."""
    kind, _, blocks = arm.rpartition("-")
    return (kind, blocks) if blocks.isdigit() else (arm, "")


def rule_tables(
    results: Configurations,
    verdicts: Sequence[Verdict],
    measured: Sequence[Mapping[str, Bias]],
    options: Summary,
) -> tuple[list[Table], list[Forest]]:
    """Judge the rules of all configurations; return nothing without arms that are rules.

    Parameters
    ----------
    results
        Paired scores by configuration, without controls.
    verdicts
        Verdicts on their biases, which stand for the arm test.
    measured
        What is known of the difference of each rule from extra, by configuration.
    options
        Level, and the configurations that form a family.

    Returns
    -------
    tuple of list
        The table of what each rule is worth, a table of statements on the rules of a benchmark, those about the own
        text only if the score is a mean over texts, and a forest plot.
    """
    arms = rule_arms(results)
    if not arms or not results.configurations:
        return [], []
    worths = [
        _Worth(configuration, "test", verdict)
        for configuration, verdict in zip(results.configurations, verdicts, strict=True)
    ]
    worths += _judge(results, arms, measured, options)
    order = [id(configuration) for configuration in results.configurations]
    worths.sort(key=lambda worth: order.index(id(worth.configuration)))
    rows: list[tuple[Cell, ...]] = [
        (
            *worth.configuration.cells,
            worth.rule,
            mean_over_tasks(list(worth.configuration.scores[worth.rule].values())),
            worth.verdict.estimate.as_cell,
            worth.decision,
        )
        for worth in worths
    ]
    columns = (
        *results.columns,
        Column("rule"),
        Column("score", results.units.score),
        Column("minus extra", results.units.difference),
        Column("verdict"),
    )
    note = WORTH_NOTE
    if any(arm.startswith("swap-in") for arm in arms):
        note += SWAP_NOTE
    if batches := [arm for arm in arms if _split(arm)[0] in BATCHES]:
        note += BATCHES_NOTE.format(listed=" or ".join(batches))
    size = max(worth.verdict.family.size for worth in worths if worth.rule != "test")
    note += FAMILY_NOTE.format(level=options.level, size=size) * (size > 1)
    overview = (*(column.name for column in results.columns), "rule", "minus extra", "verdict", "score")
    note += level_note([worth.verdict for worth in worths], options.level)
    title = f"What each rule is worth in {name_score(results, options)}"
    tables = [Table(title, columns, tuple(rows), note, overview=overview)]
    is_mean = is_mean_over_texts(results, options)
    if rules := tuple(rule for rule in _combine(results, worths) if is_mean or rule.kind in BATCHES):
        about = (
            "Those that are settled can be pasted into the rules of a benchmark, as far as the methods and texts "
            "resemble its own."
        )
        tables.append(Table("Rules for a benchmark", (), (), about, statements=rules))
    region = common_region([verdict.region for verdict in verdicts])
    return tables, _draw(results, worths, options.level, region)


def _judge(
    results: Configurations, arms: Sequence[str], measured: Sequence[Mapping[str, Bias]], options: Summary
) -> Iterator[_Worth]:
    for members in find_families(results.configurations, options.family):
        pairs = [(member, arm) for member in members for arm in arms]
        family = [measured[member][f"{arm} - extra"] for member, arm in pairs]
        judged = judge_family(family, options.level, unit=results.units.difference)
        for (member, arm), (verdict, _) in zip(pairs, judged, strict=True):
            configuration = results.configurations[member]
            parts = tuple(zip((column.name for column in results.columns), configuration.cells, strict=True))
            named = replace(verdict, method=configuration.label, effect=f"{arm} - extra", parts=parts)
            yield _Worth(configuration, arm, named)


def _combine(results: Configurations, worths: Sequence[_Worth]) -> Iterator[RuleWorth]:
    """Yield what each arm that is a rule of a benchmark was worth here, by sizes."""
    is_size = [column.unit == "count" for column in results.columns]

    def sizes(worth: _Worth) -> str:
        pairs = zip(results.columns, worth.configuration.cells, is_size, strict=True)
        varying = ", ".join(f"{column.name} {cell}" for column, cell, wanted in pairs if wanted and cell is not None)
        return ", ".join(filter(None, (results.fixed, varying)))

    def place(worth: _Worth) -> tuple[int, str, str]:
        return ORDER.index(_split(worth.rule)[0]), worth.rule, sizes(worth)

    for (_, rule, size), found in groupby(sorted(worths, key=place), key=place):
        kind, num_blocks = _split(rule)
        group = [worth for worth in found if worth.verdict.estimate.has_interval]
        if (kind in MEMBERS and kind != "test") or not group:
            continue
        decisions = Counter(worth.decision for worth in group)
        yield RuleWorth(rule, kind, num_blocks, size, decisions, tuple(worth.verdict for worth in group))


def _draw(results: Configurations, worths: Sequence[_Worth], level: float, region: float) -> list[Forest]:
    """Draw the differences of all rules, and the bias, by configuration."""
    groups = []
    for configuration in results.configurations:
        intervals = tuple(
            Interval(worth.rule, estimate.mean, estimate.low, estimate.high)
            for worth in worths
            if worth.configuration is configuration and (estimate := worth.verdict.estimate).has_interval
        )
        if intervals:
            groups.append((configuration.label, intervals))
    if not groups:
        return []
    title = f"What each rule is worth: score minus the score of extra, {level:.0%} intervals"
    axis = effect_axis(results, "difference from extra", region)
    note = "Intervals are for new subsamples of the same data sets, adjusted as the verdicts are."
    note += level_note([worth.verdict for worth in worths], level)
    return [Forest(title, tuple(groups), results.note(note), axis.unit, axis.label, region)]
