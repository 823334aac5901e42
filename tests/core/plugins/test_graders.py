"""Tests of `peekbench.plugins.graders`."""

from __future__ import annotations

from pathlib import Path

import pytest

from peekbench.errors import PluginError
from peekbench.plugins.graders import choice, exact, find_grader, number


@pytest.mark.parametrize(
    ("answer", "reference", "is_right"),
    [
        ("  The  CAT. ", "the cat", True),
        ("cafe\u0301", "caf\u00e9", True),
        ("the cat sat", "the cat", False),
        ("4.0", "4", True),
        ("4.5", "4", False),
        ("Masse", "Ma\u00dfe", False),
        ("10\u00b2", "102", False),
        ("", "the cat", False),
        ("", "?", False),
    ],
)
def test_exact_ignores_case_spaces_and_final_punctuation(answer: str, reference: str, is_right: bool) -> None:
    assert exact(answer, reference) == is_right


@pytest.mark.parametrize(
    ("answer", "reference", "is_right"),
    [
        ("3 boxes of 400 are 1,200.", "1200", True),
        ("#### 72", "72 apples", True),
        ("$1,234,567.50", "1234567.5", True),
        (r"\boxed{-3}", "-3", True),
        ("\u22123", "-3", True),
        ("5-3=2", "2", True),
        ("It is 3/4 of it.", "0.75", True),
        ("50%", "50", True),
        ("50%", "0.5", False),
        ("[1,2,3]", "3", True),
        (".5", "1/2", True),
        ("1/0", "1", True),
        ("3", "-3", False),
        ("step 2: 7. So 8", "7", False),
        ("no idea", "7", False),
        ("see A7", "7", False),
        ("1e5", "1", False),
        ("It is -1.2E+3.", "-1200", True),
        ("3 eggs", "3", True),
        ("9" * 5000, "7", False),
        ("1/" + "9" * 5000, "7", False),
    ],
)
def test_number_compares_the_last_numbers(answer: str, reference: str, is_right: bool) -> None:
    assert number(answer, reference) == is_right


@pytest.mark.parametrize(
    ("answer", "reference", "is_right"),
    [
        ("A", "A", True),
        ("(a)", "A", True),
        ("Answer: A", "(A)", True),
        ("answer: a.", "A", True),
        ("The answer is **A**.", "A", True),
        ("Option B is wrong, so the answer is (A)", "A", True),
        (r"The answer is $\boxed{C}$.", "C", True),
        ("A) a cat", "A", True),
        ("I think it is A", "A", True),
        ("A cat. The answer is a cat.", "A", False),
        ("B", "A", False),
        ("no idea", "A", False),
    ],
)
def test_choice_compares_letters(answer: str, reference: str, is_right: bool) -> None:
    assert choice(answer, reference) == is_right


def test_references_that_cannot_be_compared_are_refused() -> None:
    with pytest.raises(ValueError, match="no number"):
        number("7", "seven")
    with pytest.raises(ValueError, match="no letter"):
        choice("A", "the cat")


def test_a_grader_is_found_by_name_and_in_a_file(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text("def grade(answer, reference):\n    return 0.5\n", encoding="utf-8")
    assert find_grader("exact", tmp_path) is exact
    assert find_grader("mine.py:grade", tmp_path)("", "") == 0.5
    with pytest.raises(PluginError, match="no grader 'numbr'; use exact, number, choice"):
        find_grader("numbr", tmp_path)
    with pytest.raises(PluginError, match=r"mine\.py has no function 'grades'"):
        find_grader("mine.py:grades", tmp_path)
