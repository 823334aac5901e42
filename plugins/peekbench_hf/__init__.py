"""The study's 25 tasks, and any other text classification dataset, from the Hugging Face Hub or a mirror of it."""

from __future__ import annotations

from functools import partial

from peekbench import DataSourceEntry, hookimpl
from peekbench.plugins import TaskGroupEntry
from peekbench_hf.options import HubDatasetOptions, HubOptions
from peekbench_hf.source import facts, load_dataset, load_task, pin_dataset, pin_task
from peekbench_hf.tasks import TASKS


@hookimpl
def peekbench_data_sources() -> list[DataSourceEntry | TaskGroupEntry]:
    """One data source a task, all of them as a group, and one for any other dataset."""
    tasks = [
        DataSourceEntry(
            name=task.name,
            options=HubOptions,
            load=partial(load_task, task=task),
            pin=partial(pin_task, task=task),
            facts=partial(facts, task=task),
            summary=task.instruction.partition(". ")[0] + ".",
        )
        for task in TASKS
    ]
    members = tuple(task.name for task in TASKS)
    return [
        *tasks,
        TaskGroupEntry(name="all", members=members, summary=f"the {len(members)} tasks of arXiv 2410.00179"),
        DataSourceEntry(
            name="dataset",
            options=HubDatasetOptions,
            load=load_dataset,
            pin=pin_dataset,
            summary="any text classification dataset of the Hugging Face Hub",
        ),
    ]
