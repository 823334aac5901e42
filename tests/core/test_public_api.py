"""Public names: each has documentation in numpydoc sections and examples that run."""

from __future__ import annotations

import doctest
import inspect
import pkgutil
from collections.abc import Iterator
from importlib import import_module
from types import ModuleType
from typing import Any

import pytest

NAMESPACES = ("peekbench", "peekbench.data", "peekbench.figures", "peekbench.formatting", "peekbench.plugins",
              "peekbench.records", "peekbench.report", "peekbench.results", "peekbench.testing")  # fmt: skip


def public_objects() -> Iterator[tuple[str, Any]]:
    """Every function and class that a public namespace exports, with its qualified name."""
    for namespace in NAMESPACES:
        module = import_module(namespace)
        for name in getattr(module, "__all__", ()):
            value = getattr(module, name)
            if value is not Any and (inspect.isfunction(value) or inspect.isclass(value)):
                yield f"{namespace}.{name}", value


OBJECTS = dict(public_objects())
MODULES = [
    module.name
    for package in ("peekbench", "peekbench_hub", "peekbench_lm", "peekbench_stats")
    for module in pkgutil.walk_packages(import_module(package).__path__, f"{package}.")
    if not module.name.endswith("__main__")
]


def test_top_level_names_are_few() -> None:
    module: ModuleType = import_module("peekbench")
    assert len(module.__all__) <= 30


@pytest.mark.parametrize("name", OBJECTS)
def test_public_name_has_an_example(name: str) -> None:
    assert ">>>" in (OBJECTS[name].__doc__ or "")


@pytest.mark.parametrize("name", [name for name, value in OBJECTS.items() if inspect.isfunction(value)])
def test_public_function_documents_parameters_and_result(name: str) -> None:
    function = OBJECTS[name]
    signature = inspect.signature(function)
    if signature.parameters:
        assert "Parameters\n" in function.__doc__
        missing = [parameter for parameter in signature.parameters if f"{parameter}" not in function.__doc__]
        assert not missing
    if signature.return_annotation not in ("None", None):
        assert "Returns\n" in function.__doc__ or "Yields\n" in function.__doc__


@pytest.mark.parametrize("name", MODULES)
def test_examples_run(name: str) -> None:
    module = import_module(name)
    failed, _ = doctest.testmod(module, optionflags=doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS)
    assert failed == 0
