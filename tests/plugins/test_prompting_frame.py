"""Prompts for language models."""

from __future__ import annotations

from peekbench_prompting.frame import frame_prompt

PROMPT = """Your task is to classify a given text as one of these categories:
World
Sports
Business
Sci/Tech

The text is a news article. Answer with its topic.

### Text: Oil prices rise.
 ### Answer:"""


def test_the_prompt_equals_that_of_the_study() -> None:
    names = ("World", "Sports", "Business", "Sci/Tech")
    instruction = "The text is a news article. Answer with its topic."
    assert frame_prompt(names, instruction).around("Oil prices rise.") == PROMPT


def test_long_texts_are_truncated_and_an_empty_instruction_is_omitted() -> None:
    prompt = frame_prompt(("a", "b"), "").around("z" * 5000)
    assert prompt.count("z") == 1000
    assert prompt.endswith("\n ### Answer:")
    assert "\n\n\n" not in prompt


def test_examples_precede_the_text_in_the_same_form() -> None:
    frame = frame_prompt(("World", "Sports"), "", [("A match.", "Sports"), ("z" * 5000, "World")])
    prompt = frame.around("Oil prices rise.")
    _, first, second, last = prompt.split("\n\n")
    assert first == "### Text: A match.\n ### Answer: Sports"
    assert second == f"### Text: {'z' * 1000}\n ### Answer: World"
    assert last == "### Text: Oil prices rise.\n ### Answer:"
