"""Downloads everything that a spec needs."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any

from peekbench.data.loading import load_dataset
from peekbench.errors import DataError, PeekbenchError
from peekbench.formatting import pluralize
from peekbench.spec.components import AuditSpec, MethodSpec, TaskSpec
from peekbench.spec.experiment import ExperimentSpec


def prefetch(spec: ExperimentSpec) -> Iterator[str]:
    """Load every task and prefetch every method and audit, one after the other.

    Yields
    ------
    str
        One line before and one after each download. In between, libraries may show progress bars of their own.

    Raises
    ------
    DataError
        After the last download, if some failed.
    """
    methods = [method for method in spec.methods if method.entry.prefetch is not None]
    audits = [audit for audit in spec.audits if audit.entry.prefetch is not None]
    downloads: list[tuple[str, Callable[[], str]]] = [
        *((task.name, partial(_prefetch_task, spec, task)) for task in spec.tasks),
        *((method.name, partial(_prefetch_method, spec, method)) for method in methods),
        *((audit.name, partial(_prefetch_audit, spec, audit)) for audit in audits),
    ]
    failed = []
    for number, (name, download) in enumerate(downloads, start=1):
        yield f"[{number}/{len(downloads)}] {name}"
        try:
            yield f"    {download()}"
        except PeekbenchError as error:
            failed.append(name)
            yield f"    {error}"
    if failed:
        raise DataError(
            f"{len(failed)} of {len(downloads)} downloads failed: {', '.join(failed)}; see the messages above, then "
            "try again"
        )


def _prefetch_task(spec: ExperimentSpec, task: TaskSpec) -> str:
    return pluralize(len(load_dataset(spec.source(task)).labels), "row")


def _prefetch_method(spec: ExperimentSpec, method: MethodSpec) -> str:
    assert method.entry.prefetch is not None
    return _list_facts(method.entry.prefetch(options=spec.options(method), folders=spec.folders()))


def _prefetch_audit(spec: ExperimentSpec, audit: AuditSpec) -> str:
    assert audit.entry.prefetch is not None
    return _list_facts(audit.entry.prefetch(options=spec.audit_options(audit), folders=spec.folders()))


def _list_facts(facts: Mapping[str, Any]) -> str:
    return ", ".join(f"{name} {value}" for name, value in facts.items() if not isinstance(value, Mapping)) or "done"
