"""Contract checks of what an entry declares: options without effect on the base arm, a shared base, light imports."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from typing import Any, Literal, Protocol, get_args, get_origin

from peekbench.errors import ContractError
from peekbench.plugins import registry
from peekbench.plugins.entries import MethodEntry
from peekbench.plugins.entry_names import split_name
from peekbench.plugins.local_code import is_code
from peekbench.plugins.protocols import Options
from peekbench.testing.case import Case
from peekbench.testing.prediction_checks import are_equal, observe

HEAVY_LIBRARIES = (
    "arviz", "arviz_stats", "bambi", "bitsandbytes", "datasets", "gensim", "huggingface_hub", "jinja2",
    "matplotlib", "mlflow", "nutpie", "pandas", "peft", "pyarrow", "pymc", "ray", "scipy", "sklearn", "torch",
    "trackio", "transformers", "wandb",
)  # fmt: skip
"""Libraries that take long to import; importing a plugin must import none of them."""


class Named(Protocol):
    """Subject of checks: an entry and what it is checked on."""

    @property
    def use(self) -> str:
        """Name of the entry in specs."""
        ...


def check_unlabeled_options(case: Case) -> None:
    """Check that `unlabeled_options` have no effect without unlabeled inputs."""
    names = sorted(case.entry.unlabeled_options)
    unknown = [name for name in names if name not in type(case.options).model_fields]
    if unknown:
        raise ContractError(f"unlabeled_options names {unknown[0]!r}, which is not an option; correct the name")
    before = observe(case, None).predictions
    for name in names:
        varied = _vary(case.options, name)
        if varied is not None and not are_equal(before, case.predict(None, options=varied)):
            raise ContractError(
                f"option {name!r} changes the base arm, but unlabeled_options names it; remove it there"
            )


def _vary(options: Options, name: str) -> Options | None:
    """Return the options with another value of one option, or None if no other valid value is found."""
    value = getattr(options, name)
    choices = _choices(type(options).model_fields[name].annotation)
    numbers = (value + 1, value * 2, value / 2, value - 1) if isinstance(value, int | float) else (0, 1, 10, 100)
    for other in (*choices, *numbers, None):
        try:
            varied = type(options).model_validate({**options.model_dump(), name: other})
        except ValueError:
            continue
        if getattr(varied, name) != value:
            return varied
    return None


def _choices(annotation: Any) -> list[Any]:
    """Return the values that an annotation such as `Literal["a", "b"] | None` enumerates."""
    if get_origin(annotation) is Literal:
        return list(get_args(annotation))
    return [choice for part in get_args(annotation) for choice in _choices(part)]


def check_shared_base(case: Case) -> None:
    """Check that methods of a plugin with the same base have the same predictions in the base arm."""
    plugin, own = split_name(case.use)
    before = observe(case, None).predictions
    base_options = _base_options(case.entry, case.options)
    for name, entry in registry.load(plugin).entries(MethodEntry).items():
        if name == own or (entry.base or name) != (case.entry.base or own):
            continue
        if case.task.kind not in entry.task_kinds:
            continue
        try:
            options = entry.options.model_validate(base_options)
        except ValueError:
            continue  # it has other options, so it shares no base
        if _base_options(entry, options) != base_options:
            continue
        if not are_equal(before, replace(case, entry=entry).predict(None, options=options)):
            raise ContractError(f"{plugin}.{name} names the same base but has other predictions; give it another base")


def _base_options(entry: MethodEntry, options: Options) -> dict[str, Any]:
    """Return the options with an effect on the base arm."""
    return {name: value for name, value in options.model_dump().items() if name not in entry.unlabeled_options}


def check_light_import(subject: Named) -> None:
    """Check that importing the plugin imports no heavy library."""
    plugin, _ = split_name(subject.use)
    if is_code(plugin):  # it is imported only by specs that name it
        return
    check_module_light(registry.load(plugin).module.partition(":")[0])  # it may name an object of the module


def check_module_light(module: str) -> None:
    """Check that importing a module imports none of the libraries in `HEAVY_LIBRARIES`.

    Parameters
    ----------
    module
        Name of the module.

    Raises
    ------
    ContractError
        If it imports one, or cannot be imported.

    Examples
    --------
    >>> check_module_light("json")
    """
    # With the path of this process: `-c` alone would first search the working folder.
    code = (
        f"import sys; sys.path[:] = {sys.path!r}; import {module}; "
        f"print(*sorted({set(HEAVY_LIBRARIES)!r} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)  # noqa: S603
    if done.returncode:
        raise ContractError(f"{module} cannot be imported on its own: {done.stderr.strip().splitlines()[-1]}")
    if done.stdout.strip():
        raise ContractError(
            f"importing {module} imports {', '.join(done.stdout.split())}; "
            "move the code that needs them to another module and name it by reference, as in 'package.module:function'"
        )
