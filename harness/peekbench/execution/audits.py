"""Asks a spec's audits about its tasks' data; nothing is run, and no number of a run depends on it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from peekbench.data.loading import load_dataset
from peekbench.data.sampling import derive_seed
from peekbench.errors import ContractError, PeekbenchError, SpecError
from peekbench.execution.determinism import own_generators
from peekbench.execution.worker import available_threads
from peekbench.records.analysis import Analysis
from peekbench.records.data import Dataset
from peekbench.records.trials import Context

if TYPE_CHECKING:
    from peekbench.spec.components import AuditSpec
    from peekbench.spec.experiment import ExperimentSpec


def audit(spec: ExperimentSpec) -> tuple[Analysis, ...]:
    """Examine the data of all tasks of a spec, with one analysis for each of its audits.

    Raises
    ------
    SpecError
        Where the spec names no audits.
    DataError
        Where data cannot be had, or an audit has no use for them.
    """
    if not spec.audits:
        raise SpecError(
            "the spec has no audits; add some, for example `audits: [...]` with names from `peekbench list audits`"
        )
    tasks = {task.name: load_dataset(spec.source(task)) for task in spec.tasks}
    return tuple(_ask(spec, one, tasks) for one in spec.audits)


def prepare(spec: ExperimentSpec) -> dict[str, Mapping[str, Any]]:
    """Get what the audits need, such as models, and say by audit what a reader should know of it.

    Raises
    ------
    DataError
        Where it cannot be had.
    """
    return {
        one.name: one.entry.prefetch(options=spec.audit_options(one), folders=spec.folders())
        for one in spec.audits
        if one.entry.prefetch is not None
    }


def _ask(spec: ExperimentSpec, one: AuditSpec, tasks: Mapping[str, Dataset]) -> Analysis:
    """Its seed depends on the spec's alone, so that an audit that is renamed or moved says the same."""
    context = Context(derive_seed(spec.seed, "audit"), available_threads(), spec.folders())
    try:
        with own_generators():
            found = one.entry.audit(tasks, options=spec.audit_options(one), context=context)
    except PeekbenchError:
        raise
    except Exception as error:
        error.add_note(f"raised by the audit {one.use} with options {one.raw_options()}")
        raise
    if not isinstance(found, Analysis):
        raise ContractError(f"the audit {one.use} returned a {type(found).__name__}; return peekbench.Analysis")
    return found
