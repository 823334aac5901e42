"""Descriptions of options, read from the docstrings below the fields of their models when a schema is made.

Pydantic can read them when a class is defined, but it parses the source code of each class then, which takes a sixth of
the time of `peekbench validate`.
"""

from __future__ import annotations

import ast
import inspect
import textwrap
from typing import Any

from pydantic import BaseModel
from pydantic.json_schema import GenerateJsonSchema


class DescribedSchema(GenerateJsonSchema):
    """Generator of JSON schemas in which fields are described by their docstrings."""

    def model_schema(self, schema: Any) -> dict[str, Any]:
        """Return the schema of a model, with descriptions of its fields."""
        described: dict[str, Any] = super().model_schema(schema)
        docs = field_docs(schema["cls"])
        for name, field in described.get("properties", {}).items():
            if name in docs:
                field.setdefault("description", docs[name])
        return described


def field_docs(model: type) -> dict[str, str]:
    """Return the docstrings of the fields of a model or a record, by field.

    Parameters
    ----------
    model
        Class whose source code can be read; fields of a class without source code have no descriptions.

    Examples
    --------
    >>> from peekbench.spec.design import Design
    >>> field_docs(Design)["num_test"]
    'Number of test texts and of extra texts, one number or several.'
    """
    docs: dict[str, str] = {}
    for cls in reversed(model.__mro__):
        if cls is not BaseModel:
            docs |= _docs_of_class(cls)
    return docs


def _docs_of_class(cls: type) -> dict[str, str]:
    try:
        (definition,) = ast.parse(textwrap.dedent(inspect.getsource(cls))).body
    except (OSError, TypeError, ValueError, SyntaxError):  # the class has no source code of its own
        return {}
    assert isinstance(definition, ast.ClassDef)
    docs = {}
    for field, following in zip(definition.body, definition.body[1:], strict=False):
        match field, following:
            case (
                ast.AnnAssign(target=ast.Name(id=name)),
                ast.Expr(value=ast.Constant(value=str(text))),
            ):
                docs[name] = inspect.cleandoc(text)
    return docs
