from __future__ import annotations

from peekbench.prompts import render_prompt

PRINTED = """Your task is to classify a given text as
one of these categories:
World
Sports
Business
Sci/Tech

The text is a news article. Answer with its topic.

### Text: Oil prices rise.
### Answer:"""


def test_the_prompt_is_the_papers() -> None:
    names = ("World", "Sports", "Business", "Sci/Tech")
    instruction = "The text is a news article. Answer with its topic."
    assert render_prompt("Oil prices rise.", names, instruction) == PRINTED


def test_long_texts_are_cut_and_a_missing_instruction_leaves_no_gap() -> None:
    prompt = render_prompt("z" * 5000, ("a", "b"), "")
    assert prompt.count("z") == 1000
    assert prompt.endswith("\n### Answer:")
    assert "\n\n\n" not in prompt
