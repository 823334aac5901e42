"""Names of entries in specs, such as `classic.lsa`, and their parts."""

from __future__ import annotations

from peekbench.plugins.local_code import is_code, names_code, split_code
from peekbench.plugins.named_code import write_out


def split_name(use: str) -> tuple[str, str]:
    """Split `plugin.thing` into the two names; a plugin's name alone means its entry of the same name.

    Examples
    --------
    >>> split_name("classic.lsa")
    ('classic', 'lsa')
    >>> split_name("summary")
    ('summary', 'summary')
    >>> split_name("my_file.py:fit")
    ('my_file.py', 'fit')
    """
    if names_code(use := write_out(use)):
        return split_code(use)
    plugin, dot, entry_name = use.partition(".")
    return plugin, entry_name if dot else plugin


def join_name(plugin: str, entry_name: str) -> str:
    """Return the shortest name that a spec can use for an entry of a plugin.

    Examples
    --------
    >>> join_name("classic", "lsa"), join_name("summary", "summary")
    ('classic.lsa', 'summary')
    """
    if is_code(plugin):
        return f"{plugin.rstrip(':')}:{entry_name}"
    return plugin if entry_name == plugin else f"{plugin}.{entry_name}"
