"""The prompt that asks a language model for the class of a text, with the wording of arXiv 2410.00179."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

MAX_CHARACTERS = 1000
TEXT = "{text}"
PLACEHOLDERS = ("{class_names}", "{instruction}", TEXT)
"""What a template contains in place of the class names, the task's instruction and the text."""
_IN_BRACES = re.compile(r"\{\w+\}")


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
    text_mark: str = "### Text: "
    """The beginning of the text's paragraph."""
    answer_mark: str = "\n ### Answer:"
    """What follows the text; the study begins this line with a space."""

    @property
    def before(self) -> str:
        """The part before the text."""
        if not self.instruction:
            return self.text_mark
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
        return f"{self.before}{self.cut(text)}{self.behind}"


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
    Your task is to classify a given text as one of these categories:
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
        "Your task is to classify a given text as one of these categories:\n" + "\n".join(class_names),
        instruction,
        *(f"{question(text)} {name}" for text, name in examples),
    ]
    return PromptFrame("\n\n".join(filter(None, paragraphs)))


def fill_template(template: str, class_names: Sequence[str], instruction: str) -> PromptFrame:
    """Make the parts of a prompt from a template.

    Parameters
    ----------
    template
        A text that contains `{text}` once, and may contain `{class_names}`, which become a list with commas, and
        `{instruction}`. A paragraph of which nothing is left without an instruction is dropped.
    class_names
        Names of the classes in the order of the labels.
    instruction
        What a text is, and what to answer; may be empty.

    Returns
    -------
    PromptFrame
        The parts before and behind the text.

    Raises
    ------
    ValueError
        If the template does not contain the text once, or contains another word in braces.

    Examples
    --------
    >>> fill_template("Ticket: {text} ({class_names}):", ["bug", "question"], "").around("It crashes.")
    'Ticket: It crashes. (bug, question):'
    """
    check_template(template)
    values = {"{class_names}": ", ".join(class_names), "{instruction}": instruction}

    def fill(part: str) -> str:
        paragraphs = (_IN_BRACES.sub(lambda match: values[match[0]], paragraph) for paragraph in part.split("\n\n"))
        return "\n\n".join(filter(None, paragraphs))

    before, _, behind = template.partition(TEXT)
    *leading, mark = before.split("\n\n")
    return PromptFrame(fill("\n\n".join(leading)), fill(mark), fill(behind))


def check_template(template: str) -> None:
    """Check that a template contains the text once, and only known words in braces.

    Raises
    ------
    ValueError
        If it does not.
    """
    if template.count(TEXT) != 1:
        raise ValueError(f"write {TEXT} once in the template {template!r}; it occurs {template.count(TEXT)} times")
    for name in _IN_BRACES.findall(template):
        if name not in PLACEHOLDERS:
            raise ValueError(f"{name} in the template {template!r} is unknown; write {', '.join(PLACEHOLDERS)}")
