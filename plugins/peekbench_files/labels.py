"""Convert the values of a label column to classes."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from reprlib import repr as short_repr

from peekbench import DataError

INTEGER = re.compile(r"-?[0-9]{1,18}")


def label_key(value: object) -> str | None:
    """Return a label as a string, the same for 1 in Parquet, '1' in CSV and 1 in YAML; None if it cannot be a label."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str):
        return value
    if isinstance(value, int) or (isinstance(value, float) and value.is_integer()):
        return str(int(value))
    return None


def assign_classes(
    keys: Sequence[str], locations: Sequence[str], class_names: Sequence[str] | Mapping[str, str] | None
) -> tuple[tuple[str, ...], list[int]]:
    """Return the class names, and the class of each row as a position among them.

    Parameters
    ----------
    keys
        Label of each row, as `label_key` returns it.
    locations
        File and position of each row, for error messages.
    class_names
        See `FileOptions.class_names`.

    Raises
    ------
    DataError
        If a label has no class.
    """
    labels = set(keys)
    if class_names is None:
        is_numeric = all(map(INTEGER.fullmatch, labels))
        class_names = sorted(labels, key=lambda key: (int(key) if is_numeric else 0, key))
    if isinstance(class_names, Mapping):
        name_of = class_names
    elif all(map(INTEGER.fullmatch, labels)) and not labels.issubset(class_names):
        name_of = {str(position): name for position, name in enumerate(class_names)}
    else:
        name_of = {name: name for name in class_names}
    for key, location in zip(keys, locations, strict=True):
        if key not in name_of:
            raise DataError(
                f"{location}: the label {short_repr(key)} has no class; class_names contains "
                f"{short_repr(list(name_of))}. Add the label to class_names, or remove the row from the file"
            )
    names = tuple(dict.fromkeys(name_of.values()))
    positions = {name: position for position, name in enumerate(names)}
    return names, [positions[name_of[key]] for key in keys]
