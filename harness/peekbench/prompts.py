"""The prompt that asks a language model for a text's class, worded as in arXiv 2410.00179."""

from __future__ import annotations

from collections.abc import Sequence

MAX_CHARACTERS = 1000


def render_prompt(text: str, class_names: Sequence[str], instruction: str) -> str:
    """A zero-shot prompt, which ends where the answer, a class name, is to follow.

    Parameters
    ----------
    text
        What is to be classified; cut at 1,000 characters.
    class_names
        One a line, in the order of the labels.
    instruction
        What a text is, and what to answer; where it is empty, its paragraph is left out.
    """
    paragraphs = [
        "Your task is to classify a given text as\none of these categories:\n" + "\n".join(class_names),
        instruction,
        f"### Text: {text[:MAX_CHARACTERS]}\n### Answer:",
    ]
    return "\n\n".join(filter(None, paragraphs))
