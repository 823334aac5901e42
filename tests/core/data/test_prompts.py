"""Prompts for language models."""

from __future__ import annotations

from peekbench.data.prompts import frame_prompt, render_prompt

PAPER_PROMPT = """Your task is to classify a given text as
one of these categories:
World
Sports
Business
Sci/Tech

The text is a news article. Answer with its topic.

### Text: Oil prices rise.
### Answer:"""


def test_the_prompt_equals_the_papers() -> None:
    names = ("World", "Sports", "Business", "Sci/Tech")
    instruction = "The text is a news article. Answer with its topic."
    assert render_prompt("Oil prices rise.", names, instruction) == PAPER_PROMPT


def test_long_texts_are_truncated_and_an_empty_instruction_is_omitted() -> None:
    prompt = render_prompt("z" * 5000, ("a", "b"), "")
    assert prompt.count("z") == 1000
    assert prompt.endswith("\n### Answer:")
    assert "\n\n\n" not in prompt


def test_examples_precede_the_text_in_the_same_form() -> None:
    prompt = render_prompt("Oil prices rise.", ("World", "Sports"), "", [("A match.", "Sports"), ("z" * 5000, "World")])
    _, first, second, last = prompt.split("\n\n")
    assert first == "### Text: A match.\n### Answer: Sports"
    assert second == f"### Text: {'z' * 1000}\n### Answer: World"
    assert last == "### Text: Oil prices rise.\n### Answer:"


def test_a_frame_contains_the_prompt_without_its_text() -> None:
    frame = frame_prompt(("a", "b"), "Answer.", [("t", "b")])
    prompt = render_prompt("some text", ("a", "b"), "Answer.", [("t", "b")])
    assert prompt == frame.around("some text") == f"{frame.before}some text{frame.behind}"
    assert prompt == f"{frame.instruction}\n\n{frame.question('some text')}"
    assert frame.cut("z" * 1001) == "z" * 1000
