"""Public names: each has documentation in numpydoc sections and examples that run."""

from __future__ import annotations

import ast
import doctest
import importlib.util
import inspect
import pkgutil
import re
from collections.abc import Iterator
from dataclasses import is_dataclass
from functools import cache
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any, Literal, get_origin

import pytest

from peekbench.api import measuring

pytest.importorskip("pyarrow", reason="the extra 'parquet' is not installed")

NAMESPACES = ("peekbench", "peekbench.api", "peekbench.cache", "peekbench.data", "peekbench.errors",
              "peekbench.formatting", "peekbench.plugins", "peekbench.records", "peekbench.report",
              "peekbench.results", "peekbench_logs", "peekbench_testing")  # fmt: skip


def own_names(module: ModuleType) -> list[str]:
    """What a namespace exports; of a plain module, its own functions and classes."""
    own = [name for name, value in vars(module).items() if getattr(value, "__module__", "") == module.__name__]
    return getattr(module, "__all__", [name for name in own if not name.startswith("_")])


def public_names() -> Iterator[tuple[str, Any, str]]:
    """Every name that a public namespace exports, qualified, with its value and its docstring."""
    for namespace in NAMESPACES:
        module = import_module(namespace)
        for name in own_names(module):
            value = getattr(module, name)
            if inspect.ismodule(value):
                continue
            is_documented = inspect.isfunction(value) or (inspect.isclass(value) and value is not Any)
            text = inspect.getdoc(value) if is_documented else find_docstring(namespace, name)
            yield f"{namespace}.{name}", value, text or ""


def find_docstring(namespace: str, name: str) -> str:
    """Return the text below the assignment of a constant or a type, in the module that a namespace takes it from."""
    source = importlib.util.find_spec(namespace)
    assert source is not None
    assert source.origin is not None
    path = Path(source.origin)
    for file in (path.with_suffix(".pyi"), path):
        for node in ast.walk(ast.parse(file.read_text())) if file.exists() else ():
            if isinstance(node, ast.ImportFrom) and name in [alias.name for alias in node.names]:
                module = f"{namespace}.{node.module}" if node.level else str(node.module)
                return attribute_docstrings(module).get(name) or find_docstring(module, name)
    return attribute_docstrings(namespace).get(name, "")


@cache
def attribute_docstrings(module: str) -> dict[str, str]:
    """Return the texts below the assignments of a module, by name."""
    source = importlib.util.find_spec(module)
    assert source is not None
    assert source.origin is not None
    found = {}
    for parent in ast.walk(ast.parse(Path(source.origin).read_text())):
        if isinstance(parent, ast.Module | ast.If):
            for node, text in zip(parent.body, parent.body[1:], strict=False):
                target = node.targets[0] if isinstance(node, ast.Assign) else getattr(node, "target", None)
                if isinstance(target, ast.Name) and isinstance(text, ast.Expr) and isinstance(text.value, ast.Constant):
                    found[target.id] = inspect.cleandoc(str(text.value.value))
    return found


NAMES = {name: (value, text) for name, value, text in public_names()}
FUNCTIONS = {
    name: value
    for name, (value, _) in NAMES.items()
    if inspect.isfunction(value) and hasattr(import_module(name.rpartition(".")[0]), "__all__")
}


def modules_with_examples() -> Iterator[str]:
    """Every module of the core and of the shared libraries of analyses whose docstrings have an example."""
    for package in ("peekbench", "peekbench_stats"):
        walked = pkgutil.walk_packages(import_module(package).__path__, f"{package}.")
        for name in (package, *(module.name for module in walked)):
            source = importlib.util.find_spec(name)
            if source and source.origin and ">>>" in Path(source.origin).read_text(encoding="utf-8"):
                yield name


def needs_example(value: object) -> bool:
    """Return whether a name is more than a set of constants or a record, whose fields a sentence describes."""
    return not (get_origin(value) is Literal or is_dataclass(value) or hasattr(value, "_fields"))


def test_public_names_have_examples_that_run() -> None:
    without = [
        name
        for name, (value, text) in NAMES.items()
        if not text or "+SKIP" in text or (">>> " not in text and needs_example(value))
    ]
    assert not without
    assert len(NAMES) > 190


def test_public_functions_document_parameters_and_results() -> None:
    problems = []
    for name, function in FUNCTIONS.items():
        signature, text = inspect.signature(function), str(function.__doc__)
        documented = re.findall(r"^    \**(\w[\w, ]*)$", text, flags=re.MULTILINE)
        missing = set(signature.parameters) - {name for line in documented for name in line.split(", ")}
        if missing or (signature.parameters and "Parameters\n" not in text):
            problems.append(f"{name}: parameters {missing}")
        if signature.return_annotation not in ("None", None) and not re.search("Returns\n|Yields\n", text):
            problems.append(f"{name}: result")
    assert not problems


@pytest.mark.slow
@pytest.mark.parametrize("name", list(modules_with_examples()))
def test_examples_run(name: str, supposed_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(supposed_folder)
    monkeypatch.setattr(measuring, "DESIGN", {**measuring.DESIGN, "num_subsamples": 2})
    module = import_module(name)
    failed, attempted = doctest.testmod(module)
    runner = doctest.DocTestRunner()
    for attribute, text in attribute_docstrings(name).items():
        runner.run(doctest.DocTestParser().get_doctest(text, dict(vars(module)), f"{name}.{attribute}", name, 0))
    assert attempted + runner.tries
    assert failed + runner.failures == 0
