"""The name and the files of a new plugin, rendered from templates."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from shlex import quote

import yaml
from jinja2 import Environment, FileSystemLoader, StrictUndefined

from peekbench.errors import PeekbenchError
from peekbench.plugins import registry
from peekbench.plugins.names import find_nearest, join_name
from peekbench.plugins.validation import ENTRY_NAME

TEMPLATES = Path(__file__).parent / "templates"
COMMON = "common"
"""Folder of the templates for plugins of all kinds. A template of the same path in the folder of a kind replaces it."""
SUFFIX = ".j2"
NAME = re.compile(r"[a-z][a-z0-9]*(_[a-z0-9]+)*")
MAX_NAME = 40  # characters


def check_name(name: str) -> None:
    """Check that a plugin can have a name, and that nothing installed has it.

    The name is part of the names of the package and of the distribution, so it is a Python identifier, and normalizing
    it as package indices do (PEP 503) never makes two names equal.
    """
    if NAME.fullmatch(name) is None or len(name) > MAX_NAME or not isinstance(yaml.safe_load(name), str):
        raise PeekbenchError(
            f"a plugin cannot be named {name!r}: use up to {MAX_NAME} lowercase letters and digits, beginning with a "
            f"letter, with '_' between words, and no word that YAML reads as another value, such as 'null'"
        )
    if name in registry.installed() or find_spec(f"peekbench_{name}"):
        raise PeekbenchError(
            f"a plugin or package of the name {name!r} is installed; choose another name, for example 'my_{name}'"
        )


@dataclass(frozen=True, slots=True)
class NewPlugin:
    """A plugin to write.

    Examples
    --------
    >>> plugin = NewPlugin("method", "nearest_class")
    >>> plugin.distribution, plugin.package
    ('peekbench-nearest-class', 'peekbench_nearest_class')
    """

    kind: str
    """Kind of its entry; one of `list_kinds()`."""
    name: str
    """Name of the plugin."""
    entry: str = ""
    """Name of its entry; by default that of the plugin."""

    @property
    def distribution(self) -> str:
        """Name of the distribution."""
        return f"peekbench-{self.name.replace('_', '-')}"

    @property
    def use(self) -> str:
        """Name of the entry in specs."""
        return join_name(self.name, self.entry or self.name)

    @property
    def package(self) -> str:
        """Name of the package that the distribution installs."""
        return f"peekbench_{self.name}"


def list_kinds() -> list[str]:
    """Return the kinds of plugins that have templates."""
    return sorted(folder.name for folder in TEMPLATES.iterdir() if folder.is_dir() and folder.name != COMMON)


def make_plugin(kind: str, name: str) -> NewPlugin:
    """Check what a user asks for.

    Parameters
    ----------
    kind
        Kind of the entry.
    name
        Name of the plugin, or of the plugin and its entry, such as 'mydata.tickets'.

    Raises
    ------
    PeekbenchError
        If there are no templates for the kind, or if the name cannot be used.
    """
    if kind not in list_kinds():
        near = find_nearest(kind, list_kinds())
        remedy = f"did you mean {near}?" if near else f"choose from: {', '.join(list_kinds())}"
        raise PeekbenchError(f"no template for plugins of the kind {kind!r}; {remedy}")
    plugin, dot, entry = name.partition(".")
    if not (dot and ENTRY_NAME.fullmatch(entry) and len(entry) <= MAX_NAME):
        plugin, entry = name, ""
    check_name(plugin)
    return NewPlugin(kind, plugin, entry)


def render_plugin(plugin: NewPlugin) -> dict[str, str]:
    """Return the files of a plugin: their content by path in the folder of the distribution.

    Parameters
    ----------
    plugin
        The plugin.

    Examples
    --------
    >>> files = render_plugin(NewPlugin("method", "lsa"))
    >>> 'lsa = "peekbench_lsa"' in files["pyproject.toml"]
    True
    """
    environment = Environment(
        loader=FileSystemLoader([TEMPLATES / plugin.kind, TEMPLATES / COMMON, TEMPLATES]),
        undefined=StrictUndefined,
        keep_trailing_newline=True,
        trim_blocks=True,
        lstrip_blocks=True,
        autoescape=False,  # noqa: S701 - writes no HTML
    )
    values: Mapping[str, object] = {
        "plugin": plugin,
        "name": plugin.name,
        "entry": plugin.entry or plugin.name,
        "use": plugin.use,
        "commands": list_commands(plugin, Path()),
        "peekbench_version": version("peekbench"),
    }
    folders = TEMPLATES / COMMON, TEMPLATES / plugin.kind
    templates = {file.relative_to(folder).as_posix() for folder in folders for file in folder.rglob(f"*{SUFFIX}")}
    return {
        path.removesuffix(SUFFIX).replace("PACKAGE", plugin.package).replace("NAME", plugin.name): (
            environment.get_template(path).render(values)
        )
        for path in sorted(templates)
    }


def list_commands(plugin: NewPlugin, folder: Path) -> list[str]:
    """Return the commands that install a plugin, check it and run an experiment with it.

    Parameters
    ----------
    plugin
        The plugin.
    folder
        Folder of the distribution.

    Examples
    --------
    >>> list_commands(NewPlugin("method", "lsa"), Path())
    ['pip install --editable .', 'peekbench check lsa', 'peekbench run lsa.yaml']
    """
    spec = quote(str(folder / f"{plugin.name}.yaml"))
    # peekbench has no contract checks of renderers.
    test = f"pytest {quote(str(folder))}" if plugin.kind == "renderer" else f"peekbench check {plugin.use}"
    return [f"pip install --editable {quote(str(folder))}", test, f"peekbench run {spec}"]


def write_plugin(plugin: NewPlugin, folder: Path) -> list[Path]:
    """Write the files of a plugin, none of which may exist.

    Parameters
    ----------
    plugin
        The plugin.
    folder
        Folder of the distribution. It may contain other files, such as those of a new git repository.

    Returns
    -------
    list of Path
        The files that were written.

    Raises
    ------
    PeekbenchError
        If one of the files exists already, or if the folder cannot be written.
    """
    files = {folder / path: text for path, text in render_plugin(plugin).items()}
    if existing := [path for path in files if path.exists() or path.is_symlink()]:
        raise PeekbenchError(
            f"{folder} already contains {existing[0].relative_to(folder)}, and files are never overwritten; choose "
            "another folder with --folder"
        )
    try:
        for path, text in files.items():
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8", newline="\n")
    except OSError as error:
        raise PeekbenchError(
            f"cannot write {error.filename or folder}: {error.strerror}; choose another folder with --folder"
        ) from error
    return list(files)
