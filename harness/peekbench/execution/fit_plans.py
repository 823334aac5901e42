"""Plans the fits of an arm: which unlabeled texts each fit sees, and which texts it predicts.

An arm is a rule for the unlabeled texts of a fit. For each scored set, it divides the texts of the set into parts, and
each part is predicted by a fit of its own. Fits to the same unlabeled texts are one fit: with crossover scoring, the
fit to a set predicts its own set for the arm `test` and the others for the arm `extra`. With folds, fit k adapts to the
test set without fold k and predicts all of it: fold k for the arm `extra`, the others for the arm `test`. Private extra
texts take the place of fold k. `SpecWork` runs the fits.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple, TypeAlias

from peekbench.records.data import IntArray
from peekbench.spec.arms import EXTRA, Arm


class Part(NamedTuple):
    """Consecutive texts of a set."""

    number: int
    """Number of the set."""
    start: int
    stop: int


Unlabeled: TypeAlias = tuple[Part, ...] | None
"""Texts that a fit sees without labels. Equal texts in the same order are equal tuples."""
ScoredSet: TypeAlias = list[tuple[Part, Unlabeled]]
"""All parts of a set, each with the unlabeled texts of the fit that predicts it."""


def plan_arm(
    arm: Arm, num_sets: int, num_test: int, *, crossover: bool, folds: Sequence[tuple[int, int]] = ()
) -> list[ScoredSet]:
    """Return how an arm predicts each set that it scores.

    With crossover scoring, all sets are scored, and for the arm `extra` by the fits to all other sets. Other arms that
    need extra texts take them from the next set. With folds, given by their first and last positions, the arm `test`
    scores the set once for each way to predict every fold by another fit that adapts to it.
    """
    if arm.kind == "batches":
        together = plan_arm(EXTRA, num_sets, num_test, crossover=crossover, folds=folds)
        return [_divide(of_set, arm.blocks_of(num_test)) for of_set in together]
    if folds:
        return _plan_folds(arm, num_test, folds, has_extra=num_sets > 1)
    shifts = range(1, num_sets) if crossover and arm.kind == "extra" else range(1, 2)
    own_sets = range(num_sets if crossover else 1)
    return [_plan_set(arm, own, (own + shift) % num_sets, num_test) for shift in shifts for own in own_sets]


def _divide(scored: ScoredSet, blocks: Sequence[tuple[int, int]]) -> ScoredSet:
    """Return smaller parts that the same fits predict, none of which has texts of two blocks."""
    return [
        (part._replace(start=max(part.start, start), stop=min(part.stop, stop)), unlabeled)
        for part, unlabeled in scored
        for start, stop in blocks
        if start < part.stop and part.start < stop
    ]


def _plan_set(arm: Arm, own: int, other: int, size: int) -> ScoredSet:
    planned: ScoredSet = []
    for start, stop in arm.blocks_of(size):
        before, block, after = Part(own, 0, start), Part(own, start, stop), Part(own, stop, size)
        match arm.kind:
            case "base":
                planned.append((block, None))
                continue
            case "extra":
                texts = [Part(other, 0, size)]
            case "mix":  # doses are nested and paired
                peeked = arm.num_peeked(size)
                texts = [Part(own, 0, peeked), Part(other, peeked, size)]
            case "cross":
                texts = [before, after]
            case "prequential" if start == 0:  # nothing is known before it
                planned.append((block, None))
                continue
            case "prequential":
                texts = [before]
            case "stream":
                texts = [before, block]
            case "swap-in":
                texts = [before._replace(number=other), block, after._replace(number=other)]
            case "test" | "blocks":
                texts = [block]
            case _:
                raise NotImplementedError(f"the fits of the arm {arm.name} are not planned")
        planned.append((block, _join_parts(texts)))
    return planned


def _plan_folds(arm: Arm, size: int, folds: Sequence[tuple[int, int]], *, has_extra: bool) -> list[ScoredSet]:
    whole = Part(0, 0, size)
    match arm.kind:
        case "base":
            return [[(whole, None)]]
        case "all":
            return [[(whole, (whole,))]]
        case "extra":
            shifts = range(1)
        case "test":
            shifts = range(1, len(folds))
        case _:
            raise NotImplementedError(f"the fits of the arm {arm.name} are not planned with folds")
    blocks = [Part(0, start, stop) for start, stop in folds]
    fits = []
    for block in blocks:
        texts = [other for other in blocks if other is not block]
        if has_extra:
            texts.append(block._replace(number=1))
        fits.append(_join_parts(texts))
    return [
        [(block, fits[(position + shift) % len(folds)]) for position, block in enumerate(blocks)] for shift in shifts
    ]


def _join_parts(parts: Iterable[Part]) -> tuple[Part, ...]:
    """Return parts of texts without empty ones, and with neighbors as one part."""
    joined: list[Part] = []
    for part in parts:
        if joined and joined[-1].number == part.number and joined[-1].stop == part.start:
            joined[-1] = joined[-1]._replace(stop=part.stop)
        elif part.start < part.stop:
            joined.append(part)
    return tuple(joined)


def rows_of(part: Part, sets: Sequence[IntArray]) -> IntArray:
    """Return the rows of the texts of a part."""
    return sets[part.number][part.start : part.stop]


def count_fits(plans: Iterable[Sequence[ScoredSet]]) -> int:
    """Return the number of fits of a trial, each of them to other unlabeled texts."""
    return len({unlabeled for scored in plans for of_set in scored for _, unlabeled in of_set})
