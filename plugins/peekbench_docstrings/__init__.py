"""Plugin ``docstrings``: tasks that every installation has, made from the docstrings of five packages.

A text is the prose of a docstring; its class is the part of the package that the docstring belongs to.
"""

from __future__ import annotations

from functools import partial
from typing import Literal

from pydantic import Field, model_validator

from peekbench import DataSourceEntry, Options, hookimpl
from peekbench.plugins import Reference, TaskGroupEntry
from peekbench_docstrings.recipes import RECIPES

LOAD = Reference("peekbench_docstrings.source:load")
FACTS = Reference("peekbench_docstrings.source:task_facts")


class DocstringOptions(Options):
    """Which texts are used, and how long they are."""

    min_characters: int = Field(default=40, ge=1)
    """Texts with fewer characters are dropped."""
    max_characters: int = Field(default=400, ge=1)
    """Texts with more characters are cut at the end of a word."""
    drop_duplicates: Literal["exact", "near"] = "exact"
    """Of equal texts, or of nearly equal ones, the first is kept, or none if their classes differ."""

    @model_validator(mode="after")
    def _check_range(self) -> DocstringOptions:
        if self.min_characters > self.max_characters:
            raise ValueError(
                f"min_characters {self.min_characters} is greater than max_characters {self.max_characters}; lower it"
            )
        return self


@hookimpl
def peekbench_data_sources() -> list[DataSourceEntry | TaskGroupEntry]:
    """Register one data source per package, and a group of all of them."""
    tasks = [
        DataSourceEntry(
            name=recipe.task,
            options=DocstringOptions,
            load=partial(LOAD, recipe=recipe),
            facts=partial(FACTS, recipe=recipe),
            summary=f"docstrings of {recipe.title} by subject, {len(recipe.classes)} classes",
        )
        for recipe in RECIPES
    ]
    members = tuple(recipe.task for recipe in RECIPES)
    return [*tasks, TaskGroupEntry(name="all", members=members, summary=f"the tasks {', '.join(members)}")]
