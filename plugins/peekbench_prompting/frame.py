"""The prompt that asks a language model for the class of a text, with the wording of arXiv 2410.00179."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

MAX_CHARACTERS = 1000


@dataclass(frozen=True, slots=True)
class PromptFrame:
    """The parts of a prompt around its text.

    Examples
    --------
    >>> frame = frame_prompt(["bug", "question"], "The text is a ticket.")
    >>> frame.around("It crashes.") == frame.before + "It crashes." + frame.behind
    True
    """

    instruction: str
    """Every paragraph before the paragraph of the text, examples included."""
    text_mark: ClassVar[str] = "### Text: "
    answer_mark: ClassVar[str] = "\n### Answer:"

    @property
    def before(self) -> str:
        """The part before the text."""
        return f"{self.instruction}\n\n{self.text_mark}"

    @property
    def behind(self) -> str:
        """The part behind the text. The answer, a space and a class name, follows it."""
        return self.answer_mark

    @staticmethod
    def cut(text: str) -> str:
        """Return the first 1,000 characters of a text, which the prompt contains."""
        return text[:MAX_CHARACTERS]

    def question(self, text: str) -> str:
        """Return the paragraph of a text."""
        return f"{self.text_mark}{self.cut(text)}{self.answer_mark}"

    def around(self, text: str) -> str:
        """Return the prompt for a text."""
        return f"{self.instruction}\n\n{self.question(text)}"


def frame_prompt(class_names: Sequence[str], instruction: str, examples: Sequence[tuple[str, str]] = ()) -> PromptFrame:
    """Make the parts that all prompts of a task share.

    Parameters
    ----------
    class_names
        Names of the classes in the order of the labels, one per line of the prompt.
    instruction
        What a text is, and what to answer. If it is empty, the prompt has no such paragraph.
    examples
        (text, class name) of examples to show before the text, one paragraph each. Texts are cut at 1,000 characters.

    Returns
    -------
    PromptFrame
        The parts before and behind the text.

    Examples
    --------
    >>> print(frame_prompt(["bug", "question"], "The text is a ticket.").around("It crashes."))
    Your task is to classify a given text as
    one of these categories:
    bug
    question
    <BLANKLINE>
    The text is a ticket.
    <BLANKLINE>
    ### Text: It crashes.
    ### Answer:
    """
    question = PromptFrame("").question
    paragraphs = [
        "Your task is to classify a given text as\none of these categories:\n" + "\n".join(class_names),
        instruction,
        *(f"{question(text)} {name}" for text, name in examples),
    ]
    return PromptFrame("\n\n".join(filter(None, paragraphs)))
