"""Plugin ``docstrings``: tasks that every installation has, made from the docstrings of five packages.

A text is the prose of a docstring; its class is the part of the package that the docstring belongs to.
"""

from __future__ import annotations

from functools import partial

from peekbench import DataSourceEntry, hookimpl
from peekbench.plugins import Reference, TaskGroupEntry
from peekbench_docstrings.options import DocstringOptions
from peekbench_docstrings.recipes import RECIPES

LOAD = Reference("peekbench_docstrings.source:load")
FACTS = Reference("peekbench_docstrings.source:task_facts")


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
