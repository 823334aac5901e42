"""Tests of the data sources `arithmetic.*`."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest

from peekbench import load_dataset
from peekbench.errors import DataError, SpecError


def test_references_are_the_values_of_expressions() -> None:
    options = {"rows": 500, "digits": [1, 3], "terms": 4, "operations": ["+", "-", "*"], "template": "{expression} = ?"}
    dataset = load_dataset("arithmetic.sums", options)
    assert len(set(dataset.inputs)) == 500
    for prompt, reference in zip(dataset.inputs, dataset.labels, strict=True):
        expression = prompt.removesuffix(" = ?")
        assert re.fullmatch(r"\d{1,3}( [-+*] \d{1,3}){3}", expression)
        assert eval(expression) == int(reference)


def test_stories_are_told_correctly() -> None:
    dataset = load_dataset("arithmetic.problems", {"rows": 500, "steps": 3, "template": "Q: {story}"})
    events: dict[str, Callable[..., int]] = {
        r" has (\d+) \w+\.": lambda count, number: number,
        r" gives (?!\d+ of )\w+ (\d+) \w+\.": lambda count, number: count + number,
        r" buys (\d+) bags of (\d+) \w+ each\.": lambda count, bags, size: count + bags * size,
        r" (?:gives|loses) (\d+) of them": lambda count, number: count - number,
        r" sells half of them": lambda count: count // 2,
        r" doubles the number": lambda count: 2 * count,
    }
    for story, reference in zip(dataset.inputs, dataset.labels, strict=True):
        count = 0
        *sentences, _ = re.split(r"(?<=\.) ", story)
        for sentence in sentences:
            matches = [(event, match) for event in events if (match := re.search(event, sentence))]
            ((event, match),) = matches
            count = events[event](count, *map(int, match.groups()))
        assert count == int(reference) >= 0
        assert len(sentences) == 4


def test_a_seed_gives_the_same_rows_and_fewer_are_the_first_ones() -> None:
    rows = load_dataset("arithmetic.problems", {"rows": 200, "seed": 3}).inputs
    assert load_dataset("arithmetic.problems", {"rows": 100, "seed": 3}).inputs == rows[:100]
    assert load_dataset("arithmetic.problems", {"rows": 200, "seed": 4}).inputs != rows


def test_options_without_enough_prompts_or_a_place_are_refused() -> None:
    with pytest.raises(DataError, match="only 200 different prompts, but rows is 1,000; allow more digits"):
        load_dataset("arithmetic.sums", {"rows": 1000, "digits": [1, 1]})
    with pytest.raises(SpecError, match=r"no \{expression\}"):
        load_dataset("arithmetic.sums", {"template": "Calculate!"})
    with pytest.raises(SpecError, match="no range of digits"):
        load_dataset("arithmetic.sums", {"digits": [3, 2]})
