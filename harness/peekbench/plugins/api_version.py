"""The version of the plugin API, and the version that a plugin states.

A plugin states the version that it was made for in its module, as text: ``PEEKBENCH_API = "2.0"``. The statement is
read from the source code, so that a plugin for another major version is refused before it is imported.
"""

from __future__ import annotations

import ast
import re
import warnings
from collections.abc import Mapping
from importlib.util import find_spec
from typing import NamedTuple

from peekbench.errors import PluginError

API_VERSION = "2.0"
"""Version of the plugin API, `major.minor`. A minor version adds to the API; only a major version changes or removes
what plugins use.

Examples
--------
>>> major, minor = map(int, API_VERSION.split("."))
>>> major
2
"""

STATEMENT = "PEEKBENCH_API"
"""Name of the constant in a plugin's module that states the version."""
MAJOR_CHANGES: Mapping[int, str] = {
    2: "entries have the field `preparation`, a `Preparation` with `pin`, `prefetch`, `count_tokens` and `resources`"
}
"""What a plugin has to change for each major version after the first. docs/plugins/reference.md has the same table."""


class Version(NamedTuple):
    """A version of the plugin API."""

    major: int
    minor: int

    @classmethod
    def parse(cls, text: str) -> Version:
        """Return a version from text of the form `major.minor`.

        Raises
        ------
        ValueError
            If the text has another form.

        Examples
        --------
        >>> Version.parse("1.10") > Version.parse("1.9")
        True
        """
        if not re.fullmatch(r"[1-9]\d{0,5}\.\d{1,6}", text, re.ASCII):
            raise ValueError(text)
        return cls(*map(int, text.split(".")))

    def __str__(self) -> str:
        """Return the version as text."""
        return f"{self.major}.{self.minor}"


def find_stated_version(module: str) -> Version:
    """Return the version that a plugin states in its module, by default the current one, without importing the module.

    Raises
    ------
    PluginError
        If the statement is not text of the form `major.minor`.
    """
    for node in _parse(module).body:
        if not isinstance(node, ast.Assign | ast.AnnAssign) or node.value is None:
            continue
        targets = node.targets if isinstance(node, ast.Assign) else [node.target]
        if any(isinstance(target, ast.Name) and target.id == STATEMENT for target in targets):
            try:
                return Version.parse(ast.literal_eval(node.value))
            except (ValueError, TypeError):
                written = f"{STATEMENT} = {ast.unparse(node.value)} in line {node.lineno} of {module}"
                raise PluginError(
                    f'{written} is not a version; write it as text, such as {STATEMENT} = "{API_VERSION}"'
                ) from None
    return Version.parse(API_VERSION)


def _parse(module: str) -> ast.Module:
    """Return the code of a module; empty if there is none, or if it cannot be read, which its import will tell."""
    try:
        spec = find_spec(module)
        get_source = getattr(spec and spec.loader, "get_source", None)
        with warnings.catch_warnings(action="ignore"):  # the import shows them
            return ast.parse((get_source and get_source(module)) or "")
    except (Exception, SystemExit):  # a package that contains the module may raise anything
        return ast.parse("")


def check_version(stated: Version) -> None:
    """Check that plugins for a version can work with this peekbench.

    Raises
    ------
    PluginError
        If it has another major version. The message lists what to change in the plugin.
    """
    current = Version.parse(API_VERSION)
    if stated.major > current.major:
        raise PluginError(f"{describe_mismatch(stated)}; upgrade peekbench, or install an older version of the plugin")
    if stated.major < current.major:
        majors = range(stated.major + 1, current.major + 1)
        changes = "; ".join(MAJOR_CHANGES[major] for major in majors)
        raise PluginError(
            f"{describe_mismatch(stated)}; upgrade the plugin. Its author has to change: {changes}; and then to state "
            f'{STATEMENT} = "{current}" in the plugin\'s module'
        )


def is_newer(stated: Version) -> bool:
    """Return whether a plugin was made for a newer version, so it may use something that this peekbench lacks."""
    return stated > Version.parse(API_VERSION)


def describe_mismatch(stated: Version) -> str:
    """Return a clause that names both versions."""
    return f"is made for version {stated} of the plugin API, and this peekbench has version {API_VERSION}"
