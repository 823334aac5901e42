"""What repeated looks at a run mean for its verdicts: levels, a sentence, an interval that stays valid, and a table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from peekbench import Column, Table, Verdict
from peekbench.formatting import ScoreWords, difference_unit
from peekbench.records import Cell, Looks
from peekbench.results import Configuration, Configurations
from peekbench_stats import level_at, sign_symmetry_e_values, valid_level
from peekbench_summary.columns import interval_columns
from peekbench_summary.estimates import estimate_these_tasks

METHODS = {
    "group_sequential": "the group-sequential design (Lan-DeMets, resembling O'Brien-Fleming)",
    "confidence_sequence": "the confidence sequence (asymptotic, after Waudby-Smith et al. 2024)",
}
NO_LOOKS = Looks()


def mention_looks(
    verdicts: Sequence[Verdict], results: Configurations, looks: Looks, level: float
) -> tuple[Verdict, ...]:
    """Return the verdicts with a sentence on earlier looks, and the intervals that hold at all of them.

    Parameters
    ----------
    verdicts
        One verdict for each configuration. Their levels account for planned looks.
    results
        Paired scores by configuration.
    looks
        Looks at the run.
    level
        Nominal coverage.
    """
    words = ScoreWords(results.is_accuracy)
    pairs = zip(verdicts, results.configurations, strict=True)
    return tuple(
        verdict if configuration.control else _mention(verdict, configuration, looks, level, words)
        for verdict, configuration in pairs
    )


def _mention(verdict: Verdict, configuration: Configuration, looks: Looks, level: float, words: ScoreWords) -> Verdict:
    if looks.method:
        share = looks.fractions[-1]
        planned = "of at most" if share <= 1 else "of the first maximum of"  # an open-ended design was extended
        sentence = (
            f"This is look {len(looks.fractions)}, at {share:.0%} {planned} {looks.maximum:,} subsamples; the interval "
            "accounts for all looks."
        )
        return _add(verdict, sentence)
    earlier = _earlier(configuration, looks)
    if not earlier:
        return verdict
    tasks = list(configuration.scores["bias"].values())
    num_trials = sum(map(len, tasks))
    valid = estimate_these_tasks(tasks, 1 - valid_level(num_trials, earlier[0])(1 - level), configuration.step)
    counts = " and ".join(filter(None, (", ".join(f"{count:,}" for count in earlier[:-1]), f"{earlier[-1]:,}")))
    sentence = (
        f"However, this run was extended to {num_trials:,} trials after reports on {counts}, for which the verdict and "
        "its interval do not account"
    )
    if not valid.has_interval:
        return _add(verdict, f"{sentence}.")
    limits = f"{words.format_signed(valid.low)} to {words.format_signed(valid.high)}"
    verdict = replace(verdict, valid_low=valid.low, valid_high=valid.high)
    return _add(verdict, f"{sentence}; the {level:.0%} interval that is valid at every look is {limits}.")


def _add(verdict: Verdict, sentence: str) -> Verdict:
    return replace(verdict, looks=sentence, sentence=f"{verdict.sentence} {sentence}")


def _earlier(configuration: Configuration, looks: Looks) -> tuple[int, ...]:
    """Return the trials of a configuration at earlier looks that no design planned."""
    method, _, num_train, num_test = configuration.key
    return looks.earlier_of(
        str(method),
        num_train if isinstance(num_train, int) else None,
        num_test if isinstance(num_test, int) else None,
    )


def looks_table(results: Configurations, verdicts: Sequence[Verdict], looks: Looks, level: float) -> list[Table]:
    """Tabulate, for runs with several looks, the intervals and e-values that stay valid; no table for other runs.

    Parameters
    ----------
    results
        Configurations without controls.
    verdicts
        One verdict for each of them.
    looks
        Looks at the run.
    level
        Nominal coverage.
    """
    rows: list[tuple[Cell, ...]] = []
    nominal = level_at(looks)(1 - level)
    for configuration, verdict in zip(results.configurations, verdicts, strict=True):
        if not verdict.looks:
            continue
        earlier = _earlier(configuration, looks)
        num_looks = len(looks.fractions) or len(earlier) + 1
        target = looks.maximum or max(1, earlier[0] // len(configuration.scores["bias"]))
        e_values = sign_symmetry_e_values(_by_subsample(configuration), target)
        anytime_p = min(1.0, 1 / float(e_values.max()))
        low, high = (verdict.low, verdict.high) if looks.method else (verdict.valid_low, verdict.valid_high)
        row = (num_looks, verdict.estimate, low, high, float(e_values[-1]), anytime_p)
        rows.append((*configuration.cells, *row))
    if not rows:
        return []
    columns = (
        *results.columns,
        Column("looks", "count"),
        *interval_columns("bias", difference_unit(results.is_accuracy)),
        Column("e-value", "number"),
        Column("p, any time", "p_value"),
    )
    how = (
        f"The intervals account for all looks so far by {METHODS[looks.method]}; this look has the two-sided level "
        f"{nominal:.2g}."
        if looks.method
        else f"The {level:.0%} intervals are confidence sequences, which are valid at every look at once, if one does "
        "not know how many looks there will be. They are asymptotic."
    )
    return [
        Table(
            results.title("Repeated looks"),
            columns,
            tuple(rows),
            f"{how} The e-value tests exactly, for any number of subsamples, whether extra and test are exchangeable: "
            "without a bias, it exceeds 20 at any look with a probability of at most 5%. p, any time: 1 / the largest "
            "e-value so far, valid whenever one stops.",
        )
    ]


def _by_subsample(configuration: Configuration) -> list[list[float]]:
    """Return the biases of all tasks, subsample by subsample."""
    blocks: dict[int, list[float]] = {}
    for task, biases in configuration.scores["bias"].items():
        for number, bias in zip(configuration.subsamples[task], biases, strict=True):
            blocks.setdefault(number, []).append(bias)
    return [blocks[number] for number in sorted(blocks)]
