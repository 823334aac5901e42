"""Names of new plugins, and of their authors."""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass
from importlib.util import find_spec

import yaml

from peekbench.errors import PeekbenchError
from peekbench.plugins import registry

NAME = re.compile(r"[a-z][a-z0-9]*(_[a-z0-9]+)*")
MAX_NAME = 40  # characters
DEVICES = re.compile(r"con|prn|aux|nul|(com|lpt)[0-9]")
"""Names that no file can have on Windows, whatever its suffix; `NAME.yaml` would be one."""
AUTHOR = re.compile(r"(?P<name>[^<>]*[^<>\s])\s*(<(?P<email>[^<>@\s]+@[^<>@\s]+)>)?")


def check_name(name: str) -> None:
    """Check that a plugin can have a name, and that nothing installed has it.

    The name is part of the names of the package and of the distribution, so it is a Python identifier, and normalizing
    it as package indices do (PEP 503) never makes two names equal.

    Parameters
    ----------
    name
        Name of the plugin in specs.

    Raises
    ------
    PeekbenchError
        If the name cannot be used. The message has a similar name that can.
    """
    if not _is_valid(name):
        similar = _find_valid(name)
        remedy = f"; for example {similar!r}" if similar else ""
        raise PeekbenchError(
            f"a plugin cannot be named {name!r}: use up to {MAX_NAME} lowercase letters and digits, beginning with a "
            f"letter, with '_' between words, and neither a word that YAML reads as another value nor the name of a "
            f"Windows device{remedy}"
        )
    taken = _find_installed(name)
    if taken:
        raise PeekbenchError(f"cannot name a plugin {name!r}: {taken}; choose another name, for example 'my_{name}'")


def _is_valid(name: str) -> bool:
    if NAME.fullmatch(name) is None or len(name) > MAX_NAME or DEVICES.fullmatch(name):
        return False
    return isinstance(yaml.safe_load(name), str)


def _find_valid(name: str) -> str:
    """Return the valid name that is nearest to one that is not; empty if there is none."""
    without_accents = unicodedata.normalize("NFKD", name[: 2 * MAX_NAME]).encode("ascii", "ignore").decode()
    words = re.sub(r"([a-z0-9])([A-Z])", r"\1_\2", without_accents)
    valid = re.sub(r"[^a-z0-9]+", "_", words.lower()).removeprefix("peekbench_").strip("_")[:MAX_NAME].strip("_")
    return next((candidate for candidate in (valid, f"my_{valid}"[:MAX_NAME]) if _is_valid(candidate)), "")


def _find_installed(name: str) -> str:
    """Return a clause about the installed plugin or package that has a name; empty if there is none."""
    for plugin, (point, *_) in registry.installed().items():
        if plugin.lower().replace("-", "_") == name:
            return f"{point.dist.name if point.dist else point.value} has a plugin of this name"
    package = f"peekbench_{name}"
    return f"a package {package} is installed" if find_spec(package) else ""


@dataclass(frozen=True, slots=True)
class Author:
    """Author of a distribution."""

    name: str
    """Name."""
    email: str = ""
    """E-mail address; may be empty."""

    @classmethod
    def parse(cls, text: str) -> Author:
        """Return an author from text of the form `Jane Doe <jane@example.org>`, in which the address may be missing.

        Raises
        ------
        PeekbenchError
            If the text has another form.

        Examples
        --------
        >>> Author.parse("Jane Doe <jane@example.org>")
        Author(name='Jane Doe', email='jane@example.org')
        """
        match = AUTHOR.fullmatch(text.strip())
        if match is None or not text.isprintable():
            raise PeekbenchError(f"--author {text!r} is not an author; write it as 'Jane Doe <jane@example.org>'")
        return cls(match["name"], match["email"] or "")
