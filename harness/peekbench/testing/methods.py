"""All contract checks of methods."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from peekbench.data.loading import load_dataset
from peekbench.data.preflight import find_mismatch
from peekbench.errors import DataError
from peekbench.records.data import Dataset, Folders, SourceRef
from peekbench.spec.components import MethodSpec, make_component
from peekbench.testing.cache_view import view_cache
from peekbench.testing.case import Case, make_case
from peekbench.testing.declaration_checks import check_light_import, check_shared_base, check_unlabeled_options
from peekbench.testing.fit_checks import (
    check_base_arm,
    check_earlier_predictor,
    check_extra_arm,
    check_inputs_untouched,
    check_refit,
    check_same_seed,
)
from peekbench.testing.larger_task import check_larger_task
from peekbench.testing.outcomes import CheckOutcome, run_checks
from peekbench.testing.prediction_checks import (
    check_empty_text,
    check_large_batches,
    check_log_likelihoods,
    check_metrics_are_numbers,
    check_order_invariance,
    check_subset_invariance,
)
from peekbench.testing.preparation import prepare_entry
from peekbench.testing.process_checks import (
    check_cache_keys,
    check_hidden_labels,
    check_memory,
    check_network,
    check_process_independence,
    check_process_state,
)
from peekbench.testing.random_state import check_random_state

METHOD_CHECKS: Mapping[str, Callable[[Case], str | None]] = {
    "fits and predicts without unlabeled inputs": check_base_arm,
    "fits and predicts with unlabeled inputs": check_extra_arm,
    "metrics are finite numbers": check_metrics_are_numbers,
    "same seed, same predictions": check_same_seed,
    "fits are independent of earlier fits": check_refit,
    "predictors are independent of later fits": check_earlier_predictor,
    "predictions are independent of other inputs": check_subset_invariance,
    "predictions are independent of large batches": check_large_batches,
    "predictions are independent of the order": check_order_invariance,
    "predictions of a larger task are independent": check_larger_task,
    "predictions of an empty text are valid": check_empty_text,
    "log-likelihoods are independent of other texts": check_log_likelihoods,
    "global random state is unused and unchanged": check_random_state,
    "inputs and labels are unchanged": check_inputs_untouched,
    "unlabeled_options have no effect on the base arm": check_unlabeled_options,
    "methods with the same base agree": check_shared_base,
    "predictions are independent of the process": check_process_independence,
    "caches are independent of the seed": check_cache_keys,
    "labels outside the train set are unused": check_hidden_labels,
    "the state of the process is unchanged": check_process_state,
    "fits release their memory": check_memory,
    "fits need no network": check_network,
    "importing the plugin is fast": check_light_import,
}
"""Checks by their names, in the order in which they are done.

Examples
--------
>>> next(iter(METHOD_CHECKS))
'fits and predicts without unlabeled inputs'
"""


def check_method(
    use: str,
    options: Mapping[str, Any] | None = None,
    *,
    dataset: Dataset | None = None,
    source: SourceRef | None = None,
) -> list[CheckOutcome]:
    """Do all contract checks of a method.

    The method is prepared first, for example its model is downloaded to the cache. Files that the fits write to
    `context.folders.cache` are deleted after the checks.

    Parameters
    ----------
    use
        Name of the method in specs, `plugin.method`.
    options
        Options as in a spec. Relative paths start at the current folder.
    dataset
        At least 120 rows to check the method on; by default synthetic ones. If the method loads the data of its task
        again (`load_dataset(task.source)`), it gets these rows.
    source
        Data source to check the method on, instead of a dataset.

    Returns
    -------
    list of CheckOutcome
        Outcomes in the order of `METHOD_CHECKS`.

    Raises
    ------
    PluginError, SpecError
        If there is no such method, or the options are invalid.
    DataError
        If the dataset has too few rows, is malformed or unavailable, or the method cannot be prepared.

    Examples
    --------
    >>> next(iter(METHOD_CHECKS))
    'fits and predicts without unlabeled inputs'
    >>> outcomes = check_method("controls.null")
    >>> all(outcome.passed for outcome in outcomes)
    True
    """
    return list(iterate_method_checks(use, options, dataset=dataset, source=source))


def iterate_method_checks(
    use: str,
    options: Mapping[str, Any] | None = None,
    *,
    dataset: Dataset | None = None,
    source: SourceRef | None = None,
) -> Iterator[CheckOutcome]:
    """Do the checks of `check_method` one after the other.

    Parameters
    ----------
    use, options, dataset, source
        As for `check_method`.

    Yields
    ------
    CheckOutcome
        Outcomes in the order of `METHOD_CHECKS`.
    """
    spec = make_component(MethodSpec, use, options)
    folder = Path.cwd()
    if source is not None:
        if spec.entry.task_kinds == {"language_modeling"}:
            source = replace(source, kind="language_modeling")
        dataset = load_dataset(source)
    _check_kind(spec, dataset)
    prepare_entry(spec, folder)
    with view_cache() as cache:
        case = make_case(spec.use, spec.entry, spec.options, folder, dataset, source)
        yield from run_checks(METHOD_CHECKS, replace(case, folders=Folders(spec=folder, cache=cache)), num_required=2)


def _check_kind(spec: MethodSpec, dataset: Dataset | None) -> None:
    if dataset is not None and (mismatch := find_mismatch(spec.entry, dataset, "the task")):
        raise DataError(f"{spec.use} {mismatch}; choose another task")
