"""Runs a spec's audits, which examine the data of tasks. Audits run no trials and change no results."""

from __future__ import annotations

from collections.abc import Mapping

from peekbench.data.loading import load_dataset
from peekbench.errors import SpecError
from peekbench.execution.determinism import preserve_global_generators
from peekbench.execution.work import available_threads
from peekbench.plugins.boundary import Foreign
from peekbench.records.data import Dataset
from peekbench.records.report import Analysis
from peekbench.records.trials import Context
from peekbench.seeds import seed_of_audits
from peekbench.spec.components import AuditSpec
from peekbench.spec.experiment import ExperimentSpec


def run_audits(spec: ExperimentSpec) -> tuple[Analysis, ...]:
    """Examine the data of all tasks of a spec.

    Returns
    -------
    tuple of Analysis
        One for each audit of the spec.

    Raises
    ------
    SpecError
        If the spec has no audits.
    DataError
        If data are unavailable, or an audit cannot examine them.
    """
    if not spec.audits:
        raise SpecError(
            "the spec has no audits; add some, for example `audits: [...]` with names from `peekbench show audits`"
        )
    datasets = {task.name: load_dataset(spec.source(task)) for task in spec.tasks}
    return tuple(_run_audit(spec, component, datasets) for component in spec.audits)


def _run_audit(spec: ExperimentSpec, component: AuditSpec, datasets: Mapping[str, Dataset]) -> Analysis:
    context = Context(seed_of_audits(spec.seed), available_threads(), spec.folders())
    options = spec.pinned_options(component)
    caller = Foreign(f"audit {component.use}", component.use, options)
    with preserve_global_generators():
        analysis: Analysis = caller.call(
            component.entry.audit, {"tasks": datasets}, Analysis, options=options, context=context
        )
    return analysis
