"""Commands for batch clusters: run a shard of a spec, and merge the stores of all shards."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Annotated

import typer

from peekbench.api.inputs import check_new_store, load
from peekbench.cli.options import (
    ChangedCodeOption,
    KeepGoingOption,
    SpecArgument,
    StoreOption,
    WorkersOption,
)
from peekbench.cli.output import FAILED, INTERRUPTED, echo, fail, make_console, warn
from peekbench.cli.run import describe_failures
from peekbench.execution.runner import RunSummary
from peekbench.execution.shards import MergeSummary, run_shard
from peekbench.execution.shards import merge as merge_shards
from peekbench.formatting import pluralize
from peekbench.progress import make_display
from peekbench.store.files import Shard

MAX_SHARDS = 10  # shards of which a command is printed


def worker(
    spec: SpecArgument,
    shard: Annotated[str, typer.Option("--shard", metavar="I/N", help="Number of this shard, and of all shards.")],
    out: Annotated[Path, typer.Option("--out", metavar="FOLDER", help="Folder for the stores of all shards.")],
    workers: WorkersOption = None,
    keep_going: KeepGoingOption = False,
    allow_changed_code: ChangedCodeOption = False,
) -> None:
    """Run one shard of a spec in a job of a batch cluster. `peekbench merge` puts the results into a store.

    Example: peekbench worker specs/quickstart.yaml --shard 3/40 --out /shared/quickstart --workers 8
    """
    part = Shard.parse(shard)
    experiment = load(spec, workers)
    command = _join("worker", spec, "--shard", shard, "--out", out)
    try:
        with make_display(make_console(err=True)) as display:
            summary = run_shard(
                experiment,
                part,
                out,
                display=display,
                keep_going=keep_going,
                allow_changed_code=allow_changed_code,
            )
    except KeyboardInterrupt:
        fail(f"interrupted; finished trials are in {out}. To go on with this shard: {command}", INTERRUPTED)
    _print_shard(summary, part, out)
    if summary.failed:
        fail(describe_failures(summary, command), FAILED)


def _print_shard(summary: RunSummary, shard: Shard, out: Path) -> None:
    if not summary.planned:
        echo(f"nothing to do: shard {shard} has no trials, because the spec has fewer work items than shards")
    elif not summary.finished + summary.failed:
        echo(f"nothing to do: all {pluralize(summary.planned, 'trial')} of shard {shard} are in {out}")
    else:
        line = f"shard {shard}: {pluralize(summary.finished, 'trial')} finished"
        if summary.resumed:
            line += f", {summary.resumed:,} were in {out} already"
        echo(f"{line}\nwritten: {summary.store}")


def merge(
    spec: SpecArgument,
    folders: Annotated[list[Path], typer.Argument(metavar="FOLDER...", help="Folders of --out of `peekbench worker`.")],
    store: StoreOption = None,
    allow_changed_code: ChangedCodeOption = False,
) -> None:
    """Put the results of shards into the store of a spec, also while jobs are running.

    The exit status is 3 while trials are missing.

    Example: peekbench merge specs/quickstart.yaml /shared/quickstart
    """
    experiment = load(spec)
    if store is not None:
        check_new_store(store)
    summary = merge_shards(experiment, folders, store=store, allow_changed_code=allow_changed_code)
    for change in summary.changes:
        warn(change)
    counts = summary.counts
    echo(
        f"merged {pluralize(summary.shards, 'store')} of shards into {summary.store}: "
        f"{pluralize(counts.added, 'trial')} added, {counts.repeated:,} already stored with the same numbers"
    )
    if summary.empty:
        empty = pluralize(summary.empty, "store has", "stores have")
        echo(
            f"{empty} no finished trial: the job has just started, was killed at its start, or all its trials failed "
            "with another spec"
        )
    if summary.missing:
        fail(_describe_missing(summary, spec, folders[0], store), FAILED)
    run = shlex.quote(str(store or experiment.name))
    echo(f"all {pluralize(summary.planned, 'trial')} are there; to write the report: peekbench report {run}")


def _describe_missing(summary: MergeSummary, spec: Path, folder: Path, store: Path | None) -> str:
    missing = summary.missing
    line = f"{sum(missing.values()):,} of {pluralize(summary.planned, 'trial')} missing"
    if summary.failed:
        line += f" ({summary.failed:,} of them failed; the store has all tracebacks)"
    lines = [
        f"{line}, in {pluralize(len(missing), 'shard')} of {next(iter(missing)).count}",
        "To compute them, run these shards again and merge again, or run the spec on one machine:",
    ]
    lines += ["  " + _join("worker", spec, "--shard", shard, "--out", folder) for shard in list(missing)[:MAX_SHARDS]]
    if len(missing) > MAX_SHARDS:
        lines.append(f"  and {len(missing) - MAX_SHARDS:,} more")
    command = ["run", spec]
    if store:
        command += ["--store", store]
    return "\n".join([*lines, f"  {_join(*command)}"])


def _join(*arguments: object) -> str:
    return shlex.join(["peekbench", *map(str, arguments)])
