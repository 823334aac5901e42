"""Merges the fragments of the jobs of a spec into its store."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from peekbench.data.loading import forget
from peekbench.data.preflight import describe_tasks
from peekbench.errors import StoreError
from peekbench.execution.code import code_hashes
from peekbench.execution.fragment_checks import JobComparison
from peekbench.execution.runner import store_descriptions, store_path
from peekbench.execution.shards import shard_items
from peekbench.formatting import pluralize
from peekbench.spec.experiment import ExperimentSpec
from peekbench.store.fragments import SUFFIX, Fragment, Shard, find_fragments
from peekbench.store.merging import DifferentOutcomeError, MergeCounts, MergingStore


@dataclass(frozen=True, slots=True)
class MergeSummary:
    """Outcome of a merge."""

    store: Path
    fragments: int
    """Fragments that were read."""
    empty: int
    """Fragments without a complete line."""
    counts: MergeCounts
    planned: int
    """Trials of the spec."""
    missing: Mapping[Shard, int] = field(default_factory=dict)
    """Trials of the spec that the store does not have, by shard."""
    failed: int = 0
    """Those of them that have failed."""
    changes: Sequence[str] = ()
    """Differences of code and versions that were allowed."""


def merge(
    spec: ExperimentSpec,
    folders: Sequence[Path],
    *,
    store: Path | None = None,
    allow_changed_code: bool = False,
    report: Callable[[int, int], None] = lambda done, total: None,
) -> MergeSummary:
    """Put the outcomes in fragments into the store of a spec, and compare those that it has already.

    Parameters
    ----------
    spec
        The spec, which must equal or extend that of the fragments.
    folders
        Folders with fragments, or fragments.
    store
        The SQLite file; `runs/<name>.sqlite` by default.
    allow_changed_code
        Merge fragments of other code or versions.
    report
        Receives the number of merged fragments and that of all fragments.

    Returns
    -------
    MergeSummary
        The store, and which trials are missing.

    Raises
    ------
    StoreError
        If a fragment is damaged, of another experiment, or of other code, or if a trial differs from the stored one.
        Also if the store cannot be written. What was merged before remains stored.
    """
    forget()
    paths = dict.fromkeys(path.resolve() for folder in folders for path in _find_fragments(folder))
    if not paths:
        raise StoreError(
            f"no fragments in {', '.join(map(str, folders))}; give the folder of `peekbench worker SPEC --out FOLDER`"
        )
    tasks = describe_tasks(spec)
    path = store if store is not None else store_path(spec)
    comparison = JobComparison(spec, tasks)
    code = code_hashes(method.use for method in spec.methods)
    for name, session in [("this machine", {"code": code}), *_stored_sessions(path)]:
        comparison.add_session(name, session)
    store_changes = comparison.changes
    fragments = []
    num_shards: Counter[int] = Counter()
    for fragment in map(Fragment, paths):
        if header := fragment.read_header():
            comparison.add_fragment(fragment.path, header)
            num_shards[header.shard.count] += 1
            fragments.append(fragment)
    if comparison.changes and not allow_changed_code:
        if comparison.changes == store_changes:
            raise StoreError(
                f"trials in the store {path} are of other code or versions:\n  "
                + comparison.describe_changes()
                + "\nTheir numbers and those of these fragments may not be those of one experiment. Merge into another "
                "file with --store, or give the spec another name, or merge all with --allow-changed-code"
            )
        raise StoreError(
            "the jobs of these fragments differ:\n  "
            + comparison.describe_changes()
            + "\nTheir numbers may not be those of one experiment. Remove the fragments of the wrong jobs and run "
            "their shards again, or merge all with --allow-changed-code"
        )
    counts = MergeCounts()
    with MergingStore.for_run(path, spec, tasks) as opened:
        for number, fragment in enumerate(fragments, start=1):
            try:
                counts += opened.merge(fragment)
            except StoreError as error:
                raise StoreError(_describe_refusal(error, comparison, opened, len(fragments))) from error
            report(number, len(fragments))
        store_descriptions(spec, opened)
        planned, missing = _find_missing(spec, opened, num_shards.most_common(1)[0][0] if num_shards else 1)
        failed = opened.count_failures()
    num_empty = len(paths) - len(fragments)
    return MergeSummary(path, len(fragments), num_empty, counts, planned, missing, failed, comparison.changes)


def _find_fragments(folder: Path) -> list[Path]:
    """Return the fragments in a folder, or a fragment that is given itself."""
    paths = find_fragments(folder)
    if paths == [folder] and folder.suffix != SUFFIX:
        raise StoreError(f"{folder} is not a folder of fragments; give the folder of `peekbench worker --out`")
    return paths


def _describe_refusal(error: StoreError, comparison: JobComparison, store: MergingStore, num_fragments: int) -> str:
    """Return the message on a fragment that cannot be merged, with the likely cause and what was merged before."""
    text = str(error)
    if comparison.changes and isinstance(error, DifferentOutcomeError):
        text = (
            f"code or versions differ, and numbers too:\n  {comparison.describe_changes()}\n{text}. "
            "--allow-changed-code merges other code only if its numbers are the same"
        )
    if not store.added:
        return f"{text}\nNo trial was added"
    added = (
        f"{pluralize(store.added.total(), 'trial')} from {len(store.added)} of {pluralize(num_fragments, 'fragment')}"
    )
    return f"{text}\nStored before this error: {added}"


def _stored_sessions(path: Path) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield the sessions of a store with trials, as far as they are compared with fragments."""
    try:
        with MergingStore.open(path, verified=False) as stored:
            used = [session for session, size in zip(stored.sessions(), stored.session_sizes(), strict=True) if size]
    except StoreError:  # no store yet, or one that cannot be used, which opening it for the merge reports
        return
    for session in used:
        # The machine of a run may have other versions than the cluster, as one that resumes a run may have.
        parts = session.keys() if "fragment" in session else session.keys() & {"code", "methods"}
        yield f"the store {path}", {part: session[part] for part in parts}


def _find_missing(spec: ExperimentSpec, store: MergingStore, num_shards: int) -> tuple[int, dict[Shard, int]]:
    """Return the number of planned trials, and how many of them are missing in each shard."""
    planned = 0
    missing: Counter[int] = Counter()
    for number, item in shard_items(spec, num_shards):
        planned += len(item.trials)
        missing[number] += sum(not store.has_result(trial) for trial in item.trials)
    return planned, {Shard(number, num_shards): missing[number] for number in sorted(missing) if missing[number]}
