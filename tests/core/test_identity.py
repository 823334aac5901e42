"""When two values are equal, alike or different."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

from peekbench.identity import compare, key_of, normalize

NFD = "cafe\u0301"
NFC = "caf\u00e9"


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        (1, 1.0, "equal"),
        (1, "1", "equal"),
        ("12", " 12.0", "equal"),
        (np.int64(7), "7", "equal"),
        (np.float32(7), 7, "equal"),
        (True, "true", "equal"),
        (np.True_, True, "equal"),
        ("pos", " pos\n", "equal"),
        (None, "", "equal"),
        (None, pd.NA, "equal"),
        (pd.NaT, float("nan"), "equal"),
        (NFC, NFD, "alike"),
        ("pos", "Pos.", "alike"),
        ("pos", "pos\u200b", "alike"),
        ("12", "\uff11\uff12", "alike"),
        ("new york", "New\u00a0York", "alike"),
        ("\u2764", "\u2764\ufe0f", "alike"),
        ("true", "True", "alike"),
        ("Masse", "Ma\u00dfe", "different"),
        ("10\u00b2", "102", "different"),
        ("0", "", "different"),
        (1, True, "different"),
        (1, 2, "different"),
        ("1.5", 1, "different"),
        ("012", "12", "different"),
        ("?", "!", "different"),
        ("-1", "1", "different"),
        (0.5, "0.50", "different"),
    ],
)
def test_values_are_equal_alike_or_different(one: Any, other: Any, expected: str) -> None:
    assert compare(one, other) == compare(other, one) == expected
    assert compare(one, one) == "equal"


def test_lists_and_fractions_have_no_key() -> None:
    assert [key_of(value) for value in (0.5, [1], np.array([1]), {"a": 1})] == [None] * 4


def test_a_normalized_text_stays_as_it_is() -> None:
    for text in ("Stra\u00dfe!", NFD, "\u0130stanbul", "\uff12.0", "?", "", "a ,", "\ufb01n", "\u1100\u1161"):
        assert normalize(normalize(text)) == normalize(text), ascii(text)
