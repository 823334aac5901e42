"""Planned looks of a design: sizes, and errors that name the remedy."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from peekbench.spec.design import Design


def make(**stop: Any) -> Design:
    return Design(num_train=(50,), num_test=(50, 500), num_subsamples={50: 100, 500: 20}, stop=stop.get("stop", stop))


def test_each_test_size_is_looked_at_after_the_same_share_of_its_subsamples() -> None:
    even, listed = make(looks=5), make(looks=[10, 50])
    assert [even.split_by_looks(number) for number in (100, 20)] == [(20, 40, 60, 80, 100), (4, 8, 12, 16, 20)]
    assert [listed.split_by_looks(number) for number in (100, 20)] == [(10, 50, 100), (2, 10, 20)]
    assert listed.look_fractions() == (0.1, 0.5, 1.0)
    assert even.at_look(2).num_subsamples == {50: 40, 500: 8}
    assert even.look_number(60) == 3
    by_default = Design(num_train=(5,), num_test=(5,), num_subsamples=7)
    assert by_default.split_by_looks(7) == (3, 5, 7), "at least two subsamples apart"
    assert make(looks=[10, 200]).split_by_looks(100) == (10, 100)
    assert make(stop="none").split_by_looks(100) == (100,)


@pytest.mark.parametrize(
    ("stop", "message"),
    [
        ({"looks": 1}, "greater than or equal to 2"),
        ({"looks": []}, "at least 1 item"),
        ({"looks": [10, 10]}, "has a number twice"),
        ({"at": ["biassed"]}, "'biased' or 'equivalent'"),
    ],
)
def test_impossible_looks_are_refused(stop: dict[str, Any], message: str) -> None:
    with pytest.raises(ValidationError, match=message.replace("[", r"\[")):
        make(**stop)
