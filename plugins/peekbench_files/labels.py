"""Turns what stands in a label column into classes."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from peekbench import DataError

WHOLE_NUMBER = re.compile(r"-?[0-9]{1,18}")


def label_key(value: object) -> str | None:
    """A label as text, the same for 1 in Parquet, '1' in CSV and 1 in YAML; None for what can be no label."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str):
        return value
    if isinstance(value, int) or (isinstance(value, float) and value.is_integer()):
        return str(int(value))
    return None


def assign_classes(
    keys: Sequence[str], places: Sequence[str], class_names: Sequence[str] | Mapping[str, str] | None
) -> tuple[tuple[str, ...], list[int]]:
    """Class names, and the position among them of each row's class.

    Parameters
    ----------
    keys
        Each row's label, as `label_key` gives it.
    places
        Where each row stands, for errors.
    class_names
        As in `FileOptions.class_names`.

    Raises
    ------
    DataError
        Where a label has no class.
    """
    distinct = set(keys)
    if class_names is None:
        numeric = all(map(WHOLE_NUMBER.fullmatch, distinct))
        class_names = sorted(distinct, key=lambda key: (int(key) if numeric else 0, key))
    if isinstance(class_names, Mapping):
        name_of = class_names
    elif all(map(WHOLE_NUMBER.fullmatch, distinct)) and not distinct.issubset(class_names):
        name_of = {str(position): name for position, name in enumerate(class_names)}
    else:
        name_of = {name: name for name in class_names}
    for key, place in zip(keys, places, strict=True):
        if key not in name_of:
            raise DataError(
                f"{place}: the label {key!r} has no class; class_names has {', '.join(map(repr, name_of))}. Add it "
                "there, or take the row out of the file"
            )
    names = tuple(dict.fromkeys(name_of.values()))
    positions = {key: names.index(name) for key, name in name_of.items()}
    return names, [positions[key] for key in keys]
