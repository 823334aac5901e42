"""Measure whether adapting to the unlabeled test texts inflates a method's score.

Names are imported on first use, so that `import peekbench` is fast. The names below are those that most users and
plugin authors need. The namespaces `peekbench.plugins`, `peekbench.records` and `peekbench_testing` have the rest.

Examples
--------
>>> import peekbench as pb
>>> run = pb.run("specs/quickstart.yaml", progress=False)
>>> report = run.report()
>>> [verdict.method for verdict in report.verdicts]
['lsa-10', 'lsa-50', 'classic.self_training', 'controls.null', 'controls.leak']
"""

from typing import Any

from peekbench.lazy import attach_stub

_get, __dir__, __all__ = attach_stub(__name__, __file__)


def __getattr__(name: str) -> Any:
    """Import a name, or read the version from the metadata of the distribution."""
    if name == "__version__":
        from importlib.metadata import version  # noqa: PLC0415 - it takes as long as the rest of `import peekbench`

        return version("peekbench")
    return _get(name)
