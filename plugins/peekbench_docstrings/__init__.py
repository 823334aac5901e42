"""Text that every installation has: what the docstrings of five packages say, and what part of the package says it."""

from __future__ import annotations

from functools import partial

from peekbench import DataSourceEntry, hookimpl
from peekbench.plugins import TaskGroupEntry
from peekbench_docstrings.recipes import RECIPES
from peekbench_docstrings.source import DocstringOptions, facts, load


@hookimpl
def peekbench_data_sources() -> list[DataSourceEntry | TaskGroupEntry]:
    """One task a package, and all of them."""
    tasks = [
        DataSourceEntry(
            name=recipe.task,
            options=DocstringOptions,
            load=partial(load, recipe=recipe),
            facts=partial(facts, recipe=recipe),
            summary=f"docstrings of {recipe.title} by subject, {len(recipe.classes)} classes",
        )
        for recipe in RECIPES
    ]
    members = tuple(recipe.task for recipe in RECIPES)
    return [*tasks, TaskGroupEntry(name="all", members=members, summary=f"the tasks {', '.join(members)}")]
