"""Copies the instructions of the study from a checkout of its repository to specs/paper/prompts.yml.

The instructions are sentences of the study's authors, so peekbench does not contain them. The checkout's file is
parsed, never run. Its form may change: a value belongs to a task if it stands in a dictionary, call, list, assignment,
function or class with the name of the task.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from textwrap import dedent
from typing import TypeAlias

import yaml

from peekbench import Folders
from peekbench_hf.options import HubTaskOptions
from peekbench_hf.prompts import with_prompt
from peekbench_hf.tasks import TASKS

DATA = Path("src", "pretrain_on_test", "data.py")
"""The file of a checkout that contains the instructions."""
INSTRUCTION_NAMES = ("instruction", "prompt", "description")
CLASS_NAMES = ("class", "label")
"""Parts of the names of arguments and keys, the most certain first."""
EQUAL = ("ag_news", "movie_rationales")
"""Tasks whose instructions in the study equal those of peekbench."""
Value: TypeAlias = str | tuple[str, ...]


def fill_prompts(data: Path, prompts: Path) -> None:
    """Write the instructions of the study to a file of prompts, and print what was not found or differs.

    Parameters
    ----------
    data
        The study's file `DATA`.
    prompts
        A file with the tasks as keys, to change. Comments at its beginning are kept.
    """
    try:
        tree = ast.parse(data.read_text("utf-8"), str(data))
    except (SyntaxError, ValueError) as error:
        raise SystemExit(f"cannot parse {data}: {error}; check out the repository again") from error
    text = prompts.read_text("utf-8")
    entries = yaml.safe_load(text) or {}
    folders = Folders(prompts.parent, prompts.parent)
    missing, different = [], []
    for task in TASKS:
        values = list(find_values(tree, task.name))
        instruction = choose_instruction(values)
        if instruction is None:
            missing.append(f"hf.{task.name}")
        else:
            entries.setdefault(f"hf.{task.name}", {})["instruction"] = instruction
        if task.name in EQUAL and instruction not in (None, task.instruction):
            different.append(f"hf.{task.name}: instruction: {instruction}")
        classes = with_prompt(task, HubTaskOptions(prompts=prompts), folders).classes or {}
        names = choose_names(values, len(classes))
        if names not in (None, tuple(classes.values())):
            different.append(f"hf.{task.name}: class names: {', '.join(names or ())}")
    head = "".join(line for line in text.splitlines(keepends=True) if line.startswith("#"))
    body = yaml.safe_dump(entries, sort_keys=False, allow_unicode=True, width=118)
    prompts.write_text(head + body, encoding="utf-8")
    print(f"{prompts}: instructions of {len(TASKS) - len(missing)} of {len(TASKS)} tasks from {data}")
    if missing:
        print(f"not found, unchanged: {', '.join(missing)}; fill them in by hand")
    for line in different:
        print(f"unlike peekbench's copy, check it: {line}")


def find_values(tree: ast.Module, task: str) -> Iterator[tuple[str, Value]]:
    """Yield the texts and lists of texts that belong to a task, each with the name of its argument or key."""
    assigned = [pair for node in tree.body if isinstance(node, ast.Assign | ast.AnnAssign) for pair in _keyed(node)]
    constants = {name: value for name, value in assigned if _literal(value) is not None}
    for node in ast.walk(tree):
        for key, value in _keyed(node):
            if key.rpartition("/")[2].lower().replace("-", "_") == task:
                yield from _named_values(value, "", constants)


def _keyed(node: ast.AST) -> Iterator[tuple[str, ast.AST]]:
    """Yield the names in a node, each with the part of the code that it may name."""
    if isinstance(node, ast.Dict):
        for key, value in zip(node.keys, node.values, strict=True):
            if key is not None:
                yield from ((name, value) for name in _names_in(key))
    elif isinstance(node, ast.Assign | ast.AnnAssign):
        targets = node.targets if isinstance(node, ast.Assign) else [node.target]
        if node.value is not None:
            yield from ((name, node.value) for target in targets for name in _names_in(target))
    elif isinstance(node, ast.FunctionDef | ast.ClassDef):
        yield node.name.removeprefix("load_"), node
    parts: list[ast.expr] = []
    if isinstance(node, ast.Call):
        yield from ((keyword.arg or "", keyword.value) for keyword in node.keywords)
        parts = [*node.args, *(keyword.value for keyword in node.keywords)]
    elif isinstance(node, ast.Tuple | ast.List):
        parts = node.elts
    yield from ((part.value, node) for part in parts if isinstance(part, ast.Constant) and isinstance(part.value, str))


def _names_in(node: ast.expr) -> Iterator[str]:
    """Yield the variables and texts in a key or in the target of an assignment."""
    for part in ast.walk(node):
        if isinstance(part, ast.Name):
            yield part.id
        elif isinstance(part, ast.Constant):
            yield str(part.value)


def _named_values(node: ast.AST, name: str, constants: Mapping[str, ast.AST]) -> Iterator[tuple[str, Value]]:
    """Yield the literals in a node, but no parts of texts that are put together when the code runs."""
    if isinstance(node, ast.Name):
        node = constants.get(node.id, node)
    value = _literal(node)
    if value is not None:
        yield name, value
    parts: Iterable[tuple[str, ast.AST]] = ()
    if isinstance(node, ast.Dict | ast.Assign | ast.AnnAssign):
        parts = _keyed(node)
    elif isinstance(node, ast.keyword):
        parts = [(node.arg or "", node.value)]
    elif isinstance(node, ast.Call):
        parts = [(name, part) for part in (*node.args, *node.keywords)]
    elif isinstance(node, ast.Return | ast.List | ast.Tuple | ast.FunctionDef | ast.ClassDef):
        parts = [(name, part) for part in ast.iter_child_nodes(node)]
    for part_name, part in parts:
        yield from _named_values(part, part_name, constants)


def _literal(node: ast.AST) -> Value | None:
    """Return a text, or the texts of a list or of a dictionary's values."""
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        parts = (_literal(node.left), _literal(node.right))
        return "".join(map(str, parts)) if all(isinstance(part, str) for part in parts) else None
    try:
        value = ast.literal_eval(node) if isinstance(node, ast.expr) else None
    except (ValueError, TypeError):
        return None
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, list | tuple) and value and all(isinstance(item, str) for item in value):
        return tuple(value)
    return value if isinstance(value, str) else None


def choose_instruction(values: list[tuple[str, Value]]) -> str | None:
    """Return the instruction among the values of a task; None if there is none, or more than one candidate."""
    texts = [(name.lower(), dedent(value).strip()) for name, value in values if isinstance(value, str)]
    sentences = [(name, text) for name, text in texts if " " in text]
    for known in INSTRUCTION_NAMES:
        candidates = {text for name, text in sentences if known in name}
        if len(candidates) == 1:
            return candidates.pop()
    candidates = {text for name, text in sentences if not name and text.endswith(".")}
    return candidates.pop() if len(candidates) == 1 else None


def choose_names(values: list[tuple[str, Value]], number: int) -> tuple[str, ...] | None:
    """Return the class names among the values of a task; None if they are not certain."""
    lists = [(name.lower(), value) for name, value in values if isinstance(value, tuple) and len(value) == number]
    for known in CLASS_NAMES:
        candidates = {value for name, value in lists if known in name}
        if len(candidates) == 1:
            return candidates.pop()
    candidates = {value for _, value in lists}
    return candidates.pop() if len(candidates) == 1 else None
