"""One page for each public module, with all names that it exports."""

from __future__ import annotations

import inspect
from importlib import import_module
from types import ModuleType
from typing import Any

from website.reference.hooks import HOOKS, entry_types
from website.reference.markdown import GENERATED, code, page, plain, table
from website.staging import ROOT

MODULES = ("peekbench", "peekbench.api", "peekbench.plugins", "peekbench.records",
           "peekbench.results", "peekbench_logs", "peekbench.data", "peekbench.report",
           "peekbench_testing", "peekbench.formatting", "peekbench.cache", "peekbench.errors")  # fmt: skip
"""Public modules. A name that several of them export is described on the page of the first one."""


class MissingModuleError(Exception):
    """A public package that has no page."""


def public_names(module: str) -> list[str]:
    """Return the names that a public module exports, without modules.

    Examples
    --------
    >>> "measure" in public_names("peekbench")
    True
    """
    imported = import_module(module)
    names = getattr(imported, "__all__", None)
    if names is None:
        names = [name for name, value in vars(imported).items() if _is_own(value, name, module)]
    return sorted(name for name in names if not isinstance(getattr(imported, name), ModuleType))


def _is_own(value: Any, name: str, module: str) -> bool:
    return not name.startswith("_") and getattr(value, "__module__", None) == module


def write_api() -> dict[str, str]:
    """Return a page for each public module.

    Raises
    ------
    MissingModuleError
        If a package with public names has no page.
    """
    packages = {
        ".".join(path.parent.relative_to(ROOT / "harness").parts)
        for path in ROOT.glob("harness/peekbench/**/__init__.pyi")
    }
    if packages - set(MODULES):
        raise MissingModuleError(
            f"website/reference/api.py: MODULES lacks {', '.join(sorted(packages - set(MODULES)))}"
        )
    homes = {(entry.__name__, id(entry)): (f"../{HOOKS}", "peekbench.plugins") for entry in entry_types()}
    return {f"python/{module}.md": _page(module, homes) for module in MODULES}


def _page(module: str, homes: dict[tuple[str, int], tuple[str, str]]) -> str:
    imported = import_module(module)
    rows, sections = [], []
    for name in public_names(module):
        value = getattr(imported, name)
        path, home = homes.setdefault((name, id(value)), (f"{module}.md", module))
        rows.append((f"[{code(name)}]({path}#{home}.{name})", plain(_summary(value))))
        if path == f"{module}.md":
            sections.append(f"::: {module}.{name}")
    options = "members: false\n      show_root_heading: false\n      show_root_toc_entry: false"
    description = f"::: {module}\n    options:\n      {options}"
    return page(module, description, GENERATED, table(["name", "what it is"], rows), *sections)


def _summary(value: Any) -> str:
    """Return the first sentence of the documentation of a function or class."""
    if not (inspect.isfunction(value) or inspect.isclass(value)):
        return ""
    return " ".join((inspect.getdoc(value) or "").partition("\n\n")[0].split())
