"""Contract checks for methods."""

from __future__ import annotations

import copy
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Literal, get_args, get_origin

import numpy as np

from peekbench.errors import ContractError
from peekbench.plugins import registry
from peekbench.plugins.entries import MethodEntry
from peekbench.plugins.protocols import Options
from peekbench.records.data import Dataset, FloatArray, Inputs
from peekbench.spec.components import MethodSpec, make_component
from peekbench.testing.case import Case, in_both_arms, make_case
from peekbench.testing.random_state import check_random_state

HEAVY_LIBRARIES = (
    "arviz", "arviz_stats", "bambi", "bitsandbytes", "datasets", "datasketch", "gensim", "huggingface_hub", "jinja2",
    "matplotlib", "nutpie", "pandas", "peft", "pyarrow", "pymc", "ray", "scipy", "sklearn", "torch", "transformers",
)  # fmt: skip
"""Libraries that take long to import; importing a plugin must import none of them."""
# BLAS uses other kernels for other batch sizes, which round differently. Adapting to a batch makes larger differences.
TOLERANCE = 1e-4


@dataclass(frozen=True, slots=True)
class CheckOutcome:
    """Outcome of one check.

    Examples
    --------
    >>> CheckOutcome("same seed, same predictions", passed=True).message
    ''
    """

    name: str
    """Name of the check, a key of `METHOD_CHECKS`."""
    passed: bool
    """Whether the check passed."""
    message: str = ""
    """Problem and remedy; empty if the check passed."""


def check_method(
    use: str, options: Mapping[str, Any] | None = None, *, dataset: Dataset | None = None
) -> list[CheckOutcome]:
    """Do all contract checks of a method.

    Parameters
    ----------
    use
        Name of the method in specs, `plugin.method`.
    options
        Options as in a spec.
    dataset
        At least 120 rows to check the method on; by default synthetic ones. If the method loads the data of its task
        again (`load_dataset(task.source)`), it gets these rows.

    Returns
    -------
    list of CheckOutcome
        Outcomes in the order of `METHOD_CHECKS`.

    Raises
    ------
    PluginError, SpecError
        If there is no such method, or the options are invalid.
    DataError
        If the dataset has too few rows, or is malformed.

    Examples
    --------
    >>> outcomes = check_method("controls.null")  # doctest: +SKIP
    >>> all(outcome.passed for outcome in outcomes)  # doctest: +SKIP
    True
    """
    spec = make_component(MethodSpec, use, options)
    with TemporaryDirectory() as folder:
        case = make_case(spec.use, spec.entry, spec.options, Path(folder), dataset)
        return [_outcome(name, check, case) for name, check in METHOD_CHECKS.items()]


def _outcome(name: str, check: Callable[[Any], None], case: Any) -> CheckOutcome:
    try:
        check(case)
    except ContractError as error:
        return CheckOutcome(name, False, str(error))
    except Exception as error:  # an error of the plugin is a failed check, and the other checks go on
        return CheckOutcome(name, False, f"it raised {type(error).__name__}: {error}")
    return CheckOutcome(name, True)


def _equal(first: FloatArray, second: FloatArray, tolerance: float = 0.0) -> bool:
    """Return whether two arrays differ by at most `tolerance` times their largest number, or times 1."""
    scale = max(1.0, float(np.abs(first[np.isfinite(first)]).max(initial=0)))
    return first.shape == second.shape and np.allclose(first, second, rtol=0, atol=tolerance * scale, equal_nan=True)


def check_base_arm(case: Case) -> None:
    """Check that a method works without unlabeled inputs."""
    case.predict(None)


def check_extra_arm(case: Case) -> None:
    """Check that a method works with unlabeled inputs."""
    case.predict(case.unlabeled)


@in_both_arms
def check_same_seed(case: Case, unlabeled: Inputs | None) -> None:
    """Check that the same seed gives the same predictions, to the last bit."""
    if not _equal(case.predict(unlabeled), case.predict(unlabeled)):
        raise ContractError(
            "two fits with the same seed give different predictions; draw all random numbers from context.seed"
        )


@in_both_arms
def check_refit(case: Case, unlabeled: Inputs | None) -> None:
    """Check that a fit does not depend on earlier fits."""
    first = case.predict(unlabeled)
    case.predict(case.other, seed=2)
    case.predict(None, seed=3)
    if not _equal(first, case.predict(unlabeled)):
        raise ContractError(
            "a fit gives other predictions after another fit; keep no state between fits, in the module or in a model"
        )


@in_both_arms
def check_earlier_predictor(case: Case, unlabeled: Inputs | None) -> None:
    """Check that a later fit does not change an earlier predictor."""
    predictor = case.fit(unlabeled)
    before = np.array(predictor.predict(case.test), dtype=np.float64)
    case.fit(case.other, seed=2)
    if not _equal(before, np.array(predictor.predict(case.test), dtype=np.float64)):
        raise ContractError("a predictor changes when the method is fitted again; give each fit its own model")


@in_both_arms
def check_subset_invariance(case: Case, unlabeled: Inputs | None) -> None:
    """Check that the prediction for an input does not depend on the inputs predicted with it."""
    predictor = case.fit(unlabeled)
    together = np.array(predictor.predict(case.test), dtype=np.float64)
    half = len(case.test) // 2
    halves = np.concatenate([predictor.predict(part) for part in (case.test[:half], case.test[half:])])
    single = np.array(predictor.predict(case.test[:1]), dtype=np.float64)
    if not (_equal(together, halves, TOLERANCE) and _equal(together[:1], single, TOLERANCE)):
        raise ContractError(
            "predictions depend on the inputs that are predicted together, so predict adapts to its batch; "
            "adapt to `unlabeled` in the fit, and predict each input independently"
        )


@in_both_arms
def check_order_invariance(case: Case, unlabeled: Inputs | None) -> None:
    """Check that the prediction for an input does not depend on its position."""
    predictor = case.fit(unlabeled)
    forwards = np.array(predictor.predict(case.test), dtype=np.float64)
    backwards = np.array(predictor.predict(case.test[::-1]), dtype=np.float64)[::-1]
    if not _equal(forwards, backwards, TOLERANCE):
        raise ContractError("predictions depend on the order of the inputs; predict each input independently")


@in_both_arms
def check_inputs_untouched(case: Case, unlabeled: Inputs | None) -> None:
    """Check that a method does not change its inputs and labels, even if they are writable."""
    writable = copy.deepcopy(case)
    writable.train.labels.flags.writeable = True
    writable.predict(None if unlabeled is None else writable.unlabeled)
    for before, after in (
        (case.train.inputs, writable.train.inputs),
        (case.train.labels, writable.train.labels),
        (case.unlabeled, writable.unlabeled),
        (case.test, writable.test),
    ):
        if not np.array_equal(np.array(before), np.array(after)):
            raise ContractError("it changes its inputs or labels; work on copies")


def check_unlabeled_options(case: Case) -> None:
    """Check that `unlabeled_options` have no effect without unlabeled inputs."""
    names = sorted(case.entry.unlabeled_options)
    unknown = [name for name in names if name not in type(case.options).model_fields]
    if unknown:
        raise ContractError(f"unlabeled_options names {unknown[0]!r}, which is not an option; correct the name")
    before = case.predict(None)
    for name in names:
        varied = _vary(case.options, name)
        if varied is not None and not _equal(before, case.predict(None, options=varied)):
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
    plugin, own = registry.split_name(case.use)
    before = case.predict(None)
    base_options = _base_options(case.entry, case.options)
    for name, entry in registry.load(plugin).entries(MethodEntry).items():
        if name == own or (entry.base or name) != (case.entry.base or own):
            continue
        try:
            options = entry.options.model_validate(base_options)
        except ValueError:
            continue  # it has other options, so it shares no base
        if _base_options(entry, options) != base_options:
            continue
        if not _equal(before, replace(case, entry=entry).predict(None, options=options)):
            raise ContractError(f"{plugin}.{name} names the same base but has other predictions; give it another base")


def _base_options(entry: MethodEntry, options: Options) -> dict[str, Any]:
    """Return the options with an effect on the base arm."""
    return {name: value for name, value in options.model_dump().items() if name not in entry.unlabeled_options}


def check_light_import(case: Case) -> None:
    """Check that importing the plugin imports no heavy library."""
    plugin, _ = registry.split_name(case.use)
    check_module_light(
        registry.load(plugin).module.partition(":")[0]
    )  # an entry point may name an object of the module


METHOD_CHECKS: Mapping[str, Callable[[Case], None]] = {
    "fits and predicts without unlabeled inputs": check_base_arm,
    "fits and predicts with unlabeled inputs": check_extra_arm,
    "same seed, same predictions": check_same_seed,
    "fits are independent of earlier fits": check_refit,
    "predictors are independent of later fits": check_earlier_predictor,
    "predictions are independent of other inputs": check_subset_invariance,
    "predictions are independent of the order": check_order_invariance,
    "global random state is unused and unchanged": check_random_state,
    "inputs and labels are unchanged": check_inputs_untouched,
    "unlabeled_options have no effect on the base arm": check_unlabeled_options,
    "methods with the same base agree": check_shared_base,
    "importing the plugin is fast": check_light_import,
}


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
