"""The page of the records that plugins and notebooks receive or return, with all their fields."""

from __future__ import annotations

import ast
import dataclasses
import inspect
import itertools
import textwrap
from importlib import import_module
from typing import Any

from website.reference.api import MODULES, public_names
from website.reference.hooks import entry_types
from website.reference.markdown import GENERATED, code, page, plain, table
from website.reference.options import UndocumentedError


def public_records() -> dict[str, type[Any]]:
    """Return the dataclasses and named tuples that public modules export, by full name; entries have their own page.

    Examples
    --------
    >>> public_records()["peekbench.Verdict"].__name__
    'Verdict'
    """
    found: dict[type[Any], str] = {}
    for module in MODULES:
        for name in public_names(module):
            value = getattr(import_module(module), name)
            is_record = dataclasses.is_dataclass(value) or hasattr(value, "_field_defaults")
            if isinstance(value, type) and is_record and value not in entry_types():
                found.setdefault(value, f"{module}.{name}")
    return dict(sorted(((name, record) for record, name in found.items()), key=lambda item: item[0].split(".")[-1]))


def write_records() -> dict[str, str]:
    """Return the page of the fields of all public records.

    Raises
    ------
    UndocumentedError
        If a field has no docstring.
    """
    sections = [part for name, record in public_records().items() for part in _section(name, record)]
    return {
        "records.md": page(
            "Fields of records",
            "Functions of plugins and of the Python API receive and return records, such as a `Verdict` or a `Table`. "
            "Records cannot be changed; `dataclasses.replace` makes a changed copy of a dataclass. [Hooks](hooks.md) "
            "has the fields of the entries that plugins register.",
            GENERATED,
            *sections,
        )
    }


def _section(name: str, record: type[Any]) -> tuple[str, str, str]:
    module, _, short = name.rpartition(".")
    summary = " ".join((inspect.getdoc(record) or "").partition("\n\n")[0].split())
    home = f"[{code(name)}](python/{module}.md#{name})"
    rows = [_row(name, record, *field) for field in _fields(record)]
    return f"## {short}", f"{home}: {plain(summary)}", table(["field", "type", "default", "meaning"], rows)


def _fields(record: type[Any]) -> list[tuple[str, str]]:
    """Return the names of the public fields of a record, with their defaults as code."""
    if not dataclasses.is_dataclass(record):
        defaults = record._field_defaults
        return [(name, repr(defaults[name]) if name in defaults else "") for name in record._fields]
    return [(field.name, _default(field)) for field in dataclasses.fields(record) if not field.name.startswith("_")]


def _default(field: dataclasses.Field[Any]) -> str:
    if field.default_factory is not dataclasses.MISSING:
        return f"{getattr(field.default_factory, '__name__', '')}()"
    return "" if field.default is dataclasses.MISSING else repr(field.default)


def _row(name: str, record: type[Any], field: str, default: str) -> tuple[str, str, str, str]:
    meaning = field_docs(record).get(field, "")
    if not meaning:
        raise UndocumentedError(f"{name}: the field {field} has no docstring")
    annotations = {
        key: value for cls in reversed(record.__mro__) for key, value in inspect.get_annotations(cls).items()
    }
    annotation = annotations[field]
    kind = annotation if isinstance(annotation, str) else getattr(annotation, "__forward_arg__", str(annotation))
    return code(field), code(kind), code(default) if default else "required", plain(" ".join(meaning.split()))


def field_docs(record: type) -> dict[str, str]:
    """Return the docstrings of the fields of a record, by field.

    Examples
    --------
    >>> from peekbench.records import Trial
    >>> "method" in field_docs(Trial)
    True
    """
    docs: dict[str, str] = {}
    for cls in reversed(record.__mro__):
        try:
            (definition,) = ast.parse(textwrap.dedent(inspect.getsource(cls))).body
        except (OSError, TypeError, SyntaxError):  # the class has no source code of its own
            continue
        assert isinstance(definition, ast.ClassDef)
        for field, following in itertools.pairwise(definition.body):
            match field, following:
                case ast.AnnAssign(target=ast.Name(id=name)), ast.Expr(value=ast.Constant(value=str(text))):
                    docs[name] = inspect.cleandoc(text)
    return docs
