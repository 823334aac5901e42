"""Contract checks of fits: they work in both arms, depend on nothing but their arguments, and change none of them."""

from __future__ import annotations

import copy
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from peekbench.errors import ContractError
from peekbench.records.data import FloatArray, Inputs, Labeled
from peekbench.testing.attempt import Attempt
from peekbench.testing.case import Case, in_both_arms
from peekbench.testing.prediction_checks import are_equal, observe


@dataclass(frozen=True, slots=True)
class Refits:
    """Predictions of a second fit with the same arguments, before and after another fit, and of a third fit."""

    second: FloatArray
    second_after_other: Attempt
    third: Attempt


def refit(case: Case, unlabeled: Inputs | None) -> Refits:
    """Fit again, fit with another seed and other unlabeled inputs, and fit a third time; once for all checks."""
    return case.share(f"refits {unlabeled is None}", partial(_refit, case, unlabeled))


def _refit(case: Case, unlabeled: Inputs | None) -> Refits:
    predictor = case.fit(unlabeled)
    second = case.apply(predictor, case.test)
    case.fit(case.other, seed=2)
    after = Attempt(partial(case.apply, predictor, case.test))
    del predictor  # it may keep a model that the next fit can use
    return Refits(second, after, Attempt(partial(case.predict, unlabeled)))


def check_base_arm(case: Case) -> None:
    """Check that a method works without unlabeled inputs."""
    observe(case, None)


def check_extra_arm(case: Case) -> None:
    """Check that a method works with unlabeled inputs."""
    observe(case, case.unlabeled)


@in_both_arms
def check_same_seed(case: Case, unlabeled: Inputs | None) -> None:
    """Check that the same seed gives the same predictions, to the last bit."""
    if not is_deterministic(case, unlabeled):
        raise ContractError(
            "two fits with the same seed give different predictions; draw all random numbers from context.seed"
        )


def is_deterministic(case: Case, unlabeled: Inputs | None) -> bool:
    """Return whether two fits in a row with the same arguments give the same predictions."""
    return are_equal(observe(case, unlabeled).predictions, refit(case, unlabeled).second)


@in_both_arms
def check_refit(case: Case, unlabeled: Inputs | None) -> None:
    """Check that a fit does not depend on earlier fits."""
    refits = refit(case, unlabeled)
    if not are_equal(refits.second, refits.third.result()):
        raise ContractError(
            "a fit gives other predictions after another fit; keep no state between fits, in the module or in a model"
        )


@in_both_arms
def check_earlier_predictor(case: Case, unlabeled: Inputs | None) -> None:
    """Check that a later fit does not change an earlier predictor."""
    refits = refit(case, unlabeled)
    if not are_equal(refits.second, refits.second_after_other.result()):
        raise ContractError("a predictor changes when the method is fitted again; give each fit its own model")


@in_both_arms
def check_inputs_untouched(case: Case, unlabeled: Inputs | None) -> None:
    """Check that a method does not change its inputs and labels, even if they are writable."""
    writable = replace(
        case,
        train=Labeled(copy.deepcopy(case.train.inputs), case.train.labels.copy()),
        unlabeled=copy.deepcopy(case.unlabeled),
        test=copy.deepcopy(case.test),
    )
    writable.predict(None if unlabeled is None else writable.unlabeled)
    for before, after in (
        (case.train.inputs, writable.train.inputs),
        (case.train.labels, writable.train.labels),
        (case.unlabeled, writable.unlabeled),
        (case.test, writable.test),
    ):
        if not np.array_equal(np.array(before), np.array(after)):
            raise ContractError("it changes its inputs or labels; work on copies")
