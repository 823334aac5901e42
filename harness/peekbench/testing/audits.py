"""Contract checks of audits, which must be pure functions of the tasks' rows."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from peekbench.data.loading import hash_rows, load_dataset
from peekbench.errors import ContractError
from peekbench.plugins import registry
from peekbench.plugins.entries import AuditEntry
from peekbench.plugins.protocols import Options
from peekbench.records.analysis import Analysis
from peekbench.records.data import Dataset, Folders, SourceRef
from peekbench.records.trials import Context
from peekbench.spec.components import AuditSpec, make_component
from peekbench.testing.analyses import require_whole_tables
from peekbench.testing.cache_view import view_cache
from peekbench.testing.declaration_checks import check_light_import
from peekbench.testing.outcomes import CheckOutcome, run_checks
from peekbench.testing.preparation import prepare_entry
from peekbench.testing.repeated_call import (
    RepeatedCall,
    by_name,
    check_generators,
    check_new_process,
    check_second_call,
    check_state,
)
from peekbench.testing.samples import sample_texts


@dataclass(frozen=True, slots=True)
class AuditCase:
    """An audit with tasks to check it on."""

    use: str
    """Name of the audit in specs."""
    entry: AuditEntry
    """Entry of the audit."""
    options: Options
    """Options to call the audit with."""
    tasks: Mapping[str, Dataset]
    """Rows by task."""
    context: Context
    """Seed, threads and folders of the call."""
    calls: RepeatedCall
    """Further calls."""


def check_audit(
    use: str,
    options: Mapping[str, Any] | None = None,
    *,
    tasks: Mapping[str, Dataset] | None = None,
    source: SourceRef | None = None,
) -> list[CheckOutcome]:
    """Do all contract checks of an audit, after it was prepared.

    Parameters
    ----------
    use
        Name of the audit in specs, `plugin.audit`.
    options
        Options as in a spec. Relative paths start at the current folder.
    tasks
        Rows by task; by default synthetic texts.
    source
        Data source of the only task, instead of `tasks`.

    Returns
    -------
    list of CheckOutcome
        Outcomes in the order of `AUDIT_CHECKS`.

    Raises
    ------
    PluginError, SpecError
        If there is no such audit, or the options are invalid.
    DataError
        If the audit cannot be prepared, or the data are unavailable.

    Examples
    --------
    >>> next(iter(AUDIT_CHECKS))
    'returns an analysis and leaves the rows unchanged'
    >>> outcomes = check_audit("my_file.py:lengths")
    >>> all(outcome.passed for outcome in outcomes)
    True
    """
    return list(iterate_audit_checks(use, options, tasks=tasks, source=source))


def iterate_audit_checks(
    use: str,
    options: Mapping[str, Any] | None = None,
    *,
    tasks: Mapping[str, Dataset] | None = None,
    source: SourceRef | None = None,
) -> Iterator[CheckOutcome]:
    """Do the checks of `check_audit` one after the other.

    Parameters
    ----------
    use, options, tasks, source
        As for `check_audit`.

    Yields
    ------
    CheckOutcome
        Outcomes in the order of `AUDIT_CHECKS`.
    """
    spec = make_component(AuditSpec, use, options)
    if source is not None:
        tasks = {source.use: load_dataset(source)}
    prepare_entry(spec, Path.cwd())
    with ExitStack() as stack:
        cache = stack.enter_context(view_cache())
        case = make_audit_case(spec.use, spec.entry, spec.options, cache, tasks)
        yield from run_checks(AUDIT_CHECKS, case, num_required=1)


def make_audit_case(
    use: str, entry: AuditEntry, options: Options, cache: Path, tasks: Mapping[str, Dataset] | None = None
) -> AuditCase:
    """Make a case of an audit.

    Parameters
    ----------
    use
        Name of the audit in specs.
    entry
        Its entry.
    options
        Options to call it with.
    cache
        Folder for its files.
    tasks
        Rows by task; by default synthetic texts.
    """
    tasks = {"sample": sample_texts()} if tasks is None else tasks
    context = Context(seed=1, threads=1, folders=Folders(spec=Path.cwd(), cache=cache))
    calls = RepeatedCall(
        use=use,
        callee=entry.audit,
        describe=_describe,
        arguments=(use, by_name(use, entry), options.model_dump(), tasks, context),
        remedy="take the seed from context.seed",
    )
    return AuditCase(use, entry, options, tasks, context, calls)


def _describe(
    use: str, entry: AuditEntry | None, options: dict[str, Any], tasks: Mapping[str, Dataset], context: Context
) -> str:
    entry = entry or registry.find(use, AuditEntry)
    return repr(entry.audit(tasks, options=entry.options.model_validate(options), context=context))


def check_returns_analysis(case: AuditCase) -> None:
    """Check that an audit returns an `Analysis` with whole tables, and does not change the rows."""
    before = _hash_tasks(case.tasks)
    analysis = case.entry.audit(case.tasks, options=case.options, context=case.context)
    if not isinstance(analysis, Analysis):
        raise ContractError(f"it returned a {type(analysis).__name__}; return peekbench.Analysis")
    require_whole_tables(analysis)
    if before != _hash_tasks(case.tasks):
        raise ContractError("it changes the tasks' rows; work on copies")


def _hash_tasks(tasks: Mapping[str, Dataset]) -> dict[str, str]:
    return {name: hash_rows(data.inputs, data.labels, data.class_names) for name, data in tasks.items()}


def _check_calls(check: Callable[[RepeatedCall], None], case: AuditCase) -> None:
    check(case.calls)


AUDIT_CHECKS: Mapping[str, Callable[[AuditCase], None]] = {
    "returns an analysis and leaves the rows unchanged": check_returns_analysis,
    "same analysis at every call": partial(_check_calls, check_second_call),
    "global random state is unused and unchanged": partial(_check_calls, check_generators),
    "same analysis in every process": partial(_check_calls, check_new_process),
    "the state of the process is unchanged": partial(_check_calls, check_state),
    "importing the plugin is fast": check_light_import,
}
"""Checks by their names, in the order in which they are done.

Examples
--------
>>> next(iter(AUDIT_CHECKS))
'returns an analysis and leaves the rows unchanged'
"""
