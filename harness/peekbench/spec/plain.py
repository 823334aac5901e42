"""Specs as plain data, from which another process, perhaps on another machine, makes the same spec."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from peekbench.errors import SpecError
from peekbench.plugins.protocols import Options
from peekbench.spec.base import FrozenDict
from peekbench.spec.error_messages import Written, describe
from peekbench.spec.experiment import ExperimentSpec, canonical, make_spec
from peekbench.spec.lockfile import PINNABLE


def spec_to_plain(spec: ExperimentSpec) -> dict[str, Any]:
    """Return a spec as JSON values, with its folder and with the versions of its lock file.

    Unlike a pickled spec, the result names no class of a plugin, so that `spec_from_plain` can tell what a machine
    lacks.

    Parameters
    ----------
    spec
        A spec as it was loaded; not one that is cut at a planned look, which is no valid spec by itself.

    Returns
    -------
    dict
        The argument of `spec_from_plain`.

    Raises
    ------
    SpecError
        If options of a method would be others after a round trip through JSON.

    Examples
    --------
    >>> import json, peekbench
    >>> spec = peekbench.ExperimentSpec(
    ...     name="small",
    ...     tasks=["docstrings.stdlib"],
    ...     methods=["classic.lsa"],
    ...     design={"num_train": 50, "num_test": 100, "num_subsamples": 20},
    ... )
    >>> spec_from_plain(json.loads(json.dumps(spec_to_plain(spec)))) == spec
    True
    """
    pinned: dict[str, dict[str, Any]] = {}
    for (group, name), options in spec.pinned.items():
        pinned.setdefault(group, {})[name] = options.model_dump(mode="json")
    for method in spec.methods:
        for task in ("", *method.by_task):
            _check_survives_json(spec.options(method, task), method.name)
    return {"spec": canonical(spec), "folder": str(spec.folder), "pinned": pinned}


def _check_survives_json(options: Options, method: str) -> None:
    """Refuse options that another process would not get as they are, such as secrets, which JSON masks."""
    rebuilt = type(options).model_validate(json.loads(json.dumps(options.model_dump(mode="json"))))
    for (name, value), (_, other) in zip(options, rebuilt, strict=True):
        is_nan = isinstance(value, float) and math.isnan(value)  # NaN is not equal to itself
        if value != other and not is_nan:
            raise SpecError(
                f"method {method}: options.{name} is another value after it was written as JSON, which is how other "
                "processes get it; give the option a type that JSON keeps, such as a string or a number"
            )


def spec_from_plain(plain: Mapping[str, Any]) -> ExperimentSpec:
    """Make the spec of which `spec_to_plain` returned the plain data.

    Parameters
    ----------
    plain
        The plain data, also after a round trip through JSON.

    Returns
    -------
    ExperimentSpec
        A spec that is equal to the original, with the same versions of data and models.

    Raises
    ------
    SpecError
        If a plugin of the spec is not installed here, or has other options.
    """
    spec = make_spec(plain["spec"], folder=Path(plain["folder"]))
    pinned = {}
    for group in PINNABLE:
        models = {component.name: type(component.options) for component in getattr(spec, group)}
        for name, options in plain["pinned"].get(group, {}).items():
            try:
                pinned[group, name] = models[name].model_validate(options)
            except ValidationError as error:
                written = Written(models[name], options, at=(group, name, "pinned"))
                raise SpecError(f"spec is invalid:\n{describe(error, written)}") from error
    return spec.model_copy(update={"pinned": FrozenDict(pinned)})
