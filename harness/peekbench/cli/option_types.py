"""Types of options in words, for `peekbench show`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

LIMITS = {"minimum": ">=", "exclusiveMinimum": ">", "maximum": "<=", "exclusiveMaximum": "<"}
NAMES = {"string": "text", "integer": "whole number", "number": "number", "null": "null"}
PLURALS = {name: f"{name}s" for name in ("text", "whole number", "number", "path", "list", "mapping")}


def describe_type(schema: Mapping[str, Any], definitions: Mapping[str, Any]) -> str:
    """Return what an option can be, in words.

    Parameters
    ----------
    schema
        JSON Schema of the option.
    definitions
        Schemas to which it refers, the `$defs` of the schema of all options.

    Examples
    --------
    >>> describe_type({"anyOf": [{"type": "number", "minimum": 0}, {"const": "ledoit_wolf"}]}, {})
    'number (>= 0) or ledoit_wolf'
    >>> describe_type({"type": "array", "items": {"type": "integer", "minimum": 2}}, {})
    'list of whole numbers (>= 2)'
    """
    return _join(_alternatives(schema, definitions))


def _join(words: list[str]) -> str:
    return f"{', '.join(words[:-1])} or {words[-1]}" if len(words) > 1 else words[0]


def _alternatives(schema: Mapping[str, Any], definitions: Mapping[str, Any]) -> list[str]:
    """Return the values or types that an option can have."""
    if "$ref" in schema:
        return _alternatives(definitions[schema["$ref"].rpartition("/")[2]], definitions)
    if "anyOf" in schema:
        return [word for part in schema["anyOf"] for word in _alternatives(part, definitions)]
    if schema.get("type") == "boolean":
        return ["true", "false"]
    if "enum" in schema or "const" in schema:
        return [str(value) or '""' for value in schema.get("enum", [schema.get("const")])]
    return [_describe_one(schema, definitions)]


def _describe_one(schema: Mapping[str, Any], definitions: Mapping[str, Any]) -> str:
    kind = schema.get("type")
    if kind == "array":
        return f"list of {_describe_items(schema.get('items', {}), definitions)}"
    if kind == "object":
        if "properties" in schema:
            return "options"
        return f"mapping from names to {_describe_items(schema.get('additionalProperties', {}), definitions)}"
    name = "path" if schema.get("format") == "path" else NAMES.get(str(kind), "any value")
    limits = [f"{sign} {schema[key]}" for key, sign in LIMITS.items() if key in schema]
    return f"{name} ({', '.join(limits)})" if limits else name


def _describe_items(schema: Any, definitions: Mapping[str, Any]) -> str:
    """Return the type of the items of a list or mapping in the plural."""
    if not isinstance(schema, Mapping):
        return "values"
    words = _join(_alternatives(schema, definitions))
    singular = next((name for name in PLURALS if words == name or words.startswith(f"{name} ")), "")
    return PLURALS.get(singular, "") + words.removeprefix(singular)
