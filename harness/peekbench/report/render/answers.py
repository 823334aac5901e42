"""The answers with which all formats of a report begin."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Answer:
    """A question that readers ask first, and its answer."""

    question: str
    short: str
    """The answer in a few words."""
    details: str = ""
    """Sentences that follow."""
    command: str = ""
    """Shell command to run next."""

    @property
    def text(self) -> str:
        """The answer in sentences."""
        return f"{self.short}. {self.details}".strip()
