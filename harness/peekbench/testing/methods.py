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

from peekbench.errors import ContractError
from peekbench.plugins import registry
from peekbench.plugins.entries import MethodEntry
from peekbench.plugins.protocols import Options
from peekbench.records.data import Dataset, FloatArray, Inputs
from peekbench.spec.components import MethodSpec, make_component
from peekbench.testing.case import Case, in_both_arms, make_case
from peekbench.testing.generators import check_random_state

HEAVY = (
    "datasets", "gensim", "matplotlib", "pandas", "peft", "pymc", "ray", "scipy", "sklearn", "torch", "transformers",
)  # fmt: skip
# Batches of other sizes make other BLAS kernels do the work, which round differently; adapting to a batch shows by far.
TOLERANCE = 1e-4


@dataclass(frozen=True, slots=True)
class CheckOutcome:
    """How one check ended."""

    name: str
    passed: bool
    message: str = ""
    """What is wrong; empty where it passed."""


def check_method(
    use: str, options: Mapping[str, Any] | None = None, *, dataset: Dataset | None = None
) -> list[CheckOutcome]:
    """Put a method through every check.

    Parameters
    ----------
    use
        Its name in specs, `plugin.method`.
    options
        As in a spec.
    dataset
        At least 120 rows to try it on; by default invented ones. A method that looks its task's data up again
        (`load_dataset(task.source)`) finds these rows.

    Raises
    ------
    PluginError, SpecError
        Where there is no such method, or the options do not fit.
    DataError
        Where the data set has too few rows, or is malformed.
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
    except Exception as error:  # a plugin's own fault is a finding, and the other checks go on
        return CheckOutcome(name, False, f"it raised {type(error).__name__}: {error}")
    return CheckOutcome(name, True)


def _same(one: FloatArray, other: FloatArray, tolerance: float = 0.0) -> bool:
    """Whether they differ by no more than that share of the largest number, or of 1, as probabilities have it."""
    import numpy as np

    scale = max(1.0, float(np.abs(one[np.isfinite(one)]).max(initial=0)))
    return one.shape == other.shape and np.allclose(one, other, rtol=0, atol=tolerance * scale, equal_nan=True)


def check_base_arm(case: Case) -> None:
    """It works without unlabeled inputs."""
    case.predict(None)


def check_extra_arm(case: Case) -> None:
    """It works with unlabeled inputs."""
    case.predict(case.unlabeled)


@in_both_arms
def check_same_seed(case: Case, unlabeled: Inputs | None) -> None:
    """The same seed gives the same numbers, to the last bit."""
    if not _same(case.predict(unlabeled), case.predict(unlabeled)):
        raise ContractError(
            "two fits with one seed give different predictions; draw all random numbers from context.seed"
        )


@in_both_arms
def check_refit(case: Case, unlabeled: Inputs | None) -> None:
    """A fit leaves nothing behind for the next one."""
    first = case.predict(unlabeled)
    case.predict(case.other, seed=2)
    case.predict(None, seed=3)
    if not _same(first, case.predict(unlabeled)):
        raise ContractError(
            "a fit gives other predictions after another fit; keep no state between fits, in the module or in a model"
        )


@in_both_arms
def check_earlier_predictor(case: Case, unlabeled: Inputs | None) -> None:
    """A later fit leaves an earlier predictor alone."""
    import numpy as np

    predictor = case.fit(unlabeled)
    before = np.array(predictor.predict(case.test), dtype=np.float64)
    case.fit(case.other, seed=2)
    if not _same(before, np.array(predictor.predict(case.test), dtype=np.float64)):
        raise ContractError("a predictor changes when the method is fitted again; give each fit a model of its own")


@in_both_arms
def check_subset_invariance(case: Case, unlabeled: Inputs | None) -> None:
    """What is predicted for an input does not depend on which others are predicted with it."""
    import numpy as np

    predictor = case.fit(unlabeled)
    together = np.array(predictor.predict(case.test), dtype=np.float64)
    half = len(case.test) // 2
    apart = np.concatenate([predictor.predict(part) for part in (case.test[:half], case.test[half:])])
    single = np.array(predictor.predict(case.test[:1]), dtype=np.float64)
    if not (_same(together, apart, TOLERANCE) and _same(together[:1], single, TOLERANCE)):
        raise ContractError(
            "predictions change with the texts that are predicted together, so predict adapts to its batch; "
            "adapt to `unlabeled` in the fit, and predict each input by itself"
        )


@in_both_arms
def check_order_invariance(case: Case, unlabeled: Inputs | None) -> None:
    """What is predicted for an input does not depend on its place."""
    import numpy as np

    predictor = case.fit(unlabeled)
    forwards = np.array(predictor.predict(case.test), dtype=np.float64)
    backwards = np.array(predictor.predict(case.test[::-1]), dtype=np.float64)[::-1]
    if not _same(forwards, backwards, TOLERANCE):
        raise ContractError("predictions change with the order of the texts; predict each input by itself")


@in_both_arms
def check_inputs_untouched(case: Case, unlabeled: Inputs | None) -> None:
    """What it is given stays as it was, even where nothing keeps it from changing it."""
    import numpy as np

    given = copy.deepcopy(case)
    given.train.labels.flags.writeable = True
    given.predict(None if unlabeled is None else given.unlabeled)
    for before, after in (
        (case.train.inputs, given.train.inputs),
        (case.train.labels, given.train.labels),
        (case.unlabeled, given.unlabeled),
        (case.test, given.test),
    ):
        if not np.array_equal(np.array(before), np.array(after)):
            raise ContractError("it changes the inputs or labels that it is given; work on copies")


def check_unlabeled_options(case: Case) -> None:
    """Options declared to have no effect without unlabeled inputs have none."""
    names = sorted(case.entry.unlabeled_options)
    unknown = [name for name in names if name not in type(case.options).model_fields]
    if unknown:
        raise ContractError(f"unlabeled_options names {unknown[0]!r}, which is no option; correct the name")
    before = case.predict(None)
    for name in names:
        varied = _vary(case.options, name)
        if varied is not None and not _same(before, case.predict(None, options=varied)):
            raise ContractError(
                f"option {name!r} changes the base arm, though unlabeled_options says that it does not; remove it there"
            )


def _vary(options: Options, name: str) -> Options | None:
    """The same options with one other value, or None where none was found that fits, as for free text."""
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
    """What an annotation such as `Literal["a", "b"] | None` enumerates."""
    if get_origin(annotation) is Literal:
        return list(get_args(annotation))
    return [choice for part in get_args(annotation) for choice in _choices(part)]


def check_shared_base(case: Case) -> None:
    """Methods of the plugin that name the same base predict the same in the base arm."""
    plugin, own = registry.split_use(case.use)
    before = case.predict(None)
    shared = _base_options(case.entry, case.options)
    for name, entry in registry.load(plugin).entries(MethodEntry).items():
        if name == own or (entry.base or name) != (case.entry.base or own):
            continue
        try:
            options = entry.options.model_validate(shared)
        except ValueError:
            continue  # it has other options, so that nothing is shared
        if _base_options(entry, options) != shared:
            continue
        if not _same(before, replace(case, entry=entry).predict(None, options=options)):
            raise ContractError(
                f"{plugin}.{name} names the same base but predicts otherwise; give it a base of its own"
            )


def _base_options(entry: MethodEntry, options: Options) -> dict[str, Any]:
    """Options that matter where there are no unlabeled inputs."""
    return {name: value for name, value in options.model_dump().items() if name not in entry.unlabeled_options}


def check_light_import(case: Case) -> None:
    """Importing its plugin imports no heavy library."""
    plugin, _ = registry.split_use(case.use)
    check_module_light(registry.load(plugin).module.partition(":")[0])  # an entry point may name an object in it


METHOD_CHECKS: Mapping[str, Callable[[Case], None]] = {
    "fits and predicts without unlabeled inputs": check_base_arm,
    "fits and predicts with unlabeled inputs": check_extra_arm,
    "same seed, same numbers": check_same_seed,
    "a fit leaves nothing for the next one": check_refit,
    "a later fit leaves earlier predictors alone": check_earlier_predictor,
    "predictions do not depend on what else is predicted": check_subset_invariance,
    "predictions do not depend on the order": check_order_invariance,
    "global random state neither used nor changed": check_random_state,
    "inputs and labels left as they were": check_inputs_untouched,
    "unlabeled_options have no effect on the base arm": check_unlabeled_options,
    "methods that share a base agree on it": check_shared_base,
    "importing the plugin is light": check_light_import,
}


def check_module_light(module: str) -> None:
    """Importing a module brings in none of the libraries in `HEAVY`."""
    code = f"import sys, {module}; print(*sorted({set(HEAVY)!r} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)  # noqa: S603
    if done.returncode:
        raise ContractError(f"{module} cannot be imported by itself: {done.stderr.strip().splitlines()[-1]}")
    if done.stdout.strip():
        raise ContractError(
            f"importing {module} imports {', '.join(done.stdout.split())}; do that in the functions that use them"
        )
