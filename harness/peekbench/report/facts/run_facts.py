"""What the results of a run depend on: its sessions and code; how to extend it; and what weakens its results."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

from peekbench.data.preflight import count_supported
from peekbench.records.report import Analysis, Extension
from peekbench.report.render import run_words
from peekbench.results.analyze import ask, find_analysis, planned_trials, without_controls
from peekbench.results.missing_trials import drop_incomplete
from peekbench.spec.design import designs_by_task
from peekbench.store.differences import CodeVersion, describe_change, describe_version_changes
from peekbench.store.reader import Store

if TYPE_CHECKING:
    import pandas as pd

    from peekbench.records.data import TableOptions


def make_command(
    name: str,
    paths: Sequence[Path | str],
    analyses: Sequence[str] = (),
    table: TableOptions | None = None,
    *,
    allow_incomplete: bool = False,
) -> str:
    """Return the command that makes a report of runs or tables again."""
    options = [part for use in filter(None, analyses) for part in ("--analysis", use)]
    if table is not None:
        options += table.arguments()
    if allow_incomplete:
        options.append("--allow-incomplete")
    return shlex.join(["peekbench", name, *map(str, paths), *options])


def find_command(sessions: Sequence[Mapping[str, Any]]) -> str:
    """Find the command that continues a run: that of its last session; empty if it was none."""
    if not sessions:
        return ""
    command = run_words.session_command(sessions[-1])
    if "--official" in command:
        return "peekbench run official.yaml"
    if "quickstart" in command:
        return "peekbench run quickstart.yaml"
    if "run" not in command:
        return ""
    return shlex.join(part for part in command if part != "--fresh")


def extension_of(path: Path) -> Extension:
    """Return how to extend the run of a store that is closed."""
    with Store.open(path, verified=False) as store:
        return describe_extension(store)


def describe_extension(store: Store) -> Extension:
    """Return how to extend the run of an open store."""
    spec = store.spec()
    number: int | None = spec["design"]["num_subsamples"]
    if not isinstance(number, int) or any(task.get("num_subsamples") for task in spec["tasks"]):
        number = None
    return Extension(
        find_command(store.sessions()),
        of="run",
        num_subsamples=number,
        num_missing=max(0, len(planned_trials(store)) - len(store.done()) - len(store.failures())),
        seconds=store.seconds_of_subsample(),
        max_subsamples=count_supported(designs_by_task(spec), store.tasks()),
    )


def check_results(results: pd.DataFrame) -> tuple[Analysis, ...]:
    """Run the default analysis with the role 'check', without controls and incomplete trials; nothing if none is left.

    Parameters
    ----------
    results
        Results table.
    """
    results = without_controls(results)
    if results["arm"].value_counts().nunique() > 1:
        results = drop_incomplete(results)
    if not results["arm"].isin(("extra", "test")).any():
        return ()
    return (ask(find_analysis("check"), results),)


def warn_of_code_changes(versions: Mapping[str, Sequence[CodeVersion]]) -> Iterator[str]:
    """Yield a warning for each method plugin whose code changed between trials.

    Parameters
    ----------
    versions
        Versions of the code by plugin, as `peekbench.store.differences.find_versions` returns them.
    """
    for plugin, plugin_versions in versions.items():
        if len(plugin_versions) > 1:
            changes = [describe_change(old.code, new.code) for old, new in pairwise(plugin_versions)]
            yield run_words.warn_of_code_changes(plugin, [len(version.trials) for version in plugin_versions], changes)


def warn_of_other_versions(sessions: Sequence[Mapping[str, Any]], sizes: Sequence[int]) -> Iterator[str]:
    """Yield a warning if sessions that finished trials differ in versions on which results depend.

    Parameters
    ----------
    sessions
        Sessions of the run, oldest first.
    sizes
        Number of trials that each session finished.
    """
    made = [session for session, size in zip(sessions, sizes, strict=True) if size]
    if changes := describe_version_changes(made):
        yield run_words.warn_of_other_versions(changes)
