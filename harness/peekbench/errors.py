"""Errors that tell a user what is wrong, where, and what to do about it.

The command line prints a `PeekbenchError` without a traceback and exits with status 2. Anything else that is raised is
a defect of peekbench or of a plugin and keeps its traceback.
"""


class PeekbenchError(Exception):
    """Root of every error that is the input's fault or the machine's, not the code's."""


class SpecError(PeekbenchError):
    """A spec that cannot be read or does not fit the plugins that it names."""


class PluginError(PeekbenchError):
    """A plugin that is missing, cannot be imported, or registers what it may not."""


class DataError(PeekbenchError):
    """Data that cannot be loaded, or is too small for a design."""


class UnavailableError(DataError):
    """Data that cannot be got at from here, for a reason that may well hold for others too, such as no network."""

    def __init__(self, wanted: str, reason: str) -> None:
        super().__init__(wanted, reason)
        self.wanted = wanted
        """What was wanted, and where it was sought."""
        self.reason = reason
        """Why it cannot be had and what to do about it; where several things fail alike, this is said once."""

    def __str__(self) -> str:
        return f"{self.wanted}: {self.reason}"


class StoreError(PeekbenchError):
    """A run's store that is damaged, foreign, locked, or cannot be written."""


class ResultsError(PeekbenchError):
    """A results table that is malformed or has holes."""


class ContractError(PeekbenchError):
    """A plugin's callable that does not do what its protocol promises."""
