"""Options that choose an encoder. This module imports nothing heavy."""

from __future__ import annotations

from pydantic import Field

from peekbench_lm.options import ModelOptions


class Encoder(ModelOptions):
    """Options of a sentence encoder, which turns texts into embeddings."""

    model: str = Field(default="builtin:minilm", min_length=1)
    """Id of a sentence encoder on the Hub, a folder (`./` in front; relative to the spec), or builtin:minilm."""
    prompt: str | None = None
    """Text in front of each input, such as "query: "; by default the prompt of the model, if it has one."""
    context_length: int = Field(default=512, ge=8)
    """Maximum number of tokens of each text; less if the model reads fewer."""
