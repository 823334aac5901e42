"""Plugin ``arithmetic``: generation tasks with known difficulty, made by a seeded generator; no download."""

from __future__ import annotations

from typing import Literal, TypeAlias

from pydantic import Field, field_validator

from peekbench import DataSourceEntry, Options, hookimpl

Operation: TypeAlias = Literal["+", "-", "*"]


class Made(Options):
    """Options of all tasks of arithmetic."""

    rows: int = Field(default=2000, ge=20, le=100_000)
    """Number of different prompts."""
    seed: int = 0
    """Seed of the generator."""


class Sums(Made):
    """Options of `arithmetic.sums`."""

    digits: tuple[int, int] = (1, 2)
    """Smallest and largest number of digits of a number: the level of difficulty."""
    terms: int = Field(default=2, ge=2, le=6)
    """Number of numbers."""
    operations: tuple[Operation, ...] = Field(default=("+", "-"), min_length=1)
    """Operations between them, which are drawn with equal probability."""
    template: str = "{expression} ="
    """Prompt around the expression, such as `What is {expression}? Answer with a number.`"""

    @field_validator("digits")
    @classmethod
    def _check_digits(cls, digits: tuple[int, int]) -> tuple[int, int]:
        if not 1 <= digits[0] <= digits[1] <= 12:
            raise ValueError(f"{list(digits)} is no range of digits; give two numbers from 1 to 12, the smaller first")
        return digits

    @field_validator("template")
    @classmethod
    def _check_template(cls, template: str) -> str:
        if template.count("{expression}") != 1:
            raise ValueError("the template contains no {expression}, or several; write it once")
        return template


class Problems(Made):
    """Options of `arithmetic.problems`."""

    steps: int = Field(default=1, ge=1, le=6)
    """Number of events in a story, each of which changes a number: the level of difficulty."""
    largest: int = Field(default=5, ge=3, le=1_000_000)
    """Largest number in the text."""
    template: str = "{story} Answer:"
    """Prompt around the story, which ends with a question, such as `{story} Reply with a number.`"""

    @field_validator("template")
    @classmethod
    def _check_template(cls, template: str) -> str:
        if template.count("{story}") != 1:
            raise ValueError("the template contains no {story}, or several; write it once")
        return template


@hookimpl
def peekbench_data_sources() -> list[DataSourceEntry]:
    """Register the data sources."""
    return [
        DataSourceEntry(
            name="sums",
            options=Sums,
            load="peekbench_arithmetic.source:sums",
            summary="sums, differences and products of numbers with given numbers of digits",
        ),
        DataSourceEntry(
            name="problems",
            options=Problems,
            load="peekbench_arithmetic.source:problems",
            summary="word problems in which a given number of events changes a number of objects",
        ),
    ]
