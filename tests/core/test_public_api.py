"""Public names: each has documentation in numpydoc sections and examples that run."""

from __future__ import annotations

import doctest
import importlib.util
import inspect
import pkgutil
import re
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

NAMESPACES = ("peekbench", "peekbench.api", "peekbench.data", "peekbench.figures", "peekbench.formatting",
              "peekbench.plugins", "peekbench.records", "peekbench.report", "peekbench.results",
              "peekbench.testing")  # fmt: skip


def public_objects() -> Iterator[tuple[str, Any]]:
    """Every function and class that a public namespace exports, with its qualified name."""
    for namespace in NAMESPACES:
        module = import_module(namespace)
        for name in getattr(module, "__all__", ()):
            value = getattr(module, name)
            if value is not Any and (inspect.isfunction(value) or inspect.isclass(value)):
                yield f"{namespace}.{name}", value


OBJECTS = dict(public_objects())


def modules_with_examples() -> Iterator[str]:
    """Every module of the core and of the shared libraries of analyses and audits whose docstrings have an example."""
    for package in ("peekbench", "peekbench_exposure", "peekbench_stats"):
        for module in pkgutil.walk_packages(import_module(package).__path__, f"{package}."):
            source = importlib.util.find_spec(module.name)
            if source and source.origin and ">>>" in Path(source.origin).read_text(encoding="utf-8"):
                yield module.name


@pytest.mark.parametrize("name", OBJECTS)
def test_public_name_has_an_example(name: str) -> None:
    assert ">>>" in (OBJECTS[name].__doc__ or "")


@pytest.mark.parametrize("name", [name for name, value in OBJECTS.items() if inspect.isfunction(value)])
def test_public_function_documents_parameters_and_result(name: str) -> None:
    function = OBJECTS[name]
    signature = inspect.signature(function)
    if signature.parameters:
        assert "Parameters\n" in function.__doc__
        documented = re.findall(r"^    \**(\w[\w, ]*)$", function.__doc__, flags=re.MULTILINE)
        assert set(signature.parameters) <= {name for line in documented for name in line.split(", ")}
    if signature.return_annotation not in ("None", None):
        assert "Returns\n" in function.__doc__ or "Yields\n" in function.__doc__


@pytest.mark.slow
@pytest.mark.parametrize("name", list(modules_with_examples()))
def test_examples_run(name: str) -> None:
    failed, attempted = doctest.testmod(import_module(name))
    assert attempted
    assert failed == 0
