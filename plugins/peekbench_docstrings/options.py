"""Options of the data sources `docstrings.*`."""

from __future__ import annotations

from pydantic import Field, model_validator

from peekbench import Options


class DocstringOptions(Options):
    """How long texts are."""

    min_characters: int = Field(default=40, ge=1)
    """Texts with fewer characters are dropped."""
    max_characters: int = Field(default=400, ge=1)
    """Texts with more characters are cut at the end of a word."""

    @model_validator(mode="after")
    def _check_range(self) -> DocstringOptions:
        if self.min_characters > self.max_characters:
            raise ValueError(
                f"min_characters {self.min_characters} is greater than max_characters {self.max_characters}; lower it"
            )
        return self
