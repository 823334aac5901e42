"""Instructions and class names that a user gives instead of those of a task's definition."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from difflib import get_close_matches
from functools import cache
from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from peekbench import DataError, Folders, Options
from peekbench.errors import SpecError
from peekbench.yaml_loader import read_limited, read_yaml
from peekbench_hf.definition import HubTask
from peekbench_hf.options import ClassNames, HubTaskOptions
from peekbench_hf.tasks import TASKS


class TaskPrompt(Options):
    """What a file of prompts says of one task."""

    instruction: str | None = None
    class_names: ClassNames = None


_PROMPTS = TypeAdapter(dict[str, TaskPrompt])


def with_prompt(task: HubTask, options: HubTaskOptions, folders: Folders) -> HubTask:
    """Return the definition of a task with the instruction and the class names of the options or of their file.

    Parameters
    ----------
    task
        Definition of the task.
    options
        They take precedence over the file.
    folders
        Relative paths start at the folder of the spec.

    Raises
    ------
    DataError
        If the file cannot be read, has another form or names an unknown task, or the class names do not match.
    """
    given = TaskPrompt(instruction=options.instruction, class_names=options.class_names)
    classes = _rename(task, given.class_names, "class_names")
    instruction = given.instruction
    if options.prompts is not None:
        path = folders.spec / options.prompts.expanduser()
        from_file = _read(path).get(f"hf.{task.name}", TaskPrompt())
        if given.class_names is None:
            classes = _rename(task, from_file.class_names, f"{path}: class_names")
        if instruction is None:
            instruction = from_file.instruction
    if instruction is None:
        instruction = task.instruction
    return replace(task, classes=classes, instruction=instruction)


def _rename(task: HubTask, names: ClassNames, place: str) -> Mapping[str, str] | None:
    """Return the classes of a task with other names, which a list gives in order and a mapping by default name."""
    if names is None:
        return task.classes
    classes = task.classes or {}
    defaults = list(classes.values())
    if isinstance(names, tuple):
        if len(names) != len(defaults):
            raise DataError(
                f"hf.{task.name}: {place}: {len(names)} names for {len(defaults)} classes; name all in this order: "
                + ", ".join(defaults)
            )
        names = dict(zip(defaults, names, strict=True))
    for name in names.keys() - set(defaults):
        raise DataError(
            f"hf.{task.name}: {place}: no class has the default name {name!r}; the names are {', '.join(defaults)}"
        )
    renamed = {label: names.get(name, name).strip() for label, name in classes.items()}
    if len(set(renamed.values())) < len(renamed) or not all(renamed.values()):
        raise DataError(f"hf.{task.name}: {place}: give each class a name of its own: {list(renamed.values())}")
    return renamed


def _read(path: Path) -> dict[str, TaskPrompt]:
    """Return the prompts of a file by the name of the task."""
    try:
        return _parse(read_limited(path).decode("utf-8"), str(path))
    except (OSError, UnicodeDecodeError) as error:
        raise DataError(f"prompts: cannot read {path}: {error}; give the path of a YAML file in UTF-8") from error
    except SpecError as error:
        raise DataError(f"prompts: {error}") from error


@cache  # one parse for all tasks that share the file
def _parse(text: str, origin: str) -> dict[str, TaskPrompt]:
    try:
        prompts = _PROMPTS.validate_python(read_yaml(text, origin) or {})
    except ValidationError as error:
        detail = error.errors(include_url=False)[0]
        place = ".".join(map(str, detail["loc"][:2])) or "the file"
        raise SpecError(
            f"{origin}: {place}: {detail['msg']}; expected for each task, such as hf.trec, an `instruction` and, if "
            "the names differ, `class_names`"
        ) from error
    known = [f"hf.{task.name}" for task in TASKS]
    for name in prompts:
        if name not in known:
            near = get_close_matches(name, known, n=1, cutoff=0.4)
            hint = f"; did you mean {near[0]}?" if near else ""
            raise SpecError(f"{origin}: {name}: no such task{hint}")
    return prompts
