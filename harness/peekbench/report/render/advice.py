"""What would settle inconclusive verdicts, in words: more subsamples, or more rows or tasks."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from peekbench.records.verdicts import Advice, Settling, TrialEvidence, Verdict


def settle(verdict: Verdict) -> Settling | None:
    """Return what would settle an inconclusive verdict; None if it is not known."""
    return verdict.evidence.settling if isinstance(verdict.evidence, TrialEvidence) else None


def merge_advice(needed: Iterable[Settling | None]) -> tuple[Advice, str] | None:
    """Return the subsamples that settle several verdicts, and those for any bias in words; None if none is known.

    Parameters
    ----------
    needed
        What would settle each verdict. Verdicts that no number of subsamples settles are left out.

    Returns
    -------
    tuple of (Advice, str)
        The words are empty if the first number suffices for any bias.

    Examples
    --------
    >>> merge_advice([Settling(Advice(40, 0.8), Advice(90, 0.81)), Settling(Advice(60, 0.82), Advice(60, 0.82)), None])
    (Advice(subsamples=60, probability=0.8), '90')
    """
    known = [(each.advice, each) for each in needed if each and each.advice]
    if not known:
        return None
    number = max(advice.subsamples for advice, _ in known)
    first = Advice(number, min(advice.probability for advice, _ in known))
    for _, each in known:
        if each.advice_for_any_bias is None:
            return first, "more rows or tasks" if each.is_limited_by_rows else f"over {each.maximum:,}"
    largest = max(each.advice_for_any_bias.subsamples for _, each in known if each.advice_for_any_bias)
    return first, f"{largest:,}" if largest > number else ""


def tell_chance(advice: Advice) -> str:
    """Return when subsamples settle a verdict: with a probability, or if further trials are like those so far."""
    if advice.probability == 1:
        return "if no further trial has a bias either"
    return f"with {advice.probability:.0%} probability"


def name_biases(any_bias: str, band: str) -> str:
    """Return a clause on the biases for which advice holds, with what any other one takes; empty if it holds for any.

    Parameters
    ----------
    any_bias
        What a bias of any size takes, as `merge_advice` returns it.
    band
        Half-width of the region of practical equivalence in words.
    """
    return f" if the bias is near zero or at least {band}, {any_bias} whatever it is" if any_bias else ""


def tell(needed: Sequence[Settling], band: str) -> str:
    """Return a clause on what settles one or several verdicts.

    Parameters
    ----------
    needed
        What would settle each of them.
    band
        Half-width of the region of practical equivalence in words.

    Examples
    --------
    >>> tell([Settling(Advice(40, 0.8), Advice(90, 0.81))], "0.50 points")[-67:]
    'if the bias is near zero or at least 0.50 points, 90 whatever it is'
    """
    if (merged := merge_advice(needed)) is not None:
        advice, any_bias = merged
        number = f"{advice.subsamples:,} more subsamples per task settle this {tell_chance(advice)}"
        return number + name_biases(any_bias, band)
    if limited := [each for each in needed if each.is_limited_by_rows]:
        return f"the rows of the tasks are too few to settle this with more subsamples; {add_rows_or_tasks(limited)}"
    return f"it takes more than {needed[0].maximum:,} more subsamples per task to settle this"


def tell_briefly(needed: Settling | None, band: str) -> str:
    """Return a clause as `tell` does, without the probability; empty if nothing is known that settles the verdict."""
    if (merged := merge_advice([needed])) is not None:
        advice, any_bias = merged
        return f"{advice.subsamples:,} more subsamples per task settle it{name_biases(any_bias, band)}"
    return add_rows_or_tasks([needed]) if needed and needed.is_limited_by_rows else ""


def add_rows_or_tasks(limited: Sequence[Settling]) -> str:
    """Return what to do if the rows of the tasks do not support the subsamples that settle verdicts."""
    numbers = [each.num_tasks for each in limited if each.num_tasks is not None]
    return f"add rows, or use about {max(numbers):,} tasks like these" if numbers else "add rows or tasks"
