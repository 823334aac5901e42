"""Facts about a task that are known without loading it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from peekbench import Folders
from peekbench.cache import read_cached, write_cached
from peekbench.records import TaskFacts
from peekbench_hf.definition import HubTask

if TYPE_CHECKING:
    from peekbench_hf.prepared import PreparedTask  # imports pyarrow


def task_facts(folders: Folders, task: HubTask) -> TaskFacts:
    """Return facts from the task's definition and from the last time it was loaded on this machine.

    Parameters
    ----------
    folders
        Folders of the spec and the cache.
    task
        Definition of the task.
    """
    recorded = read_cached(_facts_path(task, folders)) or {}
    return TaskFacts(
        num_classes=recorded.get("num_classes", len(task.classes or ()) or None),
        num_rows=recorded.get("num_rows", task.num_rows),
        characters=tuple(recorded["characters"]) if recorded else None,
        license=task.license,
        class_names=tuple(dict.fromkeys((task.classes or {}).values())),
        instruction=task.instruction,
        details={"from": " or ".join(map(str, task.locations)), "citation": task.citation, "note": task.note},
    )


def record_facts(task: HubTask, folders: Folders, prepared: PreparedTask) -> None:
    """Store facts about a loaded task for later calls of `task_facts`.

    Parameters
    ----------
    task
        Definition of the task.
    folders
        Folders of the spec and the cache.
    prepared
        Its rows.
    """
    characters = prepared.details["characters"]
    facts = {
        "num_classes": len(prepared.class_names),
        "num_rows": len(prepared.labels),
        "characters": [characters["25"], characters["75"]],
    }
    write_cached(_facts_path(task, folders), facts)


def _facts_path(task: HubTask, folders: Folders) -> Path:
    return folders.cache / "hf" / "facts" / f"{task.name}.json"
