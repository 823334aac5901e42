"""The prompt that asks a language model for a text's class, worded as in arXiv 2410.00179."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

MAX_CHARACTERS = 1000


@dataclass(frozen=True, slots=True)
class PromptFrame:
    """What stands around a text in a prompt."""

    instruction: str
    """Every paragraph in front of the text's own, examples included."""
    text_mark: ClassVar[str] = "### Text: "
    answer_mark: ClassVar[str] = "\n### Answer:"

    @property
    def before(self) -> str:
        """All that stands in front of the text."""
        return f"{self.instruction}\n\n{self.text_mark}"

    @property
    def behind(self) -> str:
        """All that stands behind it; the answer, a space and a class name, is to follow."""
        return self.answer_mark

    @staticmethod
    def cut(text: str) -> str:
        """As much of a text as a prompt has: 1,000 characters."""
        return text[:MAX_CHARACTERS]

    def question(self, text: str) -> str:
        """The text's own paragraph."""
        return f"{self.text_mark}{self.cut(text)}{self.answer_mark}"

    def around(self, text: str) -> str:
        """The prompt for a text."""
        return f"{self.instruction}\n\n{self.question(text)}"


def frame_prompt(class_names: Sequence[str], instruction: str, examples: Sequence[tuple[str, str]] = ()) -> PromptFrame:
    """What all prompts of a task have in common.

    Parameters
    ----------
    class_names
        One a line, in the order of the labels.
    instruction
        What a text is, and what to answer; where it is empty, its paragraph is left out.
    examples
        Texts with the names of their classes, which are shown before the text to classify, a paragraph each; also cut
        at 1,000 characters.
    """
    question = PromptFrame("").question
    paragraphs = [
        "Your task is to classify a given text as\none of these categories:\n" + "\n".join(class_names),
        instruction,
        *(f"{question(text)} {name}" for text, name in examples),
    ]
    return PromptFrame("\n\n".join(filter(None, paragraphs)))


def render_prompt(
    text: str, class_names: Sequence[str], instruction: str, examples: Sequence[tuple[str, str]] = ()
) -> str:
    """A prompt, which ends where the answer, a class name, is to follow; zero-shot where there are no examples.

    Parameters
    ----------
    text
        What is to be classified; cut at 1,000 characters.
    class_names, instruction, examples
        As `frame_prompt`.
    """
    return frame_prompt(class_names, instruction, examples).around(text)
