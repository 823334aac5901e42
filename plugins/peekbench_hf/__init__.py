"""Plugin ``hf``: the study's 25 tasks, and any other text classification dataset, from the Hugging Face Hub."""

from __future__ import annotations

from functools import partial

from peekbench import DataSourceEntry, hookimpl
from peekbench.plugins import Preparation, Reference, TaskGroupEntry
from peekbench_hf.options import HubDatasetOptions, HubTaskOptions
from peekbench_hf.tasks import TASKS

LOAD = Reference("peekbench_hf.source:load")
PIN = Reference("peekbench_hf.source:pin")
TASK_FACTS = Reference("peekbench_hf.definition:task_facts")


@hookimpl
def peekbench_data_sources() -> list[DataSourceEntry | TaskGroupEntry]:
    """Register one data source per task, a group of all tasks, and a data source for any other dataset."""
    tasks = [
        DataSourceEntry(
            name=task.name,
            options=HubTaskOptions,
            load=partial(LOAD, task=task),
            preparation=Preparation(pin=partial(PIN, task=task)),
            facts=partial(TASK_FACTS, task=task),
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
            load=LOAD,
            preparation=Preparation(pin=PIN),
            summary="any text classification dataset of the Hugging Face Hub",
        ),
    ]
