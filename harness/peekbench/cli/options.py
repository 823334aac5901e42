"""Options that commands share, and options in records."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from dataclasses import dataclass, fields, is_dataclass
from functools import wraps
from pathlib import Path
from typing import Annotated, Any, get_type_hints

import typer

from peekbench.errors import ResultsError
from peekbench.records.data import FLAGS, TableOptions


def take_records(function: Callable[..., None]) -> Callable[..., None]:
    """Let a command take its options in records: those of a parameter that is a data class are the fields."""
    signature = inspect.signature(function, eval_str=True)
    records: dict[str, Any] = {
        name: parameter.annotation
        for name, parameter in signature.parameters.items()
        if is_dataclass(parameter.annotation)
    }
    parameters = []
    for name, parameter in signature.parameters.items():
        if name not in records:
            parameters.append(parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY))
            continue
        hints = get_type_hints(records[name], include_extras=True)
        parameters += [
            inspect.Parameter(
                field.name, inspect.Parameter.KEYWORD_ONLY, default=field.default, annotation=hints[field.name]
            )
            for field in fields(records[name])
        ]

    @wraps(function)
    def call(**values: Any) -> None:
        for name, record in records.items():
            values[name] = record(**{field.name: values.pop(field.name) for field in fields(record)})
        function(**values)

    call.__signature__ = signature.replace(parameters=parameters)  # type: ignore[attr-defined]
    call.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    return call


RunArgument = Annotated[str, typer.Argument(metavar="RUN", help="Name, spec or store of a run.")]
SpecArgument = Annotated[Path, typer.Argument(metavar="SPEC", help="YAML spec of an experiment.")]
StoreOption = Annotated[
    Path | None,
    typer.Option("--store", metavar="FILE", help="Store. Default: runs/NAME.sqlite."),
]
ReportsOption = Annotated[Path, typer.Option("--reports", metavar="FOLDER", help="Folder for reports.")]
WorkersOption = Annotated[
    int | None,
    typer.Option("--workers", min=1, help="Override the executor's option `workers`."),
]
KeepGoingOption = Annotated[
    bool, typer.Option("--keep-going", help="Do not stop a method whose first ten trials fail.")
]
ChangedCodeOption = Annotated[
    bool,
    typer.Option(
        "--allow-changed-code",
        help="Resume although the code of a method changed; the report warns of it.",
    ),
]
FreshOption = Annotated[bool, typer.Option("--fresh", help="Delete the stored trials first.")]
IncompleteOption = Annotated[
    bool, typer.Option("--allow-incomplete", help="Analyze the complete trials if trials are missing.")
]


@dataclass(frozen=True, slots=True)
class TableFlags:
    """Options of commands that read tables of scores of other tools: the fields of `TableOptions` that users set."""

    columns: Annotated[
        list[str] | None,
        typer.Option(
            FLAGS["columns"],
            metavar="COLUMN=TARGET",
            help="Meaning of a column or of an arm, such as seed=subsample or none=base; repeatable.",
        ),
    ] = None
    ignore: Annotated[
        list[str] | None,
        typer.Option(FLAGS["ignore"], metavar="COLUMN", help="Column to ignore; repeatable."),
    ] = None
    percent: Annotated[bool, typer.Option(FLAGS["percent"], help="Read scores as percentages.")] = False
    independent_tasks: Annotated[
        bool,
        typer.Option(
            FLAGS["independent_tasks"],
            help="Draws of different tasks are independent.",
        ),
    ] = False
    region: Annotated[
        float | None,
        typer.Option(
            FLAGS["region"],
            metavar="WIDTH",
            min=0,
            help="Largest bias that is negligible.",
        ),
    ] = None
    tasks: Annotated[
        list[str] | None,
        typer.Option(FLAGS["tasks"], metavar="TASK", help="Task to read; repeatable. Default: all."),
    ] = None
    earlier: Annotated[
        list[int] | None,
        typer.Option(
            FLAGS["earlier"],
            metavar="NUMBER",
            min=1,
            help="Subsamples per task at an earlier analysis of a table that grew; repeatable, ascending.",
        ),
    ] = None

    def read(self) -> TableOptions:
        """Return how to read the table."""
        given: dict[str, Any] = {option.name: getattr(self, option.name) for option in fields(self)}
        given["columns"] = _parse_mapping(self.columns or ())
        return TableOptions(**{name: value for name, value in given.items() if value is not None})


def _parse_mapping(arguments: Iterable[str]) -> dict[str, str]:
    """Return the mapping of columns that arguments such as 'seed=subsample' give."""
    mapping: dict[str, str] = {}
    for argument in arguments:
        source, _, target = (part.strip() for part in argument.rpartition("="))
        if not source or not target:
            raise ResultsError(f"--map {argument}: not a mapping; write COLUMN=TARGET, such as seed=subsample")
        if mapping.setdefault(source, target) != target:
            raise ResultsError(f"--map names two targets for the column {source!r}; name one")
    return mapping
