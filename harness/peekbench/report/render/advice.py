"""What would settle inconclusive verdicts, in words: more subsamples, or more rows or tasks."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from peekbench.records.verdicts import Advice, Settling, TrialEvidence, Verdict


def settle(verdict: Verdict) -> Settling | None:
    """Return what would settle an inconclusive verdict; None if it is not known."""
    return verdict.evidence.settling if isinstance(verdict.evidence, TrialEvidence) else None


def merge(needed: Iterable[Settling | None]) -> Settling | None:
    """Return what settles several verdicts, without those that no number of subsamples settles; None if unknown.

    Examples
    --------
    >>> both = merge([Settling(Advice(40, 0.8), Advice(90, 0.81)), Settling(Advice(60, 0.82), Advice(60, 0.82)), None])
    >>> both.advice, both.advice_for_any_bias.subsamples
    (Advice(subsamples=60, probability=0.8), 90)
    """
    known = [each for each in needed if each]
    known = [each for each in known if each.advice] or known
    if not known:
        return None
    return Settling(
        _largest([each.advice for each in known]),
        _largest([each.advice_for_any_bias for each in known]),
        max(each.maximum for each in known),
        any(each.is_limited_by_rows for each in known),
        max((each.num_tasks for each in known if each.num_tasks is not None), default=None),
    )


def _largest(numbers: Sequence[Advice | None]) -> Advice | None:
    known = [each for each in numbers if each]
    if len(known) < len(numbers):
        return None
    probabilities = (each.probability for each in known if each.probability is not None)
    return Advice(max(each.subsamples for each in known), min(probabilities, default=None))


def tell_chance(advice: Advice) -> str:
    """Return when subsamples settle a verdict: with a probability, or if further trials are like those so far."""
    if advice.probability is None:
        return "if no further trial has a bias either"
    return f"with {advice.probability:.0%} probability"


def name_biases(needed: Settling, band: str) -> str:
    """Return a clause on the biases for which advice holds, with what any other one takes; empty if it holds for any.

    Parameters
    ----------
    needed
        Advice, and that for a bias of any size.
    band
        Half-width of the region of practical equivalence in words.
    """
    if needed.advice_for_any_bias is not None:
        other = f"{needed.advice_for_any_bias.subsamples:,}"
    else:
        other = "more rows or tasks" if needed.is_limited_by_rows else f"over {needed.maximum:,}"
    if needed.advice is not None and other == f"{needed.advice.subsamples:,}":
        return ""
    return f" if the bias is near zero or at least {band}, {other} whatever it is"


def tell(needed: Settling, band: str) -> str:
    """Return a clause on what settles a verdict, or several.

    Examples
    --------
    >>> tell(Settling(Advice(40, 0.8), Advice(90, 0.81)), "0.50 points")[-67:]
    'if the bias is near zero or at least 0.50 points, 90 whatever it is'
    """
    if (advice := needed.advice) is not None:
        number = f"{advice.subsamples:,} more subsamples per task settle this {tell_chance(advice)}"
        return number + name_biases(needed, band)
    if needed.is_limited_by_rows:
        return f"the rows of the tasks are too few to settle this with more subsamples; {add_rows_or_tasks(needed)}"
    return f"it takes more than {needed.maximum:,} more subsamples per task to settle this"


def tell_briefly(needed: Settling | None, band: str) -> str:
    """Return a clause as `tell` does, without the probability; empty if nothing is known that settles the verdict."""
    if needed is None:
        return ""
    if needed.advice is not None:
        return f"{needed.advice.subsamples:,} more subsamples per task settle it{name_biases(needed, band)}"
    return add_rows_or_tasks(needed) if needed.is_limited_by_rows else ""


def add_rows_or_tasks(limited: Settling) -> str:
    """Return what to do if the rows of the tasks do not support the subsamples that settle verdicts."""
    return (
        f"add rows, or use about {limited.num_tasks:,} tasks like these" if limited.num_tasks else "add rows or tasks"
    )
