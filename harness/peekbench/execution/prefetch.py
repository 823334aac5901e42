"""Downloads everything that a spec needs, one thing after the other."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

from peekbench.data.loading import load_dataset
from peekbench.errors import DataError, PeekbenchError
from peekbench.formatting import pluralize

if TYPE_CHECKING:
    from peekbench.spec.components import AuditSpec, MethodSpec, TaskSpec
    from peekbench.spec.experiment import ExperimentSpec


def prefetch(spec: ExperimentSpec) -> Iterator[str]:
    """Load every task and prefetch every method and audit; a line before and after each.

    Libraries that download show progress bars of their own in between.

    Raises
    ------
    DataError
        At the end, where something could not be had.
    """
    methods = [method for method in spec.methods if method.entry.prefetch is not None]
    audits = [audit for audit in spec.audits if audit.entry.prefetch is not None]
    fetches: list[tuple[str, Callable[[], str]]] = [
        *((task.name, partial(_fetch_task, spec, task)) for task in spec.tasks),
        *((method.name, partial(_fetch_for_method, spec, method)) for method in methods),
        *((audit.name, partial(_fetch_for_audit, spec, audit)) for audit in audits),
    ]
    failed = []
    for number, (name, fetch) in enumerate(fetches, start=1):
        yield f"[{number}/{len(fetches)}] {name}"
        try:
            yield f"    {fetch()}"
        except PeekbenchError as error:
            failed.append(name)
            yield f"    {error}"
    if failed:
        raise DataError(
            f"{len(failed)} of {len(fetches)} could not be had: {', '.join(failed)}; see above, and try again"
        )


def _fetch_task(spec: ExperimentSpec, task: TaskSpec) -> str:
    return pluralize(len(load_dataset(spec.source(task)).labels), "row")


def _fetch_for_method(spec: ExperimentSpec, method: MethodSpec) -> str:
    assert method.entry.prefetch is not None
    return _in_words(method.entry.prefetch(options=spec.options(method), folders=spec.folders()))


def _fetch_for_audit(spec: ExperimentSpec, audit: AuditSpec) -> str:
    assert audit.entry.prefetch is not None
    return _in_words(audit.entry.prefetch(options=spec.audit_options(audit), folders=spec.folders()))


def _in_words(known: Mapping[str, Any]) -> str:
    return ", ".join(f"{name} {value}" for name, value in known.items() if not isinstance(value, Mapping)) or "done"
