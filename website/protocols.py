"""Extension of griffe, which reads docstrings: that of a protocol describes its `__call__`."""

from __future__ import annotations

from typing import Any

import griffe


class CallProtocols(griffe.Extension):
    """Takes the types of the parameters that a protocol's docstring describes from its method `__call__`."""

    def on_class(self, *, cls: griffe.Class, **kwargs: Any) -> None:
        """Let the docstring of a class without `__init__` describe its `__call__`."""
        call = cls.members.get("__call__")
        if isinstance(call, griffe.Function) and cls.docstring is not None and "__init__" not in cls.members:
            cls.docstring.parent = call
