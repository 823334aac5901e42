"""Options that commands share, and options in records."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import fields, is_dataclass
from functools import wraps
from pathlib import Path
from typing import Annotated, Any, get_type_hints

import typer


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


def complete_runs(incomplete: str) -> list[str]:
    """Return the names of the stored runs that complete the beginning of an argument; if none does, files do."""
    names = (path.stem for path in Path("runs").glob("*.sqlite"))
    return sorted(name for name in names if name.startswith(incomplete))


RunArgument = Annotated[
    str, typer.Argument(metavar="RUN", autocompletion=complete_runs, help="Name, spec or store of a run.")
]
SpecArgument = Annotated[Path, typer.Argument(metavar="SPEC", help="YAML spec of an experiment.")]
StoreOption = Annotated[
    Path | None,
    typer.Option("--store", metavar="FILE", help="Store of the run. Default: runs/NAME.sqlite."),
]
ReportsOption = Annotated[Path, typer.Option("--reports", metavar="FOLDER", help="Folder for reports.")]
WorkersOption = Annotated[
    int | None,
    typer.Option("--workers", min=1, help="Override the executor's option `workers`. It changes no number."),
]
KeepGoingOption = Annotated[
    bool, typer.Option("--keep-going", help="Try all trials of a method even if its first ten fail alike.")
]
ChangedCodeOption = Annotated[
    bool,
    typer.Option(
        "--allow-changed-code",
        help="Go on although the code of a method changed; the report warns that versions are mixed.",
    ),
]
FreshOption = Annotated[bool, typer.Option("--fresh", help="Delete the trials of an earlier run of the same name.")]
IncompleteOption = Annotated[
    bool, typer.Option("--allow-incomplete", help="Analyze the complete trials if trials are missing.")
]
