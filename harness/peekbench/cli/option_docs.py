"""What users are told about the options of an entry: types, defaults and meanings, also of options within options."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, get_args

from pydantic_core import PydanticUndefined, to_jsonable_python

from peekbench.cli.option_types import describe_type
from peekbench.plugins.protocols import Options
from peekbench.plugins.validation import options_schema


@dataclass(frozen=True, slots=True)
class OptionDoc:
    """Description of one option."""

    name: str
    """Name in `options` of a spec."""
    type: str
    """Values that it can have, in words, with their limits."""
    default: str
    """Default as JSON; empty if the option is required or has options of its own."""
    is_required: bool
    """Whether a spec must give a value."""
    meaning: str
    """What the option does, in one line."""
    nested: tuple[OptionDoc, ...]
    """Options within this option, with the defaults that they have here."""


def option_docs(model: type[Options], defaults: Options | None = None) -> Iterator[OptionDoc]:
    """Iterate over the descriptions of the options of a model.

    Parameters
    ----------
    model
        Model of the options of an entry.
    defaults
        Options whose values are the defaults, instead of those of the model.

    Examples
    --------
    >>> from pydantic import Field
    >>> class Lsa(Options):
    ...     num_components: int = Field(default=100, ge=1)
    >>> [(option.name, option.type, option.default) for option in option_docs(Lsa)]
    [('num_components', 'whole number (>= 1)', '100')]
    """
    if not model.model_fields:
        return
    schema = options_schema(model)
    for name, field in model.model_fields.items():
        default = field.get_default(call_default_factory=True) if defaults is None else getattr(defaults, name)
        nested = _nested_model(field.annotation)
        own = default if nested is not None and isinstance(default, nested) else None
        is_plain = default is not PydanticUndefined and not isinstance(default, Options)
        yield OptionDoc(
            name=name,
            type=describe_type(schema["properties"][name], schema.get("$defs", {})),
            default=json.dumps(to_jsonable_python(default), ensure_ascii=False) if is_plain else "",
            is_required=default is PydanticUndefined,
            meaning=" ".join(schema["properties"][name].get("description", "").split()),
            nested=() if nested is None else tuple(option_docs(nested, own)),
        )


def _nested_model(annotation: Any) -> type[Options] | None:
    """Return the model of the options within an option, if there is exactly one."""
    models = [
        kind for kind in (annotation, *get_args(annotation)) if isinstance(kind, type) and issubclass(kind, Options)
    ]
    return models[0] if len(models) == 1 else None
