"""The option `--plugin` of commands: entries of a file that no installed plugin has."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Optional

import typer

from peekbench.errors import PluginError

MAX_REASONS = 3  # functions of a file whose errors a message lists


def _name_files(context: typer.Context, files: list[str] | None) -> list[str] | None:
    """Let the names of files mean the files until the command ends."""
    if files and not context.resilient_parsing:
        from peekbench.plugins.named_code import forget_names  # noqa: PLC0415 - for a fast --help

        forget_names()
        context.call_on_close(forget_names)
        try:
            for file in files:
                _name_file(Path(file).expanduser())
        except PluginError:
            forget_names()  # the context of a command that was not parsed is not closed
            raise
    return files


PluginOption = Annotated[
    Optional[list[str]],  # noqa: UP045 - typer evaluates the annotation
    typer.Option(
        "--plugin",
        "-p",
        metavar="FILE.py",
        callback=_name_files,
        help="File of Python with entries that this command then knows by the file's name, as in my_file.fit; "
        "repeatable.",
    ),
]


def plugin_arguments() -> list[str]:
    """Return the options `--plugin` of this command, for a command that it prints."""
    from peekbench.plugins.named_code import named_files  # noqa: PLC0415 - for a fast --help

    return [part for file in named_files().values() for part in ("--plugin", str(file))]


def _name_file(file: Path) -> None:
    """Give a file its name, after a check that it has entries and that no other plugin has the name."""
    from peekbench.plugins.named_code import give_name, named_files  # noqa: PLC0415 - for a fast --help
    from peekbench.plugins.registry import installed, load  # noqa: PLC0415 - for a fast --help
    from peekbench.plugins.validation import ENTRY_NAME  # noqa: PLC0415 - for a fast --help

    _check_is_code(file)
    path = file.parent.resolve() / file.name
    name = (path.parent.name if path.stem == "__init__" else path.stem).removeprefix("peekbench_")
    if not ENTRY_NAME.fullmatch(name):
        raise PluginError(
            f"--plugin {file}: a spec cannot use the name {name!r}; rename the file with letters, digits, '_' and '-'"
        )
    if name in installed():
        (point, *_) = installed()[name]
        raise PluginError(
            f"--plugin {file}: the installed plugin {name!r} ({point.value}) has the same name; rename the file, or "
            f"name its functions in the spec, as in `use: {file}:NAME`"
        )
    if (other := named_files().get(name, path)) != path:
        raise PluginError(f"--plugin {file}: {other} has the same name, {name!r}; rename one of the files")
    if not any(load(str(path)).offers.values()):
        raise PluginError(f"--plugin {file}: {_describe_empty(path)}")
    give_name(name, path)


def _check_is_code(file: Path) -> None:
    from peekbench.plugins.nearest import find_nearest_file  # noqa: PLC0415 - for a fast --help

    if file.is_dir():
        raise PluginError(
            f"--plugin {file} is a folder; give a file, or install the distribution: pip install --editable {file}"
        )
    if file.suffix != ".py":
        raise PluginError(f"--plugin {file} is not a file of Python; give the path of a file that ends with .py")
    if not file.is_file():
        others = [other.name for other in file.parent.glob("*.py")]
        near = find_nearest_file(file.name, others)
        hint = f"did you mean {file.parent / near}?" if near else "relative paths start at the working folder"
        raise PluginError(f"--plugin {file}: no such file; {hint}")


def _describe_empty(path: Path) -> str:
    """Return why a file has no entry: it has no function, or none that can be one."""
    from peekbench.plugins.functions import make_entry  # noqa: PLC0415 - for a fast --help
    from peekbench.plugins.local_code import load_module  # noqa: PLC0415 - for a fast --help

    module = load_module(str(path))
    reasons = []
    for name, thing in vars(module).items():
        if not name.startswith("_") and callable(thing) and getattr(thing, "__module__", "") == module.__name__:
            try:
                make_entry(thing, name)
            except (PluginError, ValueError, TypeError) as error:
                reasons.append(str(error))
    if reasons:
        return "none of its functions can be an entry:\n  " + "\n  ".join(reasons[:MAX_REASONS])
    return (
        "the file has no hook, such as peekbench_methods, and no function; define a method, "
        "`def fit(unlabeled, train, task, seed)`"
    )
