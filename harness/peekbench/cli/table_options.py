"""Options of commands that read tables of scores of other tools."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated, Optional

import typer

from peekbench.errors import ResultsError
from peekbench.records.table_options import TableOptions

MapOption = Annotated[
    Optional[list[str]],  # noqa: UP045 - typer evaluates the annotation
    typer.Option(
        "--map",
        metavar="COLUMN=TARGET,...",
        help="Meaning of a column of the table, such as seed=subsample, or of a value of the column of arms, such as "
        "none=base; repeatable.",
    ),
]
IgnoreOption = Annotated[
    Optional[list[str]],  # noqa: UP045
    typer.Option("--ignore", metavar="COLUMN,...", help="Column that says nothing about the scores; repeatable."),
]
PairOption = Annotated[
    bool, typer.Option("--pair-by-order", help="Pair rows that have no number of the draw in their order.")
]
PercentOption = Annotated[bool, typer.Option("--percent", help="Read scores as percentages.")]


LowerOption = Annotated[bool, typer.Option("--lower-is-better", help="Read scores as losses.")]
RegionOption = Annotated[
    Optional[float],  # noqa: UP045
    typer.Option(
        "--region", metavar="WIDTH", min=0, help="Largest bias that is negligible, in the unit of the table's scores."
    ),
]


def read_table_options(
    columns: Iterable[str] | None,
    ignore: Iterable[str] | None,
    *,
    pair_by_order: bool,
    percent: bool,
    lower_is_better: bool,
    region: float | None,
) -> TableOptions:
    """Return the record of these options.

    Parameters
    ----------
    columns, ignore
        Values of the repeatable options `--map` and `--ignore`; None if they are not given.
    pair_by_order, percent, lower_is_better, region
        Values of the options of these names.
    """
    mapping, ignored = parse_mapping(columns or ()), parse_names(ignore or ())
    return TableOptions(mapping, ignored, pair_by_order, percent, lower_is_better, region)


def parse_mapping(arguments: Iterable[str]) -> dict[str, str]:
    """Return the mapping of columns that arguments such as 'seed=subsample,system=method' give.

    Raises
    ------
    ResultsError
        If an argument is not a mapping, or a column has two targets.

    Examples
    --------
    >>> parse_mapping(["seed=subsample,system=method", "a, b=task"])
    {'seed': 'subsample', 'system': 'method', 'a, b': 'task'}
    """
    mapping: dict[str, str] = {}
    for argument in arguments:
        name = ""  # of a column, which may contain commas
        for part in argument.split(","):
            source, equals, target = part.rpartition("=")
            name += source if equals else part + ","
            if not equals:
                continue
            source, target = name.strip(), target.strip()
            if not source or not target:
                break
            if mapping.setdefault(source, target) != target:
                raise ResultsError(f"--map names two targets for the column {source!r}; name one")
            name = ""
        if name:
            raise ResultsError(f"--map {argument}: not a mapping; write COLUMN=TARGET, such as seed=subsample")
    return mapping


def parse_names(arguments: Iterable[str]) -> tuple[str, ...]:
    """Return the names that arguments such as 'notes,seconds' list.

    Examples
    --------
    >>> parse_names(["notes, seconds", "host"])
    ('notes', 'seconds', 'host')
    """
    return tuple(name.strip() for argument in arguments for name in argument.split(",") if name.strip())
