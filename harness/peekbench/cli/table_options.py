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
        metavar="COLUMN=TARGET",
        help="Meaning of a column of the table, such as seed=subsample, or of a value of the column of arms, such as "
        "none=base; repeatable.",
    ),
]
IgnoreOption = Annotated[
    Optional[list[str]],  # noqa: UP045
    typer.Option("--ignore", metavar="COLUMN", help="Column that says nothing about the scores; repeatable."),
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
    return TableOptions(
        parse_mapping(columns or ()), tuple(ignore or ()), pair_by_order, percent, lower_is_better, region
    )


def parse_mapping(arguments: Iterable[str]) -> dict[str, str]:
    """Return the mapping of columns that arguments such as 'seed=subsample' give.

    Raises
    ------
    ResultsError
        If an argument is not a mapping, or a column has two targets.

    Examples
    --------
    >>> parse_mapping(["seed=subsample", "a=b, c=task"])
    {'seed': 'subsample', 'a=b, c': 'task'}
    """
    mapping: dict[str, str] = {}
    for argument in arguments:
        source, _, target = (part.strip() for part in argument.rpartition("="))
        if not source or not target:
            raise ResultsError(f"--map {argument}: not a mapping; write COLUMN=TARGET, such as seed=subsample")
        if mapping.setdefault(source, target) != target:
            raise ResultsError(f"--map names two targets for the column {source!r}; name one")
    return mapping
